"""A finished span as plain data, from whichever SDK, file or language it comes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

_NONE: Mapping[str, object] = MappingProxyType({})


class SpanEvent(NamedTuple):
    """Something that happened during a span, such as an `exception`."""

    name: str
    attributes: Mapping[str, object] = _NONE


# Not a dataclass: one that is frozen takes four times as long to make, on the request path.
class TraceSpan(NamedTuple):
    """A finished span.

    Attributes:
        trace_id: 32 lower-case hex digits.
        span_id: 16 lower-case hex digits.
        parent_id: 16 lower-case hex digits; None for the first span of a trace.
        name: What it is called.
        start_ns: Unix time in nanoseconds.
        end_ns: Unix time in nanoseconds.
        is_error: Whether its status says so.
        attributes: Names to texts, numbers, truth values, lists of them, or mappings of them.
        events: What happened during it.
        scope: Name of the instrumentation that made it.
        resource: The attributes of the service that it is from.
        dropped_attributes: Attributes its SDK dropped because there were too many.
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
        """Whether it only carries what was logged during a span of the same id."""
        return not self.name and not self.end_ns and len(self.events) == 1

    def text(self, name: str) -> str:
        """A text attribute; empty where it is missing or something else."""
        value = self.attributes.get(name)
        return value if isinstance(value, str) else ""
