"""Verdicts as feedback on LangSmith runs (`POST /feedback`), by plain HTTP: no SDK is needed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final
from uuid import NAMESPACE_URL, UUID, uuid5

from ragaliq.errors import ConfigurationError
from ragaliq.records.http import ProductSink, endpoint_of, entry_id, metric_facts
from ragaliq.records.record import EvaluationRecord, SinkError

_VARIABLES = {"LANGSMITH_ENDPOINT": "", "LANGCHAIN_ENDPOINT": "https://api.smith.langchain.com"}


class LangSmithSink(ProductSink):
    """Leaves feedback on the evaluated runs in LangSmith.

    LangSmith's tracer and ragaliq's handler both use LangChain's run id; runs whose id is not a
    UUID are skipped. A metric without a score has its status as value. Feedback has a computed id,
    so that a retry changes nothing.

    Args:
        endpoint: LangSmith's address; by default from `LANGSMITH_ENDPOINT` or
            `LANGCHAIN_ENDPOINT`, else its cloud.
        api_key: By default from `LANGSMITH_API_KEY` or `LANGCHAIN_API_KEY`.
        workspace_id: By default from `LANGSMITH_WORKSPACE_ID`; needed if the key is valid for
            several workspaces.
        project_id: Id of the runs' project; newer servers require it.

    Raises:
        ConfigurationError: The key is missing, or the address is not a web address.
    """

    name: Final = "langsmith"
    needs_span = False

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        api_key: str | None = None,
        workspace_id: str | None = None,
        project_id: str | None = None,
    ) -> None:
        environment = os.environ.get
        key = api_key or environment("LANGSMITH_API_KEY") or environment("LANGCHAIN_API_KEY")
        if not key:
            raise ConfigurationError("LangSmithSink: give api_key, or set LANGSMITH_API_KEY")
        workspace = workspace_id or environment("LANGSMITH_WORKSPACE_ID")
        self._project_id = project_id
        headers = {"x-api-key": key, **({"x-tenant-id": workspace} if workspace else {})}
        address = endpoint_of("LangSmithSink", endpoint, _VARIABLES)
        super().__init__("LangSmith", address, headers=headers)

    def passes_over(self, record: EvaluationRecord) -> str:
        """Reason to skip a record: its run's id is not one of LangSmith's."""
        try:
            UUID(record.run.run_id)
        except ValueError:
            return (
                "the run's id is not a UUID, as LangSmith's are; give the id of the LangSmith run "
                "as run_id"
            )
        return ""

    async def _send(self, records: Sequence[EvaluationRecord]) -> None:
        [record] = records
        if self.passes_over(record):
            return
        for metric, result in record.results.items():
            feedback = {
                "id": str(uuid5(NAMESPACE_URL, entry_id(record, metric))),
                "run_id": str(UUID(record.run.run_id)),
                "key": metric,
                "score": result.score,
                "value": None if result.score is not None else result.status.value,
                "comment": result.reasoning or None,
                "created_at": datetime.fromtimestamp(record.created_at, UTC).isoformat(),
                "feedback_source": {
                    "type": "model" if result.model else "api",
                    "metadata": metric_facts(record, metric),
                },
                **({"session_id": self._project_id} if self._project_id else {}),
            }
            try:
                await self.ask("POST", "/feedback", json=feedback)
            except SinkError as error:
                if error.kind != "http_409":  # an earlier attempt stored it
                    raise
