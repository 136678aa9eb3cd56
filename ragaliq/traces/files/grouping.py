"""Putting traces together from spans that come one by one, in bounded memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from sys import getsizeof

from ragaliq.traces.span import TraceSpan

__all__ = ["TraceGroups"]

_SPAN_BYTES = 1_000
"""About what a span takes beside its texts."""


class TraceGroups:
    """Holds the spans of traces that may not be complete yet.

    Spans of one trace may be anywhere in a file. As long as all of them fit, every trace is held to
    the end; then the traces that got no span for the longest time are given out first, and what
    comes of them afterwards is late.

    Args:
        max_bytes: About how much is held.

    Attributes:
        spans: How many spans it was given.
        late: Those of traces that had been given out.
    """

    def __init__(self, *, max_bytes: int = 512 * 1024 * 1024) -> None:
        self.spans = 0
        self.late = 0
        self._max_bytes = max_bytes
        self._held: OrderedDict[str, list[TraceSpan]] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._bytes = 0
        self._gone: set[bytes] = set()

    def add(self, span: TraceSpan) -> Iterator[list[TraceSpan]]:
        """Take a span; yields the traces that are given out for it."""
        self.spans += 1
        trace = span.trace_id
        if _key(trace) in self._gone:
            self.late += 1
            return
        size = _size(span)
        self._held.setdefault(trace, []).append(span)
        self._held.move_to_end(trace)
        self._sizes[trace] = self._sizes.get(trace, 0) + size
        self._bytes += size
        while self._bytes > self._max_bytes:
            yield self._given_out(next(iter(self._held)))

    def rest(self) -> Iterator[list[TraceSpan]]:
        """Everything that is held, when no more spans come."""
        while self._held:
            yield self._given_out(next(iter(self._held)))

    def _given_out(self, trace: str) -> list[TraceSpan]:
        self._bytes -= self._sizes.pop(trace)
        self._gone.add(_key(trace))
        return self._held.pop(trace)


def _key(trace: str) -> bytes:
    return bytes.fromhex(trace)


def _size(span: TraceSpan) -> int:
    events = [(event, event.name, event.attributes) for event in span.events]
    links = [(link, link.trace_id, link.span_id, link.attributes) for link in span.links]
    return _SPAN_BYTES + _bytes_of([span.name, span.attributes, events, links])


def _bytes_of(value: object) -> int:
    todo, total = [value], 0
    while todo:
        held = todo.pop()
        total += getsizeof(held)
        if isinstance(held, Mapping):
            todo += held
            todo += held.values()
        elif isinstance(held, list | tuple):
            todo += held
    return total
