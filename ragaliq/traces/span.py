"""Finished spans as plain data, from any SDK, file or language."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

_NONE: Mapping[str, object] = MappingProxyType({})


class SpanEvent(NamedTuple):
    """Event of a span, such as an `exception`."""

    name: str
    attributes: Mapping[str, object] = _NONE


# Not a dataclass: one that is frozen takes four times as long to make, on the request path.
class TraceSpan(NamedTuple):
    """A finished span.

    Attributes:
        trace_id: 32 lower-case hex digits.
        span_id: 16 lower-case hex digits.
        parent_id: 16 lower-case hex digits; None for the first span of a trace.
        name: Its name.
        start_ns: Unix time in nanoseconds.
        end_ns: Unix time in nanoseconds.
        is_error: Whether its status is an error.
        attributes: Names to texts, numbers, truth values, lists of them, or mappings of them.
        events: Its events.
        scope: Name of the instrumentation that made it.
        resource: Attributes of its service.
        dropped_attributes: Number of attributes that its SDK dropped.
    """

    trace_id: str
    span_id: str
    parent_id: str | None = None
    name: str = ""
    start_ns: int = 0
    end_ns: int = 0
    is_error: bool = False
    attributes: Mapping[str, object] = _NONE
    events: tuple[SpanEvent, ...] = ()
    scope: str = ""
    resource: Mapping[str, object] = _NONE
    dropped_attributes: int = 0

    @property
    def is_log(self) -> bool:
        """True if it only carries log records of a span with the same id."""
        return not self.name and not self.end_ns and len(self.events) == 1

    def text(self, name: str) -> str:
        """Text attribute; empty if it is missing or not a text."""
        value = self.attributes.get(name)
        return value if isinstance(value, str) else ""
