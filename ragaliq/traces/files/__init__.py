"""Spans from files: OTLP as JSON and as protobuf, the SDKs' own JSON, Phoenix's exports."""

from ragaliq.traces.files.grouping import TraceGroups
from ragaliq.traces.files.reading import SpanProblem, holds_traces, spans_in

__all__ = ["SpanProblem", "TraceGroups", "holds_traces", "spans_in"]
