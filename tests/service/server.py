"""A server in processes of its own, and what it left behind."""

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections import Counter
from pathlib import Path

from ragaliq import read_records

_COUNTS = re.compile(r"runs of process \d+: (\{.*\})")


class Server:
    """Started on creation; in a process group of its own, so that nothing of it survives a test."""

    def __init__(self, command, *, port, log, env):
        self.url = f"http://127.0.0.1:{port}"
        self._address = ("127.0.0.1", port)
        self._log = log
        self._store = env["SERVICE_STORE"]
        with log.open("w") as output:
            self._process = subprocess.Popen(
                command, env=env, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        self._wait_until_it_listens(60.0)

    @property
    def log(self):
        return self._log.read_text()

    def send(self, what):
        self._process.send_signal(what)

    def wait(self, timeout=60.0):
        return self._process.wait(timeout)

    def stop(self):
        """Ask it to end, as an orchestrator does, and wait until it has."""
        self.send(signal.SIGTERM)
        return self.wait()

    def kill(self):
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self._process.wait(10.0)

    def counts(self):
        """What each worker logged at its end."""
        return [json.loads(found) for found in _COUNTS.findall(self.log)]

    def total(self, key):
        """The sum over the workers of a count, or of a mapping of counts."""
        values = [counts[key] for counts in self.counts()]
        return (
            sum(values)
            if isinstance(values[0], int)
            else dict(sum(map(Counter, values), Counter()))
        )

    @property
    def has_store(self):
        return Path(self._store.removeprefix("sqlite:///")).exists()

    def triples(self):
        """Question, contexts and answer of everything that was evaluated, by question."""
        records = list(read_records(self._store))
        by_question = {
            record.case.query: (record.case.context_texts, record.case.response)
            for record in records
        }
        assert len(by_question) == len(records), "a question was evaluated twice"
        return by_question

    def _wait_until_it_listens(self, seconds):
        ends = time.monotonic() + seconds
        while time.monotonic() < ends and self._process.poll() is None:
            try:
                socket.create_connection(self._address, timeout=1.0).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise AssertionError(f"the server does not listen:\n{self.log}")
