"""Runs without a chain around them: searches and model calls of plain code, and framed by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from ragaliq import Passage
from ragaliq.capture import Found, Message

if TYPE_CHECKING:
    from langchain_ragaliq.handler import RagaliqCallbackHandler

FRAME: ContextVar[int | None] = ContextVar("ragaliq_langchain_frame", default=None)
"""The run that the code of this task or thread framed by hand."""

_MOST_SEARCHES = 8
_LABELLED = re.compile(
    r"\s*(?:user |customer )?(?:question|query|frage|pregunta|domanda)\s*[:：]", re.IGNORECASE
)
_ASKS = ("?", "？", "؟")


@dataclass(eq=False)
class Search:
    """A search of plain code: what it asked, and what it found, once it has ended.

    It is noted when it begins: in asynchronous code its end is reported in another context.
    """

    query: str
    passages: Sequence[Passage] = ()


_SEARCHES: ContextVar[tuple[Search, ...]] = ContextVar("ragaliq_langchain_searches", default=())


def note_search(search: Search) -> None:
    """Remember a search of this task or thread; the latest few are kept."""
    _SEARCHES.set((*_SEARCHES.get(), search)[-_MOST_SEARCHES:])


def searches_shown(messages: Sequence[Message]) -> list[Search]:
    """The searches of this task or thread of which a model is shown a passage."""
    texts = [text for message in messages for text in (*message.texts, *message.documents)]
    return [
        search
        for search in _SEARCHES.get()
        if any(passage.text in text for passage in search.passages for text in texts)
    ]


def question_shown(messages: Sequence[Message], searches: Sequence[Search]) -> Found | None:
    """The question in a prompt of plain code: what was searched with, or the line that asks."""
    asked = [message for message in messages if message.role == "user"]
    text = asked[-1].text if asked else ""
    for search in reversed(searches):
        if search.query.strip() and search.query in text:
            return Found(search.query.strip(), "search")
    rest = text
    for search in searches:
        for passage in search.passages:
            rest = rest.replace(passage.text, "\n")
    if rest == text:  # the passages are in other messages
        return Found(text.strip(), "prompt") if text.strip() else None
    lines = [line for line in rest.splitlines() if line.strip()]
    for line in reversed(lines):
        if (label := _LABELLED.match(line)) and line[label.end() :].strip():
            return Found(line[label.end() :].strip(), "prompt")
    for line in reversed(lines):
        if line.rstrip().endswith(_ASKS):
            return Found(line.strip(), "prompt")
    return None


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
