"""Verdicts as feedback on MLflow traces, by the tracking server's REST interface (3.x)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from ragaliq.core.results import EvaluationResult
from ragaliq.records.http import (
    NO_SPAN,
    ProductSink,
    endpoint_of,
    entry_id,
    metric_facts,
)
from ragaliq.records.record import EvaluationRecord

_TRACES = "/api/3.0/mlflow/traces"
_VARIABLES = {"MLFLOW_TRACKING_URI": ""}
_AUTOLOG = (
    "; MLflow's autolog keeps its spans apart from OpenTelemetry's unless "
    "MLFLOW_USE_DEFAULT_TRACER_PROVIDER=false is set"
)
_MARK = "ragaliq.entry_id"


class MLflowSink(ProductSink):
    """Leaves feedback on the evaluated traces in MLflow.

    A failed evaluation becomes feedback with an error and no value; any other metric without a
    score has its status as value. Runs whose span is not known are skipped. MLflow assigns feedback
    ids itself, so the sink first reads the existing feedback and adds what is missing: a retry
    changes nothing. A trace that MLflow does not know yet is retried.

    Args:
        endpoint: The tracking server; by default from `MLFLOW_TRACKING_URI`.
        token: By default from `MLFLOW_TRACKING_TOKEN`; may be absent.
        username: With a password instead; by default from `MLFLOW_TRACKING_USERNAME`.
        password: By default from `MLFLOW_TRACKING_PASSWORD`.

    Raises:
        ConfigurationError: The address is not a web address.
    """

    name: Final = "mlflow"

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        token: str | None = None,
        username: str | None = None,
        password: str | None = None,
    ) -> None:
        token = token or os.environ.get("MLFLOW_TRACKING_TOKEN")
        user = username or os.environ.get("MLFLOW_TRACKING_USERNAME")
        secret = password or os.environ.get("MLFLOW_TRACKING_PASSWORD")
        super().__init__(
            "MLflow",
            endpoint_of("MLflowSink", endpoint, _VARIABLES),
            headers={"authorization": f"Bearer {token}"} if token and not user else None,
            auth=(user, secret or "") if user else None,
        )

    def passes_over(self, record: EvaluationRecord) -> str:
        """Reason to skip a record: its run's span is not known."""
        return "" if record.run.target else NO_SPAN + _AUTOLOG

    async def _send(self, records: Sequence[EvaluationRecord]) -> None:
        [record] = records
        if record.run.target is None:
            return
        trace = f"{_TRACES}/tr-{record.run.target.trace_id}"
        known = _entries(await self.ask("GET", trace))
        for metric in record.results:
            # Add no feedback twice, and no failure next to the score of an earlier delivery.
            if known.isdisjoint((record.metric_id(metric), entry_id(record, metric))):
                body = {"assessment": _assessment(record, metric, record.run.target.trace_id)}
                await self.ask("POST", f"{trace}/assessments", json=body)


def _entries(answer: Any) -> set[str]:
    """Ids of the feedback that ragaliq has added to the trace already."""
    info: Any = answer
    for name in ("trace", "trace_info"):
        info = info.get(name) if isinstance(info, dict) else None
    found = info.get("assessments") if isinstance(info, dict) else None
    if not isinstance(found, list):
        return set()
    marks = [a["metadata"].get(_MARK) for a in found if isinstance(a.get("metadata"), dict)]
    return {mark for mark in marks if isinstance(mark, str)}


def _assessment(record: EvaluationRecord, metric: str, trace_id: str) -> dict[str, Any]:
    result = record.results[metric]
    when = datetime.fromtimestamp(record.created_at, UTC).isoformat().replace("+00:00", "Z")
    return {
        "assessment_name": metric,
        "trace_id": f"tr-{trace_id}",
        "source": {
            "source_type": "LLM_JUDGE" if result.model else "CODE",
            "source_id": result.model or result.judge,
        },
        "create_time": when,
        "last_update_time": when,
        "feedback": _feedback(result),
        **({"rationale": result.reasoning} if result.reasoning else {}),
        # The field is a map of strings.
        "metadata": {name: str(value) for name, value in metric_facts(record, metric).items()}
        | {_MARK: entry_id(record, metric)},
        "valid": True,
    }


def _feedback(result: EvaluationResult) -> dict[str, Any]:
    if result.score is not None:
        return {"value": result.score}
    if result.error_type:
        return {"value": None, "error": {"error_code": result.status.value.upper()}}
    return {"value": result.status.value}
