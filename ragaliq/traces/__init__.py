"""Cases from existing traces, of any recorder and any language."""

from ragaliq.traces.cases import AttributeNames, TextFetcher, TracedCase, cases_of_trace
from ragaliq.traces.mapping import SpanRule, read_mapping
from ragaliq.traces.span import SpanEvent, TraceSpan

__all__ = [
    "AttributeNames",
    "SpanEvent",
    "SpanRule",
    "TextFetcher",
    "TraceSpan",
    "TracedCase",
    "cases_of_trace",
    "read_mapping",
]
