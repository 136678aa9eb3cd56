"""Cases from traces that exist already, whoever recorded them and in whatever language."""

from ragaliq.traces.assemble import cases_of_trace
from ragaliq.traces.names import AttributeNames
from ragaliq.traces.span import SpanEvent, SpanLink, TraceSpan
from ragaliq.traces.traced_case import TracedCase

__all__ = [
    "AttributeNames",
    "SpanEvent",
    "SpanLink",
    "TraceSpan",
    "TracedCase",
    "cases_of_trace",
]
