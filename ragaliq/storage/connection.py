"""The connection a store writes through: opened late, closed around a fork, never shared."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ragaliq.errors import StoreError
from ragaliq.storage.schema import migrate

__all__ = ["WriterConnection"]

# Seconds a fork may be held up by a write in progress.
_FORK_PATIENCE = 1.0
_WAL_LIMIT = 16 * 1024 * 1024


class WriterConnection:
    """One connection for writing, opened on first use.

    SQLite keeps the locks of a process in memory, which a forked child inherits: with a connection
    open at that moment, the child would believe in locks it does not hold. So it is closed before
    a fork and opened again by whoever writes next.

    Args:
        path: The file; made, readable by its owner alone, where there is none.
        busy_timeout: Seconds to wait for another process that writes.
    """

    def __init__(self, path: Path, *, busy_timeout: float) -> None:
        self._path, self._busy_timeout = path, busy_timeout
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._held_for_fork = False
        self._inherited = False
        _LIVING.add(self)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of the block is stored, or nothing.

        Raises:
            sqlite3.Error: What went wrong; the next transaction opens the file anew.
            OSError: The file cannot be made.
            DatasetError: The file is something else.
            StoreError: The store cannot be used in this process.
        """
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, for looking something up; raises as `transaction` does."""
        with self._lock:
            if self._inherited:
                raise StoreError(
                    "the process was forked in the middle of a write; make a new store in it",
                    kind="forked",
                    permanent=True,
                )
            try:
                yield self._connection or self._open()
            except BaseException:
                # Closing undoes what was begun, and a file that was replaced is found again.
                self._close()
                raise

    def empty_log(self) -> None:
        """Move what is in the write-ahead log into the file, and empty the log.

        Until then it holds texts that were deleted. Where another connection reads or writes at the
        moment, it stays for the next time.
        """
        with self._lock:
            connection = self._connection
            if connection is None or self._inherited:
                return
            with suppress(sqlite3.Error):
                connection.execute("PRAGMA busy_timeout = 0")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                connection.execute(f"PRAGMA busy_timeout = {int(self._busy_timeout * 1000)}")

    def close(self) -> None:
        """Close; the next transaction opens again."""
        with self._lock:
            self._close()

    def _open(self) -> sqlite3.Connection:
        is_new = _create(self._path)
        connection = sqlite3.connect(
            self._path,
            timeout=self._busy_timeout,
            isolation_level=None,
            check_same_thread=False,  # one thread at a time, by the lock
        )
        # Kept before it is set up, so that it is closed if that fails.
        self._connection = connection
        if is_new:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        # A killed process loses nothing it committed; a power failure may cost the last commits.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        # What is deleted is overwritten: it may be what people asked and were told.
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")
        migrate(connection)
        return connection

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    # --- around a fork ------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Wait for a write in progress, and close."""
        self._held_for_fork = self._lock.acquire(timeout=_FORK_PATIENCE)
        if self._held_for_fork:
            self._close()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        if self._held_for_fork:
            self._lock.release()

    def after_fork_in_child(self) -> None:
        """Begin anew, or give up where the parent was in the middle of a write."""
        if not self._held_for_fork:
            self._inherited = True
            # Kept for good: even closing it would disturb the parent's.
            _INHERITED.append(self._connection)
            self._connection = None
        self._lock = threading.Lock()


_LIVING: weakref.WeakSet[WriterConnection] = weakref.WeakSet()
_INHERITED: list[sqlite3.Connection | None] = []


def _create(path: Path) -> bool:
    """Make the file, unless it is there; whether it was made.

    It may hold what people asked and were told: nobody else may read it, nor the files SQLite puts
    beside it, which get its permissions.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return path.stat().st_size == 0
    return True


def _before_fork() -> None:
    for connection in list(_LIVING):
        connection.before_fork()


def _after_fork_in_parent() -> None:
    for connection in list(_LIVING):
        connection.after_fork_in_parent()


def _after_fork_in_child() -> None:
    for connection in list(_LIVING):
        connection.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
