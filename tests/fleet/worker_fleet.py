"""Real `ragaliq worker` processes around one broker and one store."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

from ragaliq import RAGTestCase
from ragaliq.worker import dead_letters
from ragaliq.worker.brokers import broker_at

HERE = Path(__file__).parent


class WorkerFleet:
    """Starts workers, kills them, and looks at what they did.

    Args:
        folder: For the store and the logs.
        server: The broker.
    """

    def __init__(self, folder, server):
        self.folder, self.server = folder, server
        self.store = folder / "store.db"
        self.asked = folder / "asked.txt"
        self.workers = []
        self._count = 0

    def start(self, *arguments, **environment):
        """Start a worker with the settings of these tests; returns its process."""
        return self.run_worker("--app", "worker_settings:settings", *arguments, **environment)

    def run_worker(self, *arguments, **environment):
        """Start a worker as a user would."""
        self._count += 1
        with (self.folder / f"worker-{self._count}.log").open("wb") as log:
            worker = subprocess.Popen(
                [*[sys.executable, "-m", "ragaliq.cli", "worker"], *arguments],
                cwd=HERE,
                env=os.environ
                | {
                    "RAGALIQ_BROKER_URL": self.server.url(),
                    "FLEET_STORE": str(self.store),
                    "FLEET_ASKED": str(self.asked),
                    "PYTHONWARNINGS": "default",
                }
                | environment,
                stdout=log,
                stderr=log,
            )
        self.workers.append(worker)
        return worker

    def kill(self, worker):
        worker.kill()
        worker.wait()
        self.workers.remove(worker)

    def end(self):
        for worker in self.workers:
            worker.kill()
            worker.wait()

    def logs(self):
        return "".join(path.read_text() for path in sorted(self.folder.glob("worker-*.log")))

    def evaluated(self):
        """The case ids in the store, one for each record."""
        if not self.store.exists():
            return []
        with closing(sqlite3.connect(self.store)) as connection, suppress(sqlite3.Error):
            return [row[0] for row in connection.execute("SELECT case_id FROM evaluations")]
        return []

    def judged(self):
        """The cases the judge was asked about, each as often as it was asked."""
        return self.asked.read_text().split() if self.asked.exists() else []

    def publish(self, *bodies, to="ragaliq"):
        """Put hand-made messages on a queue."""

        async def put():
            broker = broker_at(self.server.url())
            await broker.connect()
            for body in bodies:
                await broker.publish(body, to)
            await broker.native.stop()

        asyncio.run(put())

    def dead_letters(self):
        return asyncio.run(dead_letters.letters(self.server.url(), "ragaliq"))

    def is_deserted(self):
        """Whether every worker has died."""
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        return not self.workers

    def signal(self, worker, number=signal.SIGTERM):
        os.kill(worker.pid, number)


def eventually(is_so, *, within=60.0):
    """Whether something becomes so in time."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if is_so():
            return True
        time.sleep(0.05)
    return bool(is_so())


def offer(monitor, number, question="q", **run):
    """Have a case evaluated; its question begins with its id."""
    case = RAGTestCase(
        id=f"case-{number}",
        query=f"case-{number} {question}",
        context=["Alpha is one."],
        response="Alpha is one.",
    )
    return monitor.submit(case, **run)
