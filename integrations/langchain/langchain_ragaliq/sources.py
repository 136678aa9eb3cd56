"""The documents of one run, through every step that fetches, cuts, reorders or merges them.

`ragaliq.traces.sources` keeps the same rules for spans, which have no objects: change both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from langchain_core.documents import Document

from langchain_ragaliq.documents import documents_of, passages_of, takes_documents
from ragaliq import Passage

__all__ = ["Sources"]

_SEQUENCE_STEP = "seq:step:"


class Sources:
    """What each step of a run fetched and no later step has replaced.

    Steps of one run end in several threads: every loop is over a snapshot.

    Args:
        parents: The run's steps so far, in the order they started, each with the step it is in.
    """

    __slots__ = ("_given", "_held", "_parents")

    def __init__(self, parents: Mapping[int, int | None]) -> None:
        self._parents = parents
        self._held: dict[int, list[Passage]] = {}
        self._given: dict[int, dict[Any, list[Passage]]] = {}

    def __bool__(self) -> bool:
        return bool(self._held)

    def __iter__(self) -> Iterator[Passage]:
        """Every text once, in the order in which the steps that fetched them started."""
        first: dict[str, Passage] = {}
        held = list(self._held)
        for step in held if len(held) == 1 else list(self._parents):
            for passage in self._held.get(step, ()):
                first.setdefault(passage[0], passage)
        return iter(first.values())

    def given(self, step: int, inputs: Any) -> None:
        """A step began: remember the documents among its inputs."""
        if not takes_documents(inputs):
            return
        by_key = inputs.items() if isinstance(inputs, dict) else ()
        self._given[step] = {k: passages_of(v) for k, v in by_key if documents_of(v)}

    def returned(self, step: int, outputs: Any, tags: Iterable[str] | None) -> None:
        """A plain step ended: a function retriever, a reranker, a fusion or a graph's node.

        A list of documents replaces those fetched inside the step; if the step was given documents,
        as a reranker is, also those fetched by the steps before it in the same sequence.
        """
        given = self._given.pop(step, None)
        if isinstance(outputs, dict):
            self._returned_state(step, outputs, given or {})
        elif isinstance(outputs, list) and _is_documents(outputs, may_be_empty=given is not None):
            after = given is not None and any(tag.startswith(_SEQUENCE_STEP) for tag in tags or ())
            self._replace(step, outputs, inside=self._parents.get(step) if after else step)

    def retrieved(self, step: int, documents: Iterable[Document]) -> None:
        """A retriever ended: its documents replace those of the retrievers inside it."""
        self._replace(step, documents, inside=step)

    def told(self, step: int, passages: list[Passage]) -> bool:
        """A step gave passages on, which count unless it fetched documents: those count then."""
        if not passages or self._inside(step):
            return False
        self._held[step] = passages
        return True

    def failed(self, step: int) -> None:
        """A step failed: a retry or a fallback answers without what was fetched inside it."""
        self._given.pop(step, None)
        self._drop(self._inside(step))

    def _returned_state(
        self, step: int, outputs: Mapping[Any, Any], given: Mapping[Any, list[Passage]]
    ) -> None:
        fetched: list[Passage] = []
        for key, value in outputs.items():
            before = given.get(key)
            if not _is_documents(value, may_be_empty=before is not None):
                continue
            now, offered = passages_of(value), set(_known_as(before or ()))
            fetched += [passage for passage in now if passage[:2] not in offered]
            if now != before and offered.issuperset(_known_as(now)):
                # No new documents under the same key: a grader or a reranker chose among them.
                chosen_from = [
                    source
                    for source, held in self._held.copy().items()
                    if offered.issuperset(_known_as(held))
                ]
                self._drop(chosen_from)
                self._held[step] = now
        self.told(step, fetched)

    def _replace(self, step: int, documents: Iterable[Document], *, inside: int | None) -> None:
        passages = passages_of(documents)
        if self._held:
            self._drop(self._inside(inside))
        self._held[step] = passages

    def _drop(self, sources: Iterable[int]) -> None:
        for source in sources:
            self._held.pop(source, None)

    def _inside(self, step: int | None) -> list[int]:
        return [source for source in list(self._held) if self._is_inside(source, step)]

    def _is_inside(self, source: int | None, step: int | None) -> bool:
        while source is not None and source != step:
            source = self._parents.get(source)
        return source is not None


def _known_as(passages: Iterable[Passage]) -> list[tuple[str, str | None]]:
    # Without the score, which a reranker changes on the same documents.
    return [passage[:2] for passage in passages]


def _is_documents(value: Any, *, may_be_empty: bool) -> bool:
    if not isinstance(value, list):
        return False
    return documents_of(value) is not None if value else may_be_empty
