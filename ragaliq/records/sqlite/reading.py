"""Reading a store: records one after the other, and the sums a report needs. Never writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from ragaliq.core.results import Verdict
from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.records.record import EvaluationRecord
from ragaliq.records.sqlite.rows import record_of
from ragaliq.storage.failures import words_for
from ragaliq.storage.location import Location, parse_location
from ragaliq.storage.schema import require_readable

__all__ = ["RecordFilter", "open_store", "read_records"]

Moment = float | datetime
"""Unix time in seconds, or a datetime with a time zone."""


@dataclass(frozen=True, kw_only=True)
class RecordFilter:
    """Which records; everything that is None does not matter.

    Attributes:
        since: Evaluated then or later.
        until: Evaluated before then.
        pipeline: Of this pipeline; the empty string is that of runs without a name.
        metric: With this metric, whatever its status.
        status: With a metric (or the named one) that ended so.
        verdict: With a claim (of the named metric, or of any) that got this verdict.
    """

    since: Moment | None = None
    until: Moment | None = None
    pipeline: str | None = None
    metric: str | None = None
    status: str | None = None
    verdict: Verdict | None = None

    def where(self) -> tuple[str, dict[str, object]]:
        """The condition on `evaluations e JOIN metrics m`, and its parameters."""
        conditions = {
            "since": "e.created_at >= :since",
            "until": "e.created_at < :until",
            "pipeline": "e.pipeline = :pipeline",
            "metric": "m.name = :metric",
            "status": "m.status = :status",
            "verdict": f"m.{self.verdict.lower()} > 0" if self.verdict else "",
        }
        values = {name: _plain(getattr(self, name)) for name in conditions}
        chosen = [conditions[name] for name, value in values.items() if value is not None]
        return " AND ".join(chosen) or "1", values


def read_records(
    location: Location,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    pipeline: str | None = None,
    metric: str | None = None,
    status: str | None = None,
    verdict: Verdict | None = None,
    newest_first: bool = False,
    limit: int | None = None,
) -> Iterator[EvaluationRecord]:
    """Records of a store in the order of time, read as they are asked for.

    Args:
        location: `sqlite:///path` or a path.
        since: See `RecordFilter`, as for the next five.
        until: Evaluated before then.
        pipeline: Of this pipeline.
        metric: With this metric.
        status: With a metric that ended so.
        verdict: With a claim that got this verdict.
        newest_first: The other way round.
        limit: At most so many.

    Raises:
        DatasetError: The file is missing, or is no store that this version can read.
    """
    chosen = RecordFilter(
        since=since, until=until, pipeline=pipeline, metric=metric, status=status, verdict=verdict
    )
    with open_store(location) as connection:
        condition, values = chosen.where()
        order = "DESC" if newest_first else "ASC"
        rows = connection.execute(
            # All parts of the statement are spelled out here; values are bound.
            f"""
            SELECT r.record FROM evaluations e JOIN records r USING (evaluation_id)
            WHERE EXISTS (
                SELECT 1 FROM metrics m WHERE m.evaluation_id = e.evaluation_id AND {condition}
            )
            ORDER BY e.created_at {order}, e.evaluation_id LIMIT :limit
            """,  # noqa: S608
            {**values, "limit": -1 if limit is None else limit},
        )
        for (text,) in rows:
            yield stored_record(text)


def stored_record(text: str) -> EvaluationRecord:
    """The record again.

    Raises:
        DatasetError: It was written by a later version, or by something else.
    """
    try:
        return record_of(text)
    except ValidationError as error:
        # The message of pydantic's own error would be about fields, not about what to do.
        raise DatasetError(
            f"the store holds a record this version cannot read ({error.error_count()} wrong "
            "fields); update ragaliq"
        ) from None


@contextmanager
def open_store(location: Location) -> Iterator[sqlite3.Connection]:
    """A connection that can only read.

    Raises:
        DatasetError: The file is missing, or is no store that this version can read.
    """
    path = parse_location(location)
    if not path.is_file():
        raise DatasetError(f"{path}: there is no such store")
    try:
        with closing(_connect(path)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise DatasetError(f"{path}: {words_for(error)}") from error


def _connect(path: Path) -> sqlite3.Connection:
    try:
        return _checked(path, "mode=ro")
    except sqlite3.OperationalError:
        # On a read-only medium SQLite cannot make the file it coordinates processes with; without
        # a journal to be read, nobody can be writing there either.
        journal = path.with_name(f"{path.name}-wal")
        if journal.exists() and journal.stat().st_size:
            raise
        return _checked(path, "mode=ro&immutable=1")


def _checked(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True, isolation_level=None)
    try:
        require_readable(connection)
    except DatasetError as error:
        connection.close()
        raise DatasetError(f"{path}: {error}") from None
    except BaseException:
        connection.close()
        raise
    return connection


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ConfigurationError(
                "a time without a time zone is ambiguous; give one with its zone"
            )
        return value.timestamp()
    return value
