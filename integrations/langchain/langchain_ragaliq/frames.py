"""Runs that the application frames by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

if TYPE_CHECKING:
    from langchain_ragaliq.handler import RagaliqCallbackHandler

FRAME: ContextVar[int | None] = ContextVar("ragaliq_langchain_frame", default=None)
"""The run that the code of this task or thread framed by hand."""


class FramedRun:
    """A run that the application frames itself; see `RagaliqCallbackHandler.run`.

    Attributes:
        answer: Set it to the answer; by default it is the last model's reply.
    """

    def __init__(self, handler: RagaliqCallbackHandler, question: Any, pipeline: str) -> None:
        self.answer: Any = None
        self._handler, self._run = handler, handler.frame_started(uuid4(), question, pipeline)
        self._within: Any = None

    @contextmanager
    def inside(self) -> Iterator[None]:
        """The time in which what happens in this task or thread belongs to the run."""
        token = FRAME.set(None if self._run is None else self._run.key)
        try:
            yield
        finally:
            # A coroutine that is dropped half-way may be closed in another context.
            with suppress(ValueError):
                FRAME.reset(token)

    def ended(self, error: BaseException | None = None) -> None:
        """The run is over; only the first call counts."""
        if self._run is not None:
            self._handler.frame_ended(self._run, self.answer, error)

    def __enter__(self) -> Self:
        self._within = self.inside()
        self._within.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._within.__exit__(None, None, None)
        self.ended(error)
