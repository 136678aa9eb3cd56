"""How a run ended, where it did not end well."""

from __future__ import annotations

from collections.abc import Sequence

from ragaliq.traces.span import TraceSpan
from ragaliq.traces.step import Step

__all__ = ["failure_of", "had_errors"]

_INTERRUPTS = ("GraphInterrupt", "NodeInterrupt")
_CONTROL_FLOW = (*_INTERRUPTS, "GraphBubbleUp", "ParentCommand")
_STOPPED = ("CancelledError", "GeneratorExit")


def failure_of(steps: Sequence[Step]) -> str:
    """Why a run has no answer, as the handlers would say; empty where it may have one."""
    root = steps[0].span
    if any(_raised(step.span, _INTERRUPTS) for step in steps):
        return "interrupted"
    if not root.is_error:
        return ""
    return "cancelled" if _raised(root, _STOPPED) else "errored"


def had_errors(steps: Sequence[Step]) -> bool:
    """Whether something failed that a retry, a fallback or a model made up for."""
    return any(
        step.span.is_error and not _raised(step.span, _STOPPED + _CONTROL_FLOW)
        for step in steps[1:]
    )


def _raised(span: TraceSpan, kinds: Sequence[str]) -> bool:
    for event in span.events:
        kind = event.attributes.get("exception.type")
        if isinstance(kind, str) and kind.rpartition(".")[2] in kinds:
            return True
    return False
