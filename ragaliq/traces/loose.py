"""What retrievers and models amount to that an application calls itself, without a chain."""

from __future__ import annotations

from collections.abc import Sequence

from ragaliq.core.draft import Passage
from ragaliq.traces.chain import ChainRun, Found
from ragaliq.traces.shapes import question_of
from ragaliq.traces.step import Kind, Step

__all__ = ["found_loose", "is_ambiguous"]


def found_loose(steps: Sequence[Step], run: ChainRun) -> Found:
    """What the steps below a span say that itself says nothing.

    Args:
        steps: The span's own first.
        run: The same steps, followed.
    """
    passages = run.sources()
    last = run.last_model()
    return Found(
        question=_question(steps, last, passages) or "",
        answer=(last.reply if last is not None else None) or "",
        passages=passages if passages or run.has_retrieved else None,
    )


def is_ambiguous(steps: Sequence[Step]) -> bool:
    """Whether models were asked different things after something was retrieved.

    Then there were several questions, and nothing tells which answer was made from what.
    """
    asked: set[str] = set()
    has_retrieved = False
    for step in steps:
        has_retrieved = has_retrieved or step.kind is Kind.RETRIEVER
        if has_retrieved and step.kind is Kind.LLM and step.asked:
            asked.add(step.asked)
    return len(asked) > 1


def _question(steps: Sequence[Step], last: Step | None, passages: Sequence[Passage]) -> str | None:
    """The user's message, or, where that is a prompt with the context in it, what was looked up."""
    asked = last.asked if last is not None else None
    if asked and not any(p.text and p.text in asked for p in passages):
        return asked
    queries = (question_of(step.inputs) for step in steps if step.kind is Kind.RETRIEVER)
    return next((query for query in queries if query), asked)
