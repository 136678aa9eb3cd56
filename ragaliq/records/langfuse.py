"""Verdicts as Langfuse scores (`POST /api/public/scores`), by plain HTTP: no SDK is needed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from ragaliq.core.results import EvaluationResult
from ragaliq.errors import ConfigurationError
from ragaliq.records.http import ProductSink, endpoint_of, entry_id, metric_facts
from ragaliq.records.record import EvaluationRecord, SinkError

_PATH = "/api/public/scores"
_VARIABLES = {"LANGFUSE_BASE_URL": "", "LANGFUSE_HOST": "https://cloud.langfuse.com"}


class LangfuseSink(ProductSink):
    """Scores the evaluated observations in Langfuse.

    A metric without a score becomes a categorical score named `<metric>_status`, since a name holds
    one type of value in Langfuse. Runs whose span is not known are skipped. Langfuse keeps one
    score for each id, so that a retry changes nothing.

    Args:
        endpoint: Langfuse's address; by default from `LANGFUSE_BASE_URL` or `LANGFUSE_HOST`, else
            its European cloud.
        public_key: By default from `LANGFUSE_PUBLIC_KEY`.
        secret_key: By default from `LANGFUSE_SECRET_KEY`.

    Raises:
        ConfigurationError: A key is missing, or the address is not a web address.
    """

    name: Final = "langfuse"
    many = True

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        public_key: str | None = None,
        secret_key: str | None = None,
    ) -> None:
        user = public_key or os.environ.get("LANGFUSE_PUBLIC_KEY")
        password = secret_key or os.environ.get("LANGFUSE_SECRET_KEY")
        if not user or not password:
            raise ConfigurationError(
                "LangfuseSink: give public_key and secret_key, or set LANGFUSE_PUBLIC_KEY and "
                "LANGFUSE_SECRET_KEY"
            )
        address = endpoint_of("LangfuseSink", endpoint, _VARIABLES)
        super().__init__("Langfuse", address, auth=(user, password))

    async def _send(self, records: Sequence[EvaluationRecord]) -> None:
        scores = [score for record in records for score in _scores(record)]
        if not scores:
            return
        try:
            answer = await self.ask("POST", _PATH, json=scores)
        except SinkError as error:
            if error.kind not in ("http_400", "http_413") or len(records) > 1:
                raise
            # Older servers take one score and no list; newer ones limit the list's size.
            for score in scores:
                await self.ask("POST", _PATH, json=score)
            return
        # A 207 reply only counts the rejected scores; ids make it safe to send all again.
        if isinstance(answer, dict) and answer.get("rejected"):
            raise SinkError("Langfuse rejected scores", kind="rejected", permanent=True)


def _scores(record: EvaluationRecord) -> list[dict[str, Any]]:
    target = record.run.target
    if target is None:
        return []
    return [
        {
            "id": entry_id(record, name),
            "traceId": target.trace_id,
            "observationId": target.span_id,
            **_value(name, result),
            **({"comment": result.reasoning} if result.reasoning else {}),
            "metadata": metric_facts(record, name),
            "timestamp": datetime.fromtimestamp(record.created_at, UTC).isoformat(),
        }
        for name, result in record.results.items()
    ]


def _value(name: str, result: EvaluationResult) -> dict[str, Any]:
    if result.score is None:
        status = result.status.value
        return {"name": f"{name}_status", "value": status, "dataType": "CATEGORICAL"}
    return {"name": name, "value": result.score, "dataType": "NUMERIC"}
