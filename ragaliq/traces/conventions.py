"""Which convention a span follows, and the step it stands for."""

from __future__ import annotations

from ragaliq.traces import genai, names, openinference, traceloop
from ragaliq.traces.span import TraceSpan
from ragaliq.traces.step import Kind, Step

__all__ = ["step_of"]


def step_of(span: TraceSpan) -> Step:
    """Read a span; one that follows no known convention is of the kind `NONE`."""
    attributes = span.attributes
    if span.scope == names.OWN_SCOPE or span.scope.startswith(names.OWN_SCOPE + "."):
        return Step(span=span, kind=Kind.EVALUATOR)
    if names.KIND in attributes:
        return openinference.step_of(span)
    if names.TRACELOOP_KIND in attributes or names.TRACELOOP_INPUT in attributes:
        return traceloop.step_of(span)
    if names.OPERATION in attributes:
        return genai.step_of(span)
    return Step(span=span, kind=Kind.NONE)
