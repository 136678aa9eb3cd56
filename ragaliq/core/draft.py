"""A case as the request path enqueues it: plain strings, validated only where there is time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from sys import getsizeof
from typing import Any, NamedTuple, Protocol

from ragaliq.core.citations import citations_in
from ragaliq.core.test_case import CaseSources, ContextChunk, RAGTestCase, Turn

_LONGEST_VALUE = 1_000
_UNKNOWN = CaseSources()


class Passage(NamedTuple):
    """A retrieved text, the id it has where it came from, the retriever's score, its metadata."""

    text: str
    id: str | None = None
    score: float | None = None
    metadata: Mapping[str, Any] | None = None


class FoundContext(NamedTuple):
    """The context of an answer, and how it was found.

    Attributes:
        passages: In rank order.
        source: Where it came from, such as `prompt`, `retriever` or `tool`.
        missing: Why there is none.
        history: The conversation before the question, where one was seen.
    """

    passages: Sequence[Passage]
    source: str = ""
    missing: str = ""
    history: Sequence[Turn] = ()


class ContextFinder(Protocol):
    """Finds the context of an answer among what a run held; asked where there is time."""

    @property
    def size(self) -> int:
        """Bytes its texts take, about."""

    def find(self, question: str, answer: str) -> FoundContext:
        """The context of this answer."""


@dataclass(slots=True, kw_only=True)
class CaseDraft:
    """What an adapter knows of a finished run; `build` makes a case of it, on the worker.

    Building and checking a case takes longer than all the rest an adapter does at the end of a
    run, and strings are shared, so that holding a draft costs no more than holding a case.

    Attributes:
        id: The run's id.
        query: The user's question.
        passages: What was retrieved, in rank order, where that is known; a text that is there twice
            counts once. None leaves it to `finder`.
        response: The application's answer.
        finder: Finds the conversation, and the passages where they are not known, when they are
            first asked for.
        tags: Free labels of the run.
        metadata: What the application says about the run: tenant, user, ...
        sources: Where question and answer came from.
        history: The conversation before the question; found by the `finder`, where there is one.
        conversation: What tells its conversation from others, where the application gives it no
            name.
        blocks: The content blocks of the message that is the answer, for the citations in them.
        had_errors: Whether something failed that a retry, a fallback or a model made up for.
    """

    id: str
    query: str
    passages: Sequence[Passage] | None = None
    response: str
    finder: ContextFinder | None = None
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    sources: CaseSources = _UNKNOWN
    history: Sequence[Turn] = ()
    conversation: str = ""
    blocks: object = None
    had_errors: bool = False

    @property
    def size(self) -> int:
        """Bytes its texts take."""
        size = getsizeof(self.query) + getsizeof(self.response)
        if self.finder is not None:
            size += self.finder.size
        # On the request path: a generator would take twice as long.
        for passage in self.passages or ():
            size += getsizeof(passage.text)
        return size

    @property
    def context(self) -> Sequence[Passage]:
        """The passages the answer was made from; found when first asked for, which takes time."""
        # The worker and a caller of `explain` may both be here: the finder goes last.
        if (finder := self.finder) is not None:
            found = finder.find(self.query, self.response)
            self.history = found.history
            if self.passages is None:
                self.sources = self.sources.model_copy(
                    update={"context": found.source, "no_context": found.missing}
                )
                self.passages = found.passages
            self.finder = None
        return self.passages or ()

    def build(self) -> RAGTestCase:
        """The case.

        Raises:
            pydantic.ValidationError: A field is of the wrong type; nothing is quoted.
        """
        chunks = context_chunks(self.context)
        return RAGTestCase(
            id=self.id,
            query=self.query,
            context=chunks,
            response=self.response,
            history=list(self.history),
            citations=citations_in(self.blocks),
            tags=list(self.tags),
            metadata=plain(self.metadata),
            sources=self.sources,
        )


def context_chunks(passages: Sequence[Passage]) -> list[str | ContextChunk]:
    """The chunks of a case, in rank order: each text once, no id for two texts."""
    first: dict[str, Passage] = {}
    for passage in passages:
        first.setdefault(passage.text, passage)
    # Pieces of one document often share its id, which then names none of them.
    holders = Counter(passage.id for passage in first.values())
    return [
        ContextChunk(
            text=text,
            id=own_id if holders[own_id] == 1 else None,
            score=score,
            metadata=plain(metadata or {}),
        )
        for text, own_id, score, metadata in first.values()
    ]


def plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata as plain data: short texts, numbers and lists of them; the rest is skipped.

    Frameworks keep whole pages and vectors there, and objects that no queue carries.
    """
    kept = {str(key): _plain(value) for key, value in metadata.items()}
    return {key: value for key, value in kept.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_VALUE else None
    if isinstance(value, list | tuple):
        items = [_plain(item) for item in value[:20]] if len(value) <= 20 else [None]
        return None if None in items else items
    if isinstance(value, Mapping):
        return plain(value) or None
    # Dates, paths, enumerations: what they are as text. An object's address says nothing.
    text = "" if value is None else str(value)
    if not text or (text.startswith("<") and " at 0x" in text):
        return None
    return text if len(text) <= _LONGEST_VALUE else None
