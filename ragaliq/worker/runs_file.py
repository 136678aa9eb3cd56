"""Runs stored in a file for later: `Monitor(executor="sqlite:///runs.db")`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from ragaliq.core.files import lock, owner_only
from ragaliq.errors import ConfigurationError
from ragaliq.records.sqlite_file import WriterConnection, parse_location
from ragaliq.worker.executor import JobExecutor

_TABLE = """
CREATE TABLE IF NOT EXISTS pending_runs (
    number INTEGER PRIMARY KEY AUTOINCREMENT, job_id TEXT UNIQUE, message BLOB NOT NULL
)
"""


class RunsFile(JobExecutor):
    """Runs in the file of a store (`sqlite:///path`), for `ragaliq evaluate --pending`."""

    name = "sqlite"

    def __init__(self, location: str) -> None:
        self.path = parse_location(location)
        self.connection = WriterConnection(self.path, busy_timeout=5.0)

    async def publish(self, job_id: str, message: bytes) -> None:
        """Store a run; once, even if it is published repeatedly."""
        await asyncio.to_thread(self._add, job_id, message)

    def _add(self, job_id: str, message: bytes) -> None:
        with self.connection.transaction() as sql:
            sql.execute(_TABLE)
            sql.execute("INSERT OR IGNORE INTO pending_runs VALUES (NULL, ?, ?)", (job_id, message))

    async def aclose(self) -> None:
        """Close the file; the next run opens it again, also in a forked child."""
        await asyncio.to_thread(self.connection.close)

    def messages(self, at_once: int = 200) -> Iterator[list[tuple[str, bytes]]]:
        """Pending runs by job id, the oldest first, in batches."""
        last = 0
        while True:
            with self.connection.reading() as sql:
                sql.execute(_TABLE)
                rows = sql.execute(
                    "SELECT job_id, message, number FROM pending_runs WHERE number > ? "
                    "ORDER BY number LIMIT ?",
                    (last, at_once),
                ).fetchall()
            if not rows:
                return
            yield [row[:2] for row in rows]
            last = rows[-1][2]

    def done(self, job_id: str) -> None:
        """Delete a run: its record is stored."""
        with self.connection.transaction() as sql:
            sql.execute("DELETE FROM pending_runs WHERE job_id = ?", (job_id,))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the file against other processes that evaluate it.

        Raises:
            ConfigurationError: Another process holds the lock.
        """
        with open(f"{self.path}.lock", "ab", opener=owner_only) as file:
            in_use = f"{self.path}: another process is evaluating the runs in this file"
            lock(file, ConfigurationError(in_use))
            yield
