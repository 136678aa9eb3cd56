"""Verdicts as annotations of Phoenix spans (`POST /v1/span_annotations`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

from ragaliq.core.results import EvaluationResult
from ragaliq.records.http import ProductSink, endpoint_of, entry_id, metric_facts
from ragaliq.records.record import EvaluationRecord

_VARIABLES = {
    "PHOENIX_ENDPOINT": "",
    "PHOENIX_BASE_URL": "",
    "PHOENIX_COLLECTOR_ENDPOINT": "http://localhost:6006",
}


class PhoenixSink(ProductSink):
    """Annotates the evaluated spans in Phoenix.

    A metric without a score becomes an annotation whose label is its status. Runs whose span is
    not known are skipped. Phoenix keeps one annotation for each span, name and identifier, so that
    a retry changes nothing; it keeps annotations of spans that have not arrived yet and retries
    them itself.

    Args:
        endpoint: Phoenix's address; by default from `PHOENIX_ENDPOINT`, `PHOENIX_BASE_URL` or
            `PHOENIX_COLLECTOR_ENDPOINT`, else `http://localhost:6006`.
        api_key: By default from `PHOENIX_API_KEY`; may be absent.

    Raises:
        ConfigurationError: The address is not a web address.
    """

    name: Final = "phoenix"
    many = True

    def __init__(self, endpoint: str | None = None, *, api_key: str | None = None) -> None:
        key = api_key or os.environ.get("PHOENIX_API_KEY")
        # The collector's address is often given with the path of its traces.
        address = endpoint_of("PhoenixSink", endpoint, _VARIABLES).removesuffix("/v1/traces")
        headers = {"authorization": f"Bearer {key}"} if key else None
        super().__init__("Phoenix", address, headers=headers)

    async def _send(self, records: Sequence[EvaluationRecord]) -> None:
        data = [
            _annotation(record.run.target.span_id, record, name, result)
            for record in records
            if record.run.target is not None
            for name, result in record.results.items()
        ]
        if data:
            await self.ask(
                "POST", "/v1/span_annotations", json={"data": data}, params={"sync": "false"}
            )


def _annotation(
    span_id: str, record: EvaluationRecord, name: str, result: EvaluationResult
) -> dict[str, Any]:
    shown: dict[str, Any] = {"label": result.status.value}
    if result.score is not None:
        shown = {"score": result.score, "label": "pass" if result.passed else "fail"}
    if result.reasoning:
        shown["explanation"] = result.reasoning
    return {
        "span_id": span_id,
        "name": name,
        "annotator_kind": "LLM" if result.model else "CODE",
        "identifier": entry_id(record, name),
        "result": shown,
        "metadata": metric_facts(record, name),
    }
