"""Capture of an engine's calls, for a caller that waits for the answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from llama_index.evaluation.ragaliq.reading import passages_of, payload_of, sources_of
from llama_index.evaluation.ragaliq.span_handler import RagaliqSpanHandler
from ragaliq import Monitor
from ragaliq.capture import Found, RecordedRun, RunLog

_LISTENING = threading.Lock()
_WATCHED: ContextVar[tuple[Recorder, list[RecordedRun]] | None] = ContextVar(
    "ragaliq_guarded", default=None
)


class Recorder(RagaliqSpanHandler):
    """Captures the runs inside blocks of `recording`, and submits nothing.

    It listens while there is such a block.
    """

    if TYPE_CHECKING:
        _calls: int

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(
            monitor,
            covers=lambda: (watched := _WATCHED.get()) is not None and watched[0] is self,
        )
        vars(self)["_calls"] = 0

    def _begin(self, span_id: str, pipeline: str = "") -> RecordedRun | None:
        watched = _WATCHED.get()
        if watched is None:
            return None
        watched[1].append(RecordedRun(span_id))
        return watched[1][-1]

    @contextmanager
    def recording(self) -> Iterator[list[RecordedRun]]:
        """Collect the runs that end inside the block, in this thread or task and its children."""
        seen: list[RecordedRun] = []
        token = _WATCHED.set((self, seen))
        self.listen()
        try:
            yield seen
        finally:
            self.stop_listening()
            _WATCHED.reset(token)

    def listen(self) -> None:
        """Listen, for one more block."""
        with _LISTENING:
            vars(self)["_calls"] += 1
            super().listen()

    def stop_listening(self) -> None:
        """Stop listening after the last block."""
        with _LISTENING:
            vars(self)["_calls"] -= 1
            if not self._calls:
                super().stop_listening()

    def scored_by_guard(self, span_id: str, answer: str) -> None:
        """Do nothing: the enclosing guard must check what it makes of the answer."""


def case_of_call(seen: list[RecordedRun], question: str, answer: str, response: Any) -> RunLog:
    """Log of an engine's call: that of the last recorded run.

    Args:
        seen: The runs inside the call.
        question: The question.
        answer: The answer's text.
        response: The engine's response.
    """
    logs = [run.log for run in seen if run.log is not None]
    if logs:
        log = logs[-1]
        log.id = uuid4().hex
        log.question = Found(question, log.question.where)
        log.answer = Found(answer, log.answer.where)
        return log
    # Nothing was retrieved as far as can be seen: what the response itself names counts.
    # Not a case: building one reads metadata, whose errors are not the request's.
    log = RunLog(uuid4().hex, question=Found(question, ""), answer=Found(answer, ""))
    log.cited_sources(passages_of(sources_of(payload_of(response))))
    return log
