"""What is kept of a span: plain data, copied when it ends, made a `TraceSpan` where there is time.

Formatting ids and building the object takes longer than the copy, so the request path leaves it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from sys import getsizeof
from typing import NamedTuple

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext, SpanKind, StatusCode

from ragaliq.live.tracing.recognition import MARKS, Part, part_of, scope_of
from ragaliq.traces import conventions as names
from ragaliq.traces.conventions import Kind, Step
from ragaliq.traces.span import SpanEvent, TraceSpan
from ragaliq.traces.tree import is_plumbing

__all__ = ["Copied", "begins_run", "copied", "trace_span"]

_OVERHEAD = 600
"""Bytes of a copy without its texts, about."""
_KINDS = {kind: kind.name.lower() for kind in SpanKind}


class Copied(NamedTuple):
    """A finished span, without a reference to anything of the SDK's.

    Attributes:
        trace_id: As a number.
        span_id: As a number.
        parent_id: As a number; None for the first span of a trace.
        name: What it is called.
        kind: OpenTelemetry's kind.
        start_ns: Unix time in nanoseconds.
        end_ns: Unix time in nanoseconds.
        is_error: Whether its status says so.
        attributes: All of them, or of a span that is no step of a run those that were asked for.
        events: What happened during it.
        scope: Name of the instrumentation that made it.
        dropped: Attributes that the SDK left out.
        size: Bytes it takes, about.
    """

    trace_id: int
    span_id: int
    parent_id: int | None
    name: str
    kind: str
    start_ns: int
    end_ns: int
    is_error: bool
    attributes: Mapping[str, object]
    events: tuple[SpanEvent, ...]
    scope: str
    dropped: int
    size: int


def copied(span: ReadableSpan, context: SpanContext, wanted: Collection[str]) -> Copied:
    """Copy a finished span.

    Args:
        span: The span.
        context: Its own.
        wanted: Attributes that are looked for on spans of any kind.
    """
    held = span.attributes or {}
    if MARKS.isdisjoint(held):
        attributes: dict[str, object] = {name: held[name] for name in wanted if name in held}
    else:
        attributes = held.copy()  # type: ignore[attr-defined]  # a proxy has it: one step in C
    parent = span.parent
    events = tuple(
        SpanEvent(name=e.name, time_ns=e.timestamp or 0, attributes=dict(e.attributes or {}))
        for e in span.events
    )
    size = _OVERHEAD
    for value in attributes.values():
        size += getsizeof(value)
    for event in events:
        size += sum(map(getsizeof, event.attributes.values()), _OVERHEAD)
    return Copied(
        context.trace_id,
        context.span_id,
        None if parent is None else parent.span_id,
        span.name,
        _KINDS[span.kind],
        span.start_time or 0,
        span.end_time or 0,
        span.status.status_code is StatusCode.ERROR,
        attributes,
        events,
        scope_of(span),
        span.dropped_attributes,
        size,
    )


def trace_span(copy: Copied) -> TraceSpan:
    """The same as the core reads it."""
    return TraceSpan(
        trace_id=f"{copy.trace_id:032x}",
        span_id=f"{copy.span_id:016x}",
        parent_id=None if copy.parent_id is None else f"{copy.parent_id:016x}",
        name=copy.name,
        kind=copy.kind,
        start_ns=copy.start_ns,
        end_ns=copy.end_ns,
        is_error=copy.is_error,
        attributes=copy.attributes,
        events=copy.events,
        scope=copy.scope,
        dropped_attributes=copy.dropped,
    )


def begins_run(copy: Copied) -> bool:
    """Whether a finished span with no run above it is a run of its own."""
    if MARKS.isdisjoint(copy.attributes) or part_of(copy.attributes) is not Part.RUN:
        return False
    if copy.scope != names.LLAMA_INDEX_SCOPE:
        return True
    return not is_plumbing(Step(span=trace_span(copy), kind=Kind.CHAIN))
