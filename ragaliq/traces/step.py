"""A span as a step of a run, whatever convention it follows."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ragaliq.core.draft import Passage
from ragaliq.traces.span import TraceSpan

__all__ = ["Kind", "Step"]


class Kind(Enum):
    """The part a step plays."""

    CHAIN = "CHAIN"
    AGENT = "AGENT"
    RETRIEVER = "RETRIEVER"
    RERANKER = "RERANKER"
    LLM = "LLM"
    TOOL = "TOOL"
    PROMPT = "PROMPT"
    EMBEDDING = "EMBEDDING"
    EVALUATOR = "EVALUATOR"
    OTHER = "OTHER"
    NONE = "NONE"  # no step of a run: the web request's span, a database's, ...


@dataclass(slots=True, kw_only=True, eq=False)
class Step:
    """One step of a run.

    Attributes:
        span: Where it is from.
        kind: What it does.
        inputs: What it was given.
        outputs: What it returned.
        passages: What a retriever or reranker returned; None where the span does not say.
        given: What a reranker chose from.
        asked: Of a model, the last message of the user.
        reply: Of a model, what it said.
        follows: Whether it is a later step of a sequence; None where the span does not say.
        is_first: Whether its framework says that it is the first of a run, whatever it is inside.
        is_hidden: Whether content of it was switched off.
        is_cut: Whether content of it is incomplete.
        cut_at: The lengths at which JSON in it stops before its end: texts of such a length may
            have been cut as well.
        children: The steps inside it, in the order they started.
        index: Its place among the steps of its root, each before those inside it.
        last: The highest place inside it.
    """

    span: TraceSpan
    kind: Kind
    inputs: Any = None
    outputs: Any = None
    passages: list[Passage] | None = None
    given: list[Passage] = field(default_factory=list)
    asked: str | None = None
    reply: str | None = None
    follows: bool | None = None
    is_first: bool = False
    is_hidden: bool = False
    is_cut: bool = False
    cut_at: frozenset[int] = frozenset()
    children: list[Step] = field(default_factory=list)
    index: int = 0
    last: int = 0
