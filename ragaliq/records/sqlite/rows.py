"""Records as rows, and back."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable

from ragaliq.records.record import EvaluationRecord

__all__ = ["record_of", "upsert"]

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
_VERDICTS = ("SUPPORTED", "CONTRADICTED", "NOT_ENOUGH_INFO", None)
_DELETE_METRICS = "DELETE FROM metrics WHERE evaluation_id = ?"
_INSERT_METRIC = f"INSERT INTO metrics VALUES ({', '.join('?' * 14)})"  # noqa: S608 - no input


def upsert(connection: sqlite3.Connection, record: EvaluationRecord, text: str) -> None:
    """Store a record, of which `text` is the JSON form; replaces the one with its id."""
    if connection.execute(_UPSERT, _columns(record)).rowcount == 0:
        return
    connection.execute(_KEEP_RECORD, (record.evaluation_id, text))
    connection.execute(_DELETE_METRICS, (record.evaluation_id,))
    connection.executemany(_INSERT_METRIC, _metric_rows(record))


def record_of(text: str) -> EvaluationRecord:
    """The record again.

    Raises:
        pydantic.ValidationError: It was written by a later version, or by something else.
    """
    return EvaluationRecord.model_validate_json(text)


def _columns(record: EvaluationRecord) -> dict[str, object]:
    run, usage = record.run, record.usage
    return {
        "evaluation_id": record.evaluation_id,
        "run_id": run.run_id,
        "case_id": record.case_id,
        "pipeline": run.pipeline,
        "framework": run.framework,
        "trace_id": run.target.trace_id if run.target else None,
        "span_id": run.target.span_id if run.target else None,
        "session_id": run.session_id,
        "sampling_probability": run.sampling_probability,
        "created_at": record.created_at,
        "measured": sum(result.is_measured for result in record.results.values()),
        "tokens": usage.total_tokens,
        "cost_usd": usage.cost_usd,
    }


def _metric_rows(record: EvaluationRecord) -> Iterable[tuple[object, ...]]:
    for name, result in record.results.items():
        counts = Counter(claim.verdict for claim in result.claims)
        yield (
            record.evaluation_id,
            name,
            record.metric_id(name),
            result.status.value,
            result.score,
            result.passed,
            result.higher_is_better,
            result.judge,
            result.model,
            *(
                counts[verdict]
                for verdict in ("SUPPORTED", "CONTRADICTED", "NOT_ENOUGH_INFO", None)
            ),
            record.run.weight(name),
        )
