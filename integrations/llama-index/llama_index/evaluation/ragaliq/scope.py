"""Where a span stands in its run, and what the engine around it has found so far."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING

from ragaliq import Passage

if TYPE_CHECKING:
    from llama_index.evaluation.ragaliq.run_state import Run

__all__ = ["Frame", "Role", "Scope"]


class Role(Enum):
    """What the spans below a frame are part of."""

    SKIPPED = auto()  # a run that is not captured
    ENGINE = auto()  # a query engine, chat engine or workflow
    RETRIEVE = auto()  # an outermost retriever: whatever happens inside is its own business
    RERANK = auto()  # a node postprocessor


class Scope:
    """What one engine of a run has found; engines may call engines, also several at a time.

    Each attribute lists findings in the order of their ends; empty means it never happened, a list
    with an empty list in it that nothing was found.

    Attributes:
        outer: The scope of the engine that called this one.
        is_workflow: Whether the engine is a workflow, whose steps use several sources side by side.
        inner: What engines called by this one answered from.
        synthesized: The nodes answers were written from.
        reranked: The nodes postprocessors let through.
        retrieved: The outermost retrievers' nodes.
    """

    __slots__ = ("inner", "is_workflow", "outer", "reranked", "retrieved", "synthesized")

    def __init__(self, *, outer: Scope | None = None, is_workflow: bool = False) -> None:
        self.outer = outer
        self.is_workflow = is_workflow
        self.inner: list[list[Passage]] = []
        self.synthesized: list[list[Passage]] = []
        self.reranked: list[list[Passage]] = []
        self.retrieved: list[list[Passage]] = []

    def context(self, sources: Callable[[], list[Passage]]) -> list[Passage] | None:
        """What the engine answered from, or None if nothing was retrieved at all.

        Args:
            sources: Reads the nodes that its response names; called only when needed.
        """
        found = self.reranked[-1:] or self.retrieved
        # A synthesizer above other engines is given their answers, not documents: what counts is
        # what those engines read.
        if self.inner:
            is_beside = self.is_workflow and not self.synthesized
            return _flatten(self.inner + (found if is_beside else []))
        if self.synthesized:
            return _flatten(self.synthesized)
        named = sources()
        if named or not found:
            return named or None
        return _flatten(found)


class Frame:
    """The surroundings of a span; spans that change nothing share their parent's."""

    __slots__ = ("owner", "role", "run", "scope")

    def __init__(self, owner: str, role: Role, run: Run | None, scope: Scope | None) -> None:
        self.owner = owner
        self.role = role
        self.run = run
        self.scope = scope


def _flatten(findings: list[list[Passage]]) -> list[Passage]:
    return [piece for pieces in findings for piece in pieces]
