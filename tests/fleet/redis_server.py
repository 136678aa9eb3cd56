"""A real Redis server on loopback, for one test at a time."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

PROGRAM = shutil.which("redis-server")
_READY_WITHIN = 10.0


class RedisServer:
    """A server on a free port that can be killed, frozen and started again on the same data.

    Args:
        folder: Where it keeps its append-only file and its log.
        *options: Further options of redis-server.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        self.port = _free_port()
        self._folder, self._options = folder, options
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def url(self, database: int = 0) -> str:
        return f"redis://127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        with (self._folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *[str(PROGRAM), "--port", str(self.port), "--bind", "127.0.0.1"],
                    *["--dir", str(self._folder), "--save", "", "--appendonly", "yes"],
                    # What a killed process had written is the system's to keep; only a machine
                    # that fails would lose it.
                    *["--appendfsync", "no", *self._options],
                ],
                stdout=log,
                stderr=log,
            )
        self._wait_until_it_answers()

    def kill(self) -> None:
        """End it as a crash would; `start` brings it back with what it had confirmed."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def freeze(self) -> None:
        """Keep its connections open and answer nothing."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, number)

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + _READY_WITHIN
        while time.monotonic() < deadline:
            # Until its data are loaded it answers -LOADING.
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1.0) as line:
                    line.sendall(b"PING\r\n")
                    if line.recv(64).startswith(b"+PONG"):
                        return
            except OSError:
                pass
            time.sleep(0.02)
        raise RuntimeError(f"redis-server did not start; see {self._folder / 'redis.log'}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
