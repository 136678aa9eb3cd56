"""Cases from traces that exist already, whoever recorded them and in whatever language."""

from ragaliq.traces.cases import AttributeNames, TracedCase, cases_of_trace
from ragaliq.traces.span import SpanEvent, SpanLink, TraceSpan

__all__ = [
    "AttributeNames",
    "SpanEvent",
    "SpanLink",
    "TraceSpan",
    "TracedCase",
    "cases_of_trace",
]
