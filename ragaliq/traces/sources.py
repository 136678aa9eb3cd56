"""The documents of one run, through every step that fetches, cuts, reorders or merges them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ragaliq.core.draft import Passage
from ragaliq.traces.documents import documents_of, passages_of, takes_documents
from ragaliq.traces.step import Step

__all__ = ["Sources"]

_Known = tuple[str, str | None]
"""What tells a document from others: its text and its id."""


class Sources:
    """What each step of a run fetched and no later step has replaced.

    The rules are those of `langchain_ragaliq.sources`, which sees the objects themselves: change
    both, and let `tests/traces/test_same_case.py` compare them.

    Args:
        steps: The run's steps, each in the place that its `index` says.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self._held: dict[int, list[Passage]] = {}
        self._order: list[int] = []  # what is held, sorted: a trace may have very many
        self._holders: defaultdict[_Known | None, set[int]] = defaultdict(set)
        self._given: dict[int, dict[str, list[Passage]]] = {}

    def __bool__(self) -> bool:
        return bool(self._held)

    def passages(self) -> list[Passage]:
        """Every text once, in the order in which the steps that fetched them started."""
        first: dict[str, Passage] = {}
        for source in sorted(self._held, key=lambda i: (self._steps[i].span.start_ns, i)):
            for passage in self._held[source]:
                first.setdefault(passage.text, passage)
        return list(first.values())

    def given(self, step: Step) -> None:
        """A step began: remember the documents among its inputs."""
        inputs = step.inputs
        if not takes_documents(inputs):
            return
        by_key = inputs.items() if isinstance(inputs, Mapping) else ()
        self._given[step.index] = {k: passages_of(v) for k, v in by_key if documents_of(v)}

    def returned(self, step: Step, parent: Step) -> None:
        """A plain step ended: a function retriever, a reranker, a fusion or a graph's node.

        A list of documents replaces those fetched inside the step; if the step was given documents,
        as a reranker is, also those fetched by the steps before it in the same sequence.
        """
        given = self._given.pop(step.index, None)
        if isinstance(step.outputs, Mapping):
            self._returned_state(step, step.outputs, given or {})
        elif _is_documents(step.outputs, may_be_empty=given is not None):
            after = given is not None and _follows(step, parent)
            self._replace(step, passages_of(step.outputs), inside=parent if after else step)

    def retrieved(self, step: Step) -> None:
        """A retriever ended: its documents replace those of the retrievers inside it."""
        self._replace(step, step.passages or [], inside=step)

    def reranked(self, step: Step) -> None:
        """A reranker ended: what it let through replaces what it chose from."""
        self._drop(self._offered_in(set(_known_as(step.given))))
        self._hold(step, step.passages or [])

    def told(self, step: Step, passages: list[Passage]) -> None:
        """A step gave passages on, which count unless it fetched documents: those count then."""
        if passages and not self._inside(step):
            self._hold(step, passages)

    def failed(self, step: Step) -> None:
        """A step failed: a retry or a fallback answers without what was fetched inside it."""
        self._given.pop(step.index, None)
        self._drop(self._inside(step))

    def _returned_state(
        self, step: Step, outputs: Mapping[str, Any], given: Mapping[str, list[Passage]]
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
                self._drop(self._offered_in(offered))
                self._hold(step, now)
        self.told(step, fetched)

    def _replace(self, step: Step, passages: list[Passage], *, inside: Step) -> None:
        self._drop(self._inside(inside))
        self._hold(step, passages)

    def _hold(self, step: Step, passages: list[Passage]) -> None:
        self._drop([step.index])
        self._held[step.index] = passages
        insort(self._order, step.index)
        for known in _known_as(passages) or (None,):
            self._holders[known].add(step.index)

    def _drop(self, sources: Iterable[int]) -> None:
        for source in sources:
            if source in self._held:
                del self._order[bisect_left(self._order, source)]
                for known in _known_as(self._held.pop(source)) or (None,):
                    self._holders[known].discard(source)

    def _inside(self, step: Step) -> list[int]:
        first = bisect_left(self._order, step.index)
        return self._order[first : bisect_right(self._order, step.last, lo=first)]

    def _offered_in(self, offered: set[_Known]) -> list[int]:
        """The sources all of whose documents are among these; so are those that found none."""
        some = set().union(*(self._holders.get(known, ()) for known in (None, *offered)))
        return [source for source in some if offered.issuperset(_known_as(self._held[source]))]


def _follows(step: Step, parent: Step) -> bool:
    """Whether a step comes after others in a sequence, rather than beside them.

    Beside others it is given what the step around them was given; after others, what they made.
    """
    return step.follows if step.follows is not None else step.inputs != parent.inputs


def _known_as(passages: Iterable[Passage]) -> list[_Known]:
    # Without the score, which a reranker changes on the same documents.
    return [passage[:2] for passage in passages]


def _is_documents(value: Any, *, may_be_empty: bool) -> bool:
    if isinstance(value, list) and not value:
        return may_be_empty
    return documents_of(value) is not None
