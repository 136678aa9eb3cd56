"""Records as rows, and back."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable

from ragaliq.sinks.record import EvaluationRecord, MetricRecord

__all__ = ["record_of", "upsert"]

# A job that is delivered twice replaces its record, but a failure never replaces a score.
_UPSERT = """
INSERT INTO evaluations VALUES (
    :evaluation_id, :run_id, :case_id, :pipeline, :framework, :trace_id, :span_id, :session_id,
    :sampling_probability, :created_at, :measured, :tokens, :cost_usd, :record
)
ON CONFLICT (evaluation_id) DO UPDATE SET
    created_at = excluded.created_at, measured = excluded.measured, tokens = excluded.tokens,
    cost_usd = excluded.cost_usd, record = excluded.record
WHERE excluded.measured >= evaluations.measured
"""
_DELETE_METRICS = "DELETE FROM metrics WHERE evaluation_id = ?"
_INSERT_METRIC = f"INSERT INTO metrics VALUES ({', '.join('?' * 14)})"  # noqa: S608 - no input


def upsert(connection: sqlite3.Connection, record: EvaluationRecord, text: str) -> None:
    """Store a record, of which `text` is the JSON form; replaces the one with its id."""
    if connection.execute(_UPSERT, _columns(record, text)).rowcount == 0:
        return
    connection.execute(_DELETE_METRICS, (record.evaluation_id,))
    connection.executemany(_INSERT_METRIC, _metric_rows(record))


def record_of(text: str) -> EvaluationRecord:
    """The record again.

    Raises:
        pydantic.ValidationError: It was written by a later version, or by something else.
    """
    return EvaluationRecord.model_validate_json(text)


def _columns(record: EvaluationRecord, text: str) -> dict[str, object]:
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
        "measured": sum(metric.is_measured for metric in record.metrics),
        "tokens": usage.total_tokens,
        "cost_usd": usage.cost_usd,
        "record": text,
    }


def _metric_rows(record: EvaluationRecord) -> Iterable[tuple[object, ...]]:
    for metric in record.metrics:
        yield (
            record.evaluation_id,
            metric.name,
            metric.metric_id,
            metric.status.value,
            metric.score,
            metric.passed,
            metric.higher_is_better,
            metric.judge,
            metric.model,
            *_claim_counts(metric),
            record.run.weight(metric.name),
        )


def _claim_counts(metric: MetricRecord) -> tuple[int, int, int, int]:
    counts = Counter(claim.verdict for claim in metric.claims)
    return counts["SUPPORTED"], counts["CONTRADICTED"], counts["NOT_ENOUGH_INFO"], counts[None]
