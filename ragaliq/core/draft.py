"""A case as the request path hands it over: plain strings, validated only where there is time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from sys import getsizeof
from typing import NamedTuple

from ragaliq.core.test_case import ContextChunk, RAGTestCase

__all__ = ["CaseDraft", "Passage", "context_chunks"]


class Passage(NamedTuple):
    """A retrieved text, the id it has where it came from, and the retriever's score."""

    text: str
    id: str | None = None
    score: float | None = None


@dataclass(slots=True, kw_only=True)
class CaseDraft:
    """What an adapter knows of a finished run; `build` makes a case of it, on the worker.

    Building and checking a case takes longer than all the rest an adapter does at the end of a
    run, and strings are shared, so that holding a draft costs no more than holding a case.

    Attributes:
        id: The run's id.
        query: The user's question.
        passages: What was retrieved, in rank order; a text that is there twice counts once.
        response: The application's answer.
        tags: Free labels of the run.
        had_errors: Whether something failed that a retry, a fallback or a model made up for.
    """

    id: str
    query: str
    passages: Sequence[Passage]
    response: str
    tags: Sequence[str] = ()
    had_errors: bool = False

    @property
    def size(self) -> int:
        """Bytes its texts take."""
        size = getsizeof(self.query) + getsizeof(self.response)
        for passage in self.passages:  # on the request path: a generator would take twice as long
            size += getsizeof(passage.text)
        return size

    def build(self) -> RAGTestCase:
        """The case.

        Raises:
            pydantic.ValidationError: A field is of the wrong type; nothing is quoted.
        """
        return RAGTestCase(
            id=self.id,
            query=self.query,
            context=context_chunks(self.passages),
            response=self.response,
            tags=list(self.tags),
        )


def context_chunks(passages: Sequence[Passage]) -> list[str | ContextChunk]:
    """The chunks of a case, in rank order: each text once, no id for two texts."""
    first: dict[str, Passage] = {}
    for passage in passages:
        first.setdefault(passage.text, passage)
    # Pieces of one document often share its id, which then names none of them.
    holders = Counter(passage.id for passage in first.values())
    return [
        ContextChunk(text=text, id=own_id if holders[own_id] == 1 else None, score=score)
        for text, own_id, score in first.values()
    ]
