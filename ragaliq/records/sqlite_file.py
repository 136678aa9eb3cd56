"""SQLite file: its address, its tables, the connection that writes, and its errors."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from ragaliq._private import working_folder
from ragaliq.core.files import make_folder, owner_only
from ragaliq.core.process import watch_both_sides
from ragaliq.errors import ConfigurationError, DatasetError, StoreError

Location = str | os.PathLike[str]
"""A path, or an address that starts with `sqlite:///`."""

_log = logging.getLogger(__name__)

_FORMS = "sqlite:///relative/path or sqlite:////absolute/path"


def parse_location(location: Location) -> Path:
    """Absolute path of the store, which a later change of the working directory does not move."""
    if not isinstance(location, str) or "://" not in location:
        path = os.fspath(location)
    else:
        parts = urlsplit(location)
        if parts.scheme != "sqlite" or parts.netloc or not parts.path.startswith("/"):
            # Not quoted: the address may hold a password.
            raise ConfigurationError(f"a store's address has the form {_FORMS}")
        path = unquote(parts.path[1:])
    if not path or path == ":memory:" or "\0" in path:
        raise ConfigurationError(f"a store is a file: give {_FORMS}")
    return Path(working_folder(), path)


def companion_file(store: Location, kind: str) -> Path:
    """Path of a file that belongs to a store, or to its labels: `live.labels.jsonl`."""
    path = parse_location(store)
    name = path.name.removesuffix(".labels.jsonl").removesuffix(".db")
    return path.with_name(f"{name}.{kind}.jsonl")


def parse_options(location: Location, *known: str) -> dict[str, float]:
    """Numbers after `?`, such as `sqlite:///live.db?max_age_days=30`.

    Args:
        location: The address.
        *known: Names of the options.
    """
    if not isinstance(location, str) or "://" not in location:
        return {}
    options: dict[str, float] = {}
    for name, value in parse_qsl(urlsplit(location).query, keep_blank_values=True):
        if name not in known:
            raise ConfigurationError(f"a store's address knows {', '.join(known)}, not {name!r}")
        try:
            options[name] = float(value)
        except ValueError:
            raise ConfigurationError(f"{name} must be a number, got {value!r}") from None
    return options


# --- tables ---------------------------------------------------------------------------------------

SCHEMA_VERSION = 1
"""Version of the tables, kept in `PRAGMA user_version`."""

APPLICATION_ID = 0x52474C51
"""Marks the file as a store of ragaliq (`PRAGMA application_id`); the letters RGLQ."""

# evaluations and metrics hold the columns of frequent queries in short rows; the whole record is
# stored too, as JSON.
_TABLES = """
CREATE TABLE evaluations (
    evaluation_id TEXT PRIMARY KEY,
    run_id TEXT NOT NULL,
    case_id TEXT NOT NULL,
    pipeline TEXT NOT NULL,
    framework TEXT NOT NULL,
    trace_id TEXT,
    span_id TEXT,
    session_id TEXT,
    sampling_probability REAL NOT NULL,
    created_at REAL NOT NULL,
    measured INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    cost_usd REAL
) WITHOUT ROWID;
CREATE INDEX evaluations_by_time ON evaluations (created_at);
CREATE INDEX evaluations_by_pipeline ON evaluations (pipeline, created_at);
CREATE TABLE metrics (
    evaluation_id TEXT NOT NULL REFERENCES evaluations ON DELETE CASCADE,
    name TEXT NOT NULL,
    metric_id TEXT NOT NULL,
    status TEXT NOT NULL,
    score REAL,
    passed INTEGER,
    higher_is_better INTEGER NOT NULL,
    judge TEXT NOT NULL,
    model TEXT,
    supported INTEGER NOT NULL,
    contradicted INTEGER NOT NULL,
    not_enough_info INTEGER NOT NULL,
    unverified INTEGER NOT NULL,
    weight REAL NOT NULL,
    PRIMARY KEY (evaluation_id, name)
) WITHOUT ROWID;
CREATE INDEX metrics_by_score ON metrics (name, score);
CREATE TABLE records (
    evaluation_id TEXT PRIMARY KEY REFERENCES evaluations ON DELETE CASCADE,
    record TEXT NOT NULL
);
"""


def _make_tables(connection: sqlite3.Connection) -> None:
    """Create the tables of a new store; do nothing if they exist."""
    if _version(connection) == SCHEMA_VERSION:
        return
    # Several processes may open a new file at once: one creates the tables, the others wait here.
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _version(connection) != SCHEMA_VERSION:
            for statement in _TABLES.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def require_readable(connection: sqlite3.Connection) -> None:
    """Refuse a file that is empty, not a store, or of a later version."""
    if not _version(connection):
        raise DatasetError("the file is empty: nothing has been stored in it yet")


def _version(connection: sqlite3.Connection) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    mark = int(connection.execute("PRAGMA application_id").fetchone()[0])
    tables = int(connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])
    if tables and mark != APPLICATION_ID:
        raise DatasetError("the file is a database, but not a store of ragaliq; name another file")
    if version > SCHEMA_VERSION:
        raise DatasetError(
            f"the store has form {version}, and this version of ragaliq knows forms up to "
            f"{SCHEMA_VERSION}; update ragaliq"
        )
    return version


# --- writing --------------------------------------------------------------------------------------

# Most seconds that a write in progress may delay a fork.
_FORK_PATIENCE = 1.0
_WAL_LIMIT = 16 * 1024 * 1024


class WriterConnection:
    """One connection for writing: opened on first use, closed around a fork, never shared.

    SQLite keeps the locks of a process in memory, which a forked child inherits: with an open
    connection, the child would assume locks that it does not hold. So the connection is closed
    before a fork and opened again by the next write.

    Args:
        path: The file; created, readable by its owner alone, if missing.
        busy_timeout: Seconds to wait for another process that writes.
    """

    def __init__(self, path: Path, *, busy_timeout: float) -> None:
        self._path, self._busy_timeout = path, busy_timeout
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._held_for_fork = False
        self._inherited = False
        watch_both_sides(self)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run the block as one transaction: all of it is stored, or nothing."""
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Connection for queries; raises as `transaction` does."""
        with self._lock:
            if self._inherited:
                raise StoreError(
                    "the process was forked in the middle of a write; make a new store in it",
                    kind="forked",
                    permanent=True,
                )
            if self._connection is not None and self._file_at_path() != self._file:
                _log.warning(
                    "%s was deleted or replaced while it was open: what it held is lost, and "
                    "later results go to a new file",
                    self._path,
                )
                self._close()
            try:
                yield self._connection or self._open()
            except BaseException:
                # Closing rolls back, and the next connection finds a file that was replaced.
                self._close()
                raise

    def empty_log(self) -> None:
        """Checkpoint the write-ahead log into the file, and empty the log.

        Until then it holds texts that were deleted. While another connection reads or writes, the
        log stays until the next call.
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
        """Close the connection; the next transaction opens it again."""
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
        # Assigned before it is set up, so that it is closed if the setup fails.
        self._connection, self._file = connection, self._file_at_path()
        if is_new:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        # A killed process loses no commit; a power failure may lose the last ones.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        # Deleted data is overwritten: it may hold questions and answers.
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")
        _make_tables(connection)
        return connection

    def _file_at_path(self) -> tuple[int, int] | None:
        """Device and inode of the file at the path; SQLite would keep using a deleted one."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def __del__(self) -> None:
        # A store that is dropped without `aclose` must close its file at once: Python 3.13 warns of
        # unclosed ones. At the end of the interpreter, names of this module may be gone already.
        connection = getattr(self, "_connection", None)
        if connection is not None:
            try:  # noqa: SIM105 - `suppress` is such a name
                connection.close()
            except Exception:  # noqa: BLE001, S110 - as above
                pass

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
        """Allow writes again."""
        if self._held_for_fork:
            self._lock.release()

    def restart_after_fork(self) -> None:
        """Open a new connection, or give up if the parent was in the middle of a write."""
        if not self._held_for_fork:
            self._inherited = True
            # Kept open for good: closing it would disturb the parent's.
            _INHERITED.append(self._connection)
            self._connection = None
        self._lock = threading.Lock()


_INHERITED: list[sqlite3.Connection | None] = []


def _create(path: Path) -> bool:
    """Create the file unless it exists; return True if it was created.

    It may hold questions and answers: only its owner may read it and the files that SQLite creates
    next to it, which get its permissions.
    """
    make_folder(path.parent)
    try:
        os.close(owner_only(path, os.O_CREAT | os.O_EXCL | os.O_RDWR))
    except FileExistsError:
        return path.stat().st_size == 0
    return True


# --- errors: a message for people, a kind for counting --------------------------------------------


# Keyed by the first two parts of SQLite's error name: extended codes add a part, such as
# SQLITE_READONLY_DIRECTORY.
_HELD = "locked", "another process holds the file"
_UNWRITABLE = "read_only", "the file may not be written"
_FAILURES = {
    "SQLITE_FULL": ("disk_full", "the disk is full"),
    "SQLITE_BUSY": _HELD,
    "SQLITE_LOCKED": _HELD,
    "SQLITE_READONLY": _UNWRITABLE,
    "SQLITE_PERM": _UNWRITABLE,
    "SQLITE_CANTOPEN": ("cannot_open", "the file cannot be opened"),
    "SQLITE_CORRUPT": ("corrupt", "the file is damaged; rename or delete it"),
    "SQLITE_NOTADB": ("corrupt", "the file is not a database; name another one"),
    "SQLITE_IOERR": ("io_error", "the file could not be read or written"),
}
_PERMANENT = {"corrupt", "not_a_store", "read_only"}


def store_error(error: Exception, path: Path) -> StoreError:
    """Describe the failure as a `StoreError`; names the file and none of its content."""
    if isinstance(error, StoreError):
        return error
    kind, words = failure(error)
    return StoreError(f"{path}: {words}", kind=kind, permanent=kind in _PERMANENT)


def failure(error: Exception) -> tuple[str, str]:
    """Kind of the failure, and the words for it."""
    if isinstance(error, DatasetError):
        return "not_a_store", str(error)
    if isinstance(error, OSError):
        why = error.strerror or type(error).__name__
        return "cannot_open", f"the file cannot be made: {why}"
    name = str(getattr(error, "sqlite_errorname", ""))
    unknown = "sqlite_error", f"SQLite failed ({name or type(error).__name__})"
    return _FAILURES.get("_".join(name.split("_")[:2]), unknown)
