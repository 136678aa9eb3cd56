"""The embedded store: one SQLite file, several processes, nothing to install."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Sequence
from typing import Final

from ragaliq.core.sync import WorkThread
from ragaliq.errors import ConfigurationError, DatasetError, StoreError
from ragaliq.records.base import SinkError
from ragaliq.records.record import EvaluationRecord
from ragaliq.records.sqlite.rows import upsert
from ragaliq.storage.connection import WriterConnection
from ragaliq.storage.failures import store_error
from ragaliq.storage.location import Location, parse_location, parse_options

__all__ = ["SQLiteStore"]

logger = logging.getLogger(__name__)

_DAY = 86_400.0
# Records between two looks at what is too old or too much.
_PRUNE_EVERY = 500
_PAGES_GIVEN_BACK = 2000

_HOLDS = "SELECT 1 FROM evaluations WHERE evaluation_id = ?"
_TOO_OLD = "DELETE FROM evaluations WHERE created_at < ?"
_TOO_MANY = """
DELETE FROM evaluations WHERE evaluation_id IN (
    SELECT evaluation_id FROM evaluations ORDER BY created_at DESC LIMIT -1 OFFSET ?
)
"""


class SQLiteStore:
    """A sink that keeps records in one SQLite file.

    Writing happens on one thread of its own, a batch at a time. Several processes may write to one
    file. A record whose id is there already replaces it, unless that would put a failure in the
    place of a score.

    Args:
        location: `sqlite:///relative/path`, `sqlite:////absolute/path`, or a path. An address may
            end in `?max_age_days=30&max_rows=100000`.
        max_age_days: Records older than this are deleted; None keeps them.
        max_rows: The oldest records beyond this number are deleted; None keeps them.
        busy_timeout: Seconds to wait for another process that writes.

    Raises:
        ConfigurationError: The address or a limit is wrong. The file itself is opened by the first
            write, and what is wrong with it is a counted failure.
    """

    name: Final = "sqlite"

    def __init__(
        self,
        location: Location,
        *,
        max_age_days: float | None = None,
        max_rows: int | None = 1_000_000,
        busy_timeout: float = 5.0,
    ) -> None:
        options = parse_options(location, "max_age_days", "max_rows")
        self.path = parse_location(location)
        self._max_age_days = options.get("max_age_days", max_age_days)
        self._max_rows = int(options["max_rows"]) if "max_rows" in options else max_rows
        for limit, value in (("max_age_days", self._max_age_days), ("max_rows", self._max_rows)):
            if value is not None and not value > 0:
                raise ConfigurationError(f"SQLiteStore: {limit} must be positive, got {value}")
        self._connection = WriterConnection(self.path, busy_timeout=busy_timeout)
        self._thread = WorkThread("ragaliq-sqlite")
        self._unpruned = _PRUNE_EVERY  # so that the first write looks

    def __repr__(self) -> str:
        return f"SQLiteStore({str(self.path)!r})"

    async def write(self, records: Sequence[EvaluationRecord]) -> None:
        """Store the records, all or none; but one that SQLite cannot hold keeps out no other.

        Raises:
            SinkError: They were not stored, or some cannot be.
        """
        await self._thread.run(self._write, records)

    async def holds(self, evaluation_id: str) -> bool:
        """Whether a record with this id is stored.

        Raises:
            sqlite3.Error: The file cannot be read.
        """
        return await self._thread.run(self._holds, evaluation_id)

    async def settle(self) -> None:
        """Move what is in the write-ahead log into the file, so that it may be copied alone."""
        await self._thread.run(self._connection.empty_log)

    async def aclose(self) -> None:
        """Close the file; the next write opens it again."""
        await self._thread.run(self._connection.close)
        self._thread.stop(timeout=0.0)

    # --- on the writer thread -----------------------------------------------------------------

    def _write(self, records: Sequence[EvaluationRecord]) -> None:
        texts = [_text_of(record) for record in records]  # before the file is locked
        try:
            with self._connection.transaction() as connection:
                unfit = [
                    record
                    for record, text in zip(records, texts, strict=True)
                    if text is None or not _stored(connection, record, text)
                ]
                self._prune(connection, len(records))
        except (sqlite3.Error, OSError, DatasetError, StoreError) as error:
            failed = store_error(error, self.path)
            raise SinkError(str(failed), kind=failed.kind, permanent=failed.permanent) from error
        if unfit:
            raise SinkError(
                f"{self.path}: a record holds what SQLite cannot",
                kind="unstorable",
                permanent=True,
                undelivered=unfit,
            )

    def _holds(self, evaluation_id: str) -> bool:
        with self._connection.reading() as connection:
            return connection.execute(_HOLDS, (evaluation_id,)).fetchone() is not None

    def _prune(self, connection: sqlite3.Connection, added: int) -> None:
        self._unpruned += added
        if self._unpruned < _PRUNE_EVERY:
            return
        deleted = 0
        if self._max_age_days is not None:
            oldest = time.time() - self._max_age_days * _DAY
            deleted += connection.execute(_TOO_OLD, (oldest,)).rowcount
        if self._max_rows is not None:
            deleted += connection.execute(_TOO_MANY, (self._max_rows,)).rowcount
        self._unpruned = 0
        if deleted:
            _give_back(connection)
            logger.info("the store deleted %d records beyond its limits", deleted)


def _text_of(record: EvaluationRecord) -> str | None:
    try:
        return record.model_dump_json()
    except ValueError:  # half a surrogate pair, such as in a judge's name
        return None


def _stored(connection: sqlite3.Connection, record: EvaluationRecord, text: str) -> bool:
    """Store a record; False, and nothing of it is stored, where a value does not fit a column."""
    connection.execute("SAVEPOINT record")
    try:
        upsert(connection, record, text)
    except (ValueError, OverflowError, sqlite3.IntegrityError):
        connection.execute("ROLLBACK TO record")
        return False
    connection.execute("RELEASE record")  # not after a full disk, which ends the transaction
    return True


def _give_back(connection: sqlite3.Connection) -> None:
    """Return freed pages to the file system, a bounded number at a time."""
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    for _ in range(min(free, _PAGES_GIVEN_BACK)):
        # Each call frees one page, whatever number is given: its rows have no columns, at which
        # Python stops.
        connection.execute("PRAGMA incremental_vacuum(1)")
