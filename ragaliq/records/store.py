"""Embedded store and its reader: one SQLite file, several processes, nothing to install."""

from __future__ import annotations

import json
import logging
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple, get_args

from pydantic import ValidationError

from ragaliq.core.checks import require_choice
from ragaliq.core.results import Status, Verdict
from ragaliq.core.sync import WorkThread
from ragaliq.errors import ConfigurationError, DatasetError, StoreError
from ragaliq.records.record import EvaluationRecord, SinkError
from ragaliq.records.sqlite_file import (
    Location,
    WriterConnection,
    failure,
    parse_location,
    parse_options,
    require_readable,
    store_error,
)

logger = logging.getLogger(__name__)

_DAY = 86_400.0
# Number of added records after which those beyond the limits are deleted.
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
    """Sink that keeps records in one SQLite file.

    One thread writes a batch at a time. Several processes may write to one file. A record replaces
    the stored one with its id, unless a failure would replace a score.

    Args:
        location: `sqlite:///relative/path`, `sqlite:////absolute/path`, or a path. An address may
            end in `?max_age_days=30&max_rows=100000`.
        max_age_days: Records older than this are deleted; None keeps them.
        max_rows: The oldest records beyond this number are deleted; None keeps them.
        busy_timeout: Seconds to wait for another process that writes.

    Raises:
        ConfigurationError: The address or a limit is wrong. Errors of the file are counted failures
            of the first write, which opens it.
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
        self._unpruned = _PRUNE_EVERY  # so that the first write deletes

    def __repr__(self) -> str:
        return f"SQLiteStore({str(self.path)!r})"

    async def write(self, records: Sequence[EvaluationRecord]) -> None:
        """Store the records, all or none; a record that SQLite cannot hold is refused alone.

        Raises:
            SinkError: They were not stored, or some cannot be.
        """
        await self._thread.run(self._write, records)

    async def holds(self, evaluation_id: str) -> bool:
        """Check whether a record with this id is stored.

        Raises:
            sqlite3.Error: The file cannot be read.
        """
        return await self._thread.run(self._holds, evaluation_id)

    async def settle(self) -> None:
        """Checkpoint the write-ahead log, so that the file may be copied alone."""
        await self._thread.run(self._connection.empty_log)

    async def aclose(self) -> None:
        """Close the file; the next write opens it again."""
        await self._thread.run(self._connection.close)
        self._thread.stop(timeout=0.0)

    # --- on the writer thread -----------------------------------------------------------------

    def _write(self, records: Sequence[EvaluationRecord]) -> None:
        texts: list[str | None] = []  # made before the file is locked
        for record in records:
            try:
                texts.append(record.model_dump_json())
            except ValueError:  # half a surrogate pair, such as in a judge's name
                texts.append(None)
        unfit = []
        try:
            with self._connection.transaction() as connection:
                for record, text in zip(records, texts, strict=True):
                    if text is None or not _stored(connection, record, text):
                        unfit.append(record)
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
            # Freed pages go back to the file system, a bounded number at a time. Each call frees
            # one page, whatever the number: its rows have no columns, so Python stops at once.
            (free,) = connection.execute("PRAGMA freelist_count").fetchone()
            for _ in range(min(free, _PAGES_GIVEN_BACK)):
                connection.execute("PRAGMA incremental_vacuum(1)")
            logger.info("the store deleted %d records beyond its limits", deleted)


# --- a record as rows -----------------------------------------------------------------------------

# A job that is delivered twice replaces its record, but a failure never replaces a score.
_UPSERT = """
INSERT INTO evaluations VALUES (
    :evaluation_id, :run_id, :case_id, :pipeline, :framework, :trace_id, :span_id, :session_id,
    :sampling_probability, :created_at, :measured, :tokens, :cost_usd
)
ON CONFLICT (evaluation_id) DO UPDATE SET
    created_at = excluded.created_at, measured = excluded.measured, tokens = excluded.tokens,
    cost_usd = excluded.cost_usd
WHERE excluded.measured >= evaluations.measured
"""
_KEEP_RECORD = """
INSERT INTO records VALUES (?, ?)
ON CONFLICT (evaluation_id) DO UPDATE SET record = excluded.record
"""
_VERDICTS: tuple[Verdict | None, ...] = ("SUPPORTED", "CONTRADICTED", "NOT_ENOUGH_INFO", None)
_DELETE_METRICS = "DELETE FROM metrics WHERE evaluation_id = ?"
_INSERT_METRIC = f"INSERT INTO metrics VALUES ({', '.join('?' * 14)})"  # noqa: S608 - no input


def _stored(connection: sqlite3.Connection, record: EvaluationRecord, text: str) -> bool:
    """Store a record, of which `text` is the JSON form; replaces the one with its id.

    Returns:
        False, and nothing is stored, if a value does not fit its column.
    """
    run, results = record.run, record.results
    row = run.model_dump(
        include={"run_id", "pipeline", "framework", "session_id", "sampling_probability"}
    ) | {
        "evaluation_id": record.evaluation_id,
        "case_id": record.case_id,
        "trace_id": run.target.trace_id if run.target else None,
        "span_id": run.target.span_id if run.target else None,
        "created_at": record.created_at,
        "measured": sum(result.is_measured for result in results.values()),
        "tokens": record.usage.total_tokens,
        "cost_usd": record.usage.cost_usd,
    }
    metrics = []
    for name, result in results.items():
        verdicts = [claim.verdict for claim in result.claims]
        metrics.append(
            (
                record.evaluation_id,
                name,
                record.metric_id(name),
                result.status.value,
                result.score,
                result.passed,
                result.higher_is_better,
                result.judge,
                result.model,
                *map(verdicts.count, _VERDICTS),
                run.weight(name),
            )
        )
    connection.execute("SAVEPOINT record")
    try:
        if connection.execute(_UPSERT, row).rowcount:
            connection.execute(_KEEP_RECORD, (record.evaluation_id, text))
            connection.execute(_DELETE_METRICS, (record.evaluation_id,))
            connection.executemany(_INSERT_METRIC, metrics)
    except (ValueError, OverflowError, sqlite3.IntegrityError):
        connection.execute("ROLLBACK TO record")
        return False
    connection.execute("RELEASE record")  # not after a full disk, which ends the transaction
    return True


# --- reading --------------------------------------------------------------------------------------

Moment = float | datetime
"""Unix time in seconds, or a datetime with a time zone."""


def read_records(
    location: Location,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    pipeline: str | None = None,
    metric: str | None = None,
    status: str | None = None,
    verdict: Verdict | None = None,
    limit: int | None = None,
) -> Iterator[EvaluationRecord]:
    """Read records of a store lazily, in the order of time.

    Args:
        location: `sqlite:///path` or a path.
        since: Only records evaluated then or later.
        until: Only records evaluated before then.
        pipeline: Only records of this pipeline; the empty string for runs without a name.
        metric: Only records with this metric, of any status.
        status: Only records with this status of `metric`, or of any metric.
        verdict: Only records with a claim of this verdict, in `metric` or any metric.
        limit: Most records.

    Raises:
        ConfigurationError: A time has no time zone, or the verdict is not one.
        DatasetError: The file is missing, or is not a store that this version can read.
    """
    if verdict is not None:  # it becomes a column's name
        require_choice(verdict, *get_args(Verdict), name="verdict")
    chosen = {
        "e.created_at >= :since": ("since", seconds_of(since)),
        "e.created_at < :until": ("until", seconds_of(until)),
        "e.pipeline = :pipeline": ("pipeline", pipeline),
        "m.name = :metric": ("metric", metric),
        "m.status = :status": ("status", status),
        f"m.{str(verdict).lower()} > 0": ("verdict", verdict),
    }
    conditions = [text for text, (_, value) in chosen.items() if value is not None]
    condition, values = " AND ".join(conditions) or "1", dict(chosen.values())
    with _open_store(location) as connection:
        rows = connection.execute(
            # All parts of the statement are literals; values are bound.
            f"""
            SELECT r.record FROM evaluations e JOIN records r USING (evaluation_id)
            WHERE EXISTS (
                SELECT 1 FROM metrics m WHERE m.evaluation_id = e.evaluation_id AND {condition}
            )
            ORDER BY e.created_at, e.evaluation_id LIMIT :limit
            """,  # noqa: S608
            {**values, "limit": -1 if limit is None else limit},
        )
        for (text,) in rows:
            try:
                record = EvaluationRecord.model_validate_json(text)
            except ValidationError as error:
                # pydantic's own message would be about fields, not about what to do.
                raise DatasetError(
                    f"the store holds a record this version cannot read ({error.error_count()} "
                    "wrong fields); update ragaliq"
                ) from None
            yield record


class StoredScore(NamedTuple):
    """One measured score with the fields that reports and alarms need, without its whole record.

    Attributes:
        run_id: The run that gave the answer.
        pipeline: Its pipeline.
        time: Unix time of the evaluation.
        metric: The metric.
        score: 0 to 1.
        weight: Number of runs of all traffic that it represents; 0 for none.
        judge: The judge's name.
        fingerprint: Identifies what made the score.
        release: The application's release, if known.
        higher_is_better: False for metrics where a low score is good.
        trace_id: Id of the application's trace; empty if the run has none.
        model: The judge's model; None if it has none.
    """

    run_id: str
    pipeline: str
    time: float
    metric: str
    score: float
    weight: float
    judge: str
    fingerprint: str
    release: str
    higher_is_better: bool
    trace_id: str = ""
    model: str | None = None


def scores_of(record: EvaluationRecord) -> Iterator[StoredScore]:
    """Measured scores of a record."""
    run = record.run
    for metric, result in record.results.items():
        if result.is_measured and result.score is not None:
            yield StoredScore(
                run.run_id,
                run.pipeline,
                record.created_at,
                metric,
                result.score,
                run.weight(metric),
                result.judge,
                result.fingerprint,
                run.release,
                result.higher_is_better,
                run.target.trace_id if run.target else "",
                result.model,
            )


def read_scores(
    location: Location,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    pipeline: str | None = None,
    metric: str | None = None,
) -> Iterator[StoredScore]:
    """Read measured scores of a store in the order of time; much faster than whole records.

    Takes and raises what `read_records` does.
    """
    values = {
        "since": seconds_of(since),
        "until": seconds_of(until),
        "pipeline": pipeline,
        "metric": metric,
        "measured": json.dumps([each for each in Status if each.is_measured]),
    }
    with _open_store(location) as connection:
        yield from (
            StoredScore._make((*row[:-3], bool(row[-3]), *row[-2:]))
            for row in connection.execute(
                """
                SELECT e.run_id, e.pipeline, e.created_at, m.name, m.score, m.weight, m.judge,
                    coalesce(
                        json_extract(r.record, '$.results."' || m.name || '".fingerprint'), ''
                    ),
                    coalesce(json_extract(r.record, '$.run.release'), ''), m.higher_is_better,
                    coalesce(json_extract(r.record, '$.run.target.trace_id'), ''), m.model
                FROM evaluations e JOIN metrics m USING (evaluation_id)
                    JOIN records r USING (evaluation_id)
                WHERE m.score IS NOT NULL AND m.status IN (SELECT value FROM json_each(:measured))
                    AND (:since IS NULL OR e.created_at >= :since)
                    AND (:until IS NULL OR e.created_at < :until)
                    AND (:pipeline IS NULL OR e.pipeline = :pipeline)
                    AND (:metric IS NULL OR m.name = :metric)
                ORDER BY e.created_at, e.evaluation_id
                """,
                values,
            )
        )


@contextmanager
def _open_store(location: Location) -> Iterator[sqlite3.Connection]:
    """Open a read-only connection."""
    path = parse_location(location)
    if not path.is_file():
        raise DatasetError(f"{path}: there is no store here")
    try:
        with closing(_connect(path)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise DatasetError(f"{path}: {failure(error)[1]}") from error


def _connect(path: Path) -> sqlite3.Connection:
    try:
        return _checked(path, "mode=ro")
    except sqlite3.OperationalError:
        # On a read-only medium SQLite cannot create its shared-memory file; without a log to read,
        # no process can be writing there either.
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


def seconds_of(moment: Moment | None) -> float | None:
    """Convert a moment to Unix time."""
    if not isinstance(moment, datetime):
        return moment
    if moment.tzinfo is None:
        raise ConfigurationError("a time without a time zone is ambiguous; give one with its zone")
    return moment.timestamp()
