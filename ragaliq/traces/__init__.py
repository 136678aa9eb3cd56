"""Cases from existing traces, of any recorder and any language.

An annex: the main house reaches it by entry points and by name, and imports none of it.
"""

from ragaliq.core.passages import TextFetcher
from ragaliq.traces.cases import AttributeNames, TracedCase, cases_of_trace
from ragaliq.traces.mapping import SpanRule, read_mapping
from ragaliq.traces.processor import RagaliqSpanProcessor
from ragaliq.traces.reader import TraceReader
from ragaliq.traces.span import SpanEvent, TraceSpan

__all__ = [
    "AttributeNames",
    "RagaliqSpanProcessor",
    "SpanEvent",
    "SpanRule",
    "TextFetcher",
    "TraceReader",
    "TraceSpan",
    "TracedCase",
    "cases_of_trace",
    "read_mapping",
]
