"""`@monitor.trace`: runs of an application without a framework."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from ragaliq.capture import Found, FramingHandler, Reader, RunLog, find_current_runs
from ragaliq.live.run import RunHandle
from ragaliq.telemetry.emit import current_span_target

logger = logging.getLogger(__name__)


Begin = Callable[..., RunHandle | None]
"""`Monitor.begin` of the monitor that evaluates the answers."""


@dataclass(eq=False)
class _TracedCall:
    """Call of a traced function; without a handle it is not evaluated."""

    begin: Begin
    handle: RunHandle | None
    log: RunLog
    is_open: bool = True


_CALL: ContextVar[_TracedCall | None] = ContextVar("ragaliq_traced", default=None)
_READER = Reader()


def _current_runs() -> list[tuple[RunLog, Reader]]:
    """The call of this task or thread, for `add_context`."""
    call = _CALL.get()
    return [] if call is None else [(call.log, _READER)]


find_current_runs(_current_runs)


class CallTracer(FramingHandler):
    """Submits each call of a traced function to a monitor; see `Monitor.trace`.

    Args:
        begin: Begins a run of the monitor that evaluates the answers.
        answer: Converts what the function returned to the answer's text; None if it is the text.
    """

    _frame = _CALL

    def __init__(self, begin: Begin, answer: Callable[[Any], str] | None) -> None:
        self._begin, self._answer = begin, answer

    @staticmethod
    def _text_of_item(item: Any) -> str:
        return item if isinstance(item, str) else ""

    def frame_started(self, question: Any, pipeline: str) -> _TracedCall | None:
        """Begin a run, unless the call is inside another traced one of the monitor."""
        around = _CALL.get()
        if around is not None and around.is_open and around.begin == self._begin:
            return None
        handle = self._begin(uuid4().hex, pipeline=pipeline)
        log = RunLog("" if handle is None else handle.run_id)
        if isinstance(question, str):
            log.question = Found(question, "argument")
        return _TracedCall(self._begin, handle, log)

    def frame_ended(self, run: _TracedCall, answer: Any, error: BaseException | None) -> None:
        """Submit the run, or count why not; never raises."""
        run.is_open = False
        handle, log = run.handle, run.log
        if handle is None:
            return
        if error is not None:
            is_cancelled = isinstance(error, GeneratorExit | asyncio.CancelledError)
            handle.discard("cancelled" if is_cancelled else "errored")
            return
        try:
            text = answer if self._answer is None else self._answer(answer)
        except Exception as failure:  # noqa: BLE001 - the application's request must not notice
            logger.debug("the answer could not be taken: %s", type(failure).__name__)
            handle.discard("extract_failed")
            return
        if isinstance(text, str):
            log.answer = Found(text, "returned")
        if log.lacks:
            handle.discard(log.lacks)
        else:
            handle.submit(log, target=current_span_target())
