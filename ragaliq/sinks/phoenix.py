"""Verdicts as annotations of Phoenix spans (`POST /v1/span_annotations`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

from ragaliq.sinks.base import SinkError
from ragaliq.sinks.delivery import deliver_each, entry_id, metric_facts
from ragaliq.sinks.http import SinkClient, endpoint_of
from ragaliq.sinks.record import EvaluationRecord, MetricRecord

__all__ = ["PhoenixSink"]

_VARIABLES = {
    "PHOENIX_ENDPOINT": "",
    "PHOENIX_BASE_URL": "",
    "PHOENIX_COLLECTOR_ENDPOINT": "http://localhost:6006",
}


class PhoenixSink:
    """Annotates the evaluated spans in Phoenix.

    A metric without a score becomes an annotation whose label is its status. Runs whose span is
    not known have nothing to annotate and are passed over. Phoenix keeps one annotation for each
    span, name and identifier, so that a retry changes nothing; it holds annotations of spans that
    have not arrived yet and tries them again by itself.

    Args:
        endpoint: Phoenix's address; by default from `PHOENIX_ENDPOINT`, `PHOENIX_BASE_URL` or
            `PHOENIX_COLLECTOR_ENDPOINT`, else `http://localhost:6006`.
        api_key: By default from `PHOENIX_API_KEY`; may be absent.

    Raises:
        ConfigurationError: The address is none.
    """

    name: Final = "phoenix"

    def __init__(self, endpoint: str | None = None, *, api_key: str | None = None) -> None:
        key = api_key or os.environ.get("PHOENIX_API_KEY")
        self._client = SinkClient(
            "Phoenix",
            # The collector's address is often given with the path of its traces.
            endpoint_of("PhoenixSink", endpoint, _VARIABLES).removesuffix("/v1/traces"),
            headers={"authorization": f"Bearer {key}"} if key else None,
        )

    def __repr__(self) -> str:
        return f"PhoenixSink({self._client.base_url!r})"

    async def write(self, records: Sequence[EvaluationRecord]) -> None:
        """Send all annotations in one request; one by one when Phoenix finds fault with some.

        Raises:
            SinkError: Some or all were not accepted.
        """
        try:
            await self._send(records)
        except SinkError as error:
            if error.kind not in ("http_400", "http_422") or len(records) == 1:
                raise
            await deliver_each(records, self._send_one)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _send_one(self, record: EvaluationRecord) -> None:
        await self._send([record])

    async def _send(self, records: Sequence[EvaluationRecord]) -> None:
        data = [
            _annotation(record.run.target.span_id, metric, record)
            for record in records
            if record.run.target is not None
            for metric in record.metrics
        ]
        if data:
            await self._client.post(
                "/v1/span_annotations", {"data": data}, params={"sync": "false"}
            )


def _annotation(span_id: str, metric: MetricRecord, record: EvaluationRecord) -> dict[str, Any]:
    result: dict[str, Any] = {"label": metric.status.value}
    if metric.score is not None:
        result = {"score": metric.score, "label": "pass" if metric.passed else "fail"}
    if metric.reasoning:
        result["explanation"] = metric.reasoning
    return {
        "span_id": span_id,
        "name": metric.name,
        "annotator_kind": "LLM" if metric.model else "CODE",
        "identifier": entry_id(metric),
        "result": result,
        "metadata": metric_facts(metric, record),
    }
