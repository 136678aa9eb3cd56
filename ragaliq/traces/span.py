"""A finished span as plain data, from whichever SDK, file or language it comes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["SpanEvent", "SpanLink", "TraceSpan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanEvent:
    """Something that happened during a span, such as an `exception`.

    Attributes:
        name: What.
        time_ns: Unix time in nanoseconds.
        attributes: As in `TraceSpan`.
    """

    name: str
    time_ns: int = 0
    attributes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanLink:
    """Another span that a span speaks of; ids and attributes as in `TraceSpan`."""

    trace_id: str
    span_id: str
    attributes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSpan:
    """A finished span.

    Attributes:
        trace_id: 32 lower-case hex digits.
        span_id: 16 lower-case hex digits.
        parent_id: 16 lower-case hex digits; None for the first span of a trace.
        name: What it is called.
        kind: OpenTelemetry's kind in lower case: `internal`, `server`, `client`, ...
        start_ns: Unix time in nanoseconds.
        end_ns: Unix time in nanoseconds.
        is_error: Whether its status says so.
        attributes: Names to texts, numbers, truth values, lists of them, or mappings of them.
        events: What happened during it.
        links: Other spans it speaks of.
        scope: Name of the instrumentation that made it.
        resource: The attributes of the service that it is from.
        dropped_attributes: Attributes its SDK dropped because there were too many.
    """

    trace_id: str
    span_id: str
    parent_id: str | None = None
    name: str = ""
    kind: str = "internal"
    start_ns: int = 0
    end_ns: int = 0
    is_error: bool = False
    attributes: Mapping[str, object] = field(default_factory=dict)
    events: tuple[SpanEvent, ...] = ()
    links: tuple[SpanLink, ...] = ()
    scope: str = ""
    resource: Mapping[str, object] = field(default_factory=dict)
    dropped_attributes: int = 0

    def text(self, name: str) -> str:
        """A text attribute; empty where it is missing or something else."""
        value = self.attributes.get(name)
        return value if isinstance(value, str) else ""
