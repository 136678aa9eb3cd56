"""Capture of one call of a chain, for a caller that waits for its answer."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any
from uuid import UUID

from langchain_ragaliq.handler import RagaliqCallbackHandler
from langchain_ragaliq.reading import READER
from langchain_ragaliq.replacing import answer_of
from ragaliq import Monitor, NotEvaluated, RAGTestCase
from ragaliq.capture import RecordedRun, RunLog


class Recorder(RagaliqCallbackHandler):
    """Captures one call of a chain, and submits nothing.

    Attributes:
        recorded: The call.
    """

    def __init__(self, monitor: Monitor, **handler_options: Any) -> None:
        super().__init__(monitor, **handler_options)
        self._owners = OrderedDict()  # record the call also if another handler does
        self.recorded = RecordedRun("")

    def _begin(self, run_id: UUID, pipeline: str) -> RecordedRun:
        self.recorded = RecordedRun(str(run_id))
        return self.recorded

    def case(self, value: Any, output: Any) -> RunLog | RAGTestCase:
        """Case of the call.

        Args:
            value: The chain's input.
            output: Its output.

        Raises:
            ragaliq.NotEvaluated: There is no answer in it.
        """
        if self.recorded.log is not None:
            return self.recorded.log
        answer = answer_of(output)
        if self.recorded.reason != "not_rag" or answer is None:
            raise NotEvaluated(self.recorded.reason or "not_seen")
        question = READER.question(value)
        return RAGTestCase(
            query="" if question is None else question.text, context=[], response=answer
        )
