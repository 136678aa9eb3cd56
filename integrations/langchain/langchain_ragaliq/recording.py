"""Keeping what one call of a chain was made from, for a caller who waits for its answer."""

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
    """Keeps one call of a chain, and submits nothing.

    Attributes:
        recorded: The call.
    """

    def __init__(self, monitor: Monitor, **handler_options: Any) -> None:
        super().__init__(monitor, **handler_options)
        self._owners = OrderedDict()  # whoever else follows the call, this does too
        self.recorded = RecordedRun("")

    def _begin(self, run_id: UUID, pipeline: str) -> RecordedRun:
        self.recorded = RecordedRun(str(run_id))
        return self.recorded

    def case(self, value: Any, output: Any) -> RunLog | RAGTestCase:
        """The case that the call amounts to.

        Args:
            value: What the chain was called with.
            output: What it returned.

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
