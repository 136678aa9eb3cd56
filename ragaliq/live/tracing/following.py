"""The units in progress: which span belongs to which, and how much of it all is kept.

Spans start and end on any thread, so changes take the lock. Spans that concern no run, which in
most applications are nearly all, are told by a dictionary access or two, without it.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict, deque
from typing import NamedTuple

from ragaliq.live.tracing.copied import Copied
from ragaliq.live.tracing.unit import PastSpans, Unit

__all__ = ["Bounds", "Followed"]


class Bounds(NamedTuple):
    """How much is followed and kept.

    Attributes:
        traces: Units at the same time.
        spans: Spans of one unit.
        bytes: All that is copied, in bytes.
        age: Seconds that a unit may take.
    """

    traces: int
    spans: int
    bytes: int
    age: float


class Followed:
    """All units in progress.

    Every method that lets go of units returns them, for their tickets to be ended outside the lock.

    Args:
        bounds: How much is followed and kept.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        # Re-entrant: a stream that is dropped half-read ends its spans from the garbage collector,
        # which may run on this thread while it holds the lock.
        self._lock = threading.RLock()
        self._units: OrderedDict[int, Unit] = OrderedDict()  # by top, the oldest first
        self._of_span: dict[int, Unit] = {}
        self._loose: dict[int, Unit] = {}  # by trace
        self._due: deque[Unit] = deque()
        self._past = PastSpans()
        self._size = 0

    def __len__(self) -> int:
        return len(self._units)

    @property
    def size(self) -> int:
        """Bytes of all that is copied, about."""
        return self._size

    def unit_of(self, span_id: int) -> Unit | None:
        """The unit that a span belongs to."""
        return self._of_span.get(span_id)

    def loose_in(self, trace_id: int) -> Unit | None:
        """The steps without a chain in a trace."""
        return self._loose.get(trace_id)

    def is_past(self, span_id: int) -> bool:
        """Whether a span's unit is over."""
        return span_id in self._past

    def forget(self, span_id: int) -> None:
        """Take nothing below this span for a run."""
        with self._lock:
            self._past.add((span_id,))

    def open(self, unit: Unit, *, is_loose: bool) -> list[Unit]:
        """Follow a unit; returns the oldest ones where there are too many."""
        with self._lock:
            self._units[unit.top] = unit
            self._of_span[unit.top] = unit
            if is_loose:
                self._loosen(unit)
            return self._first(len(self._units) - self._bounds.traces)

    def join(self, unit: Unit, span_id: int, *, is_step: bool) -> list[Unit]:
        """Note a span of a unit; returns the unit where it has too many."""
        with self._lock:
            if unit.is_closed:
                self._past.add((span_id,))
                return []
            unit.ids.add(span_id)
            self._of_span[span_id] = unit
            if is_step and unit.ticket is not None:
                unit.open.add(span_id)
            if len(unit.ids) <= self._bounds.spans:
                return []
            self._close(unit)
            return [unit]

    def keep(self, unit: Unit, copy: Copied) -> list[Unit]:
        """Keep the copy of a finished span; returns the oldest units where it gets too much."""
        with self._lock:
            if unit.is_closed:
                return []
            unit.open.discard(copy.span_id)
            unit.spans.append(copy)
            unit.size += copy.size
            self._size += copy.size
            if len(unit.spans) > self._bounds.spans:  # those around steps are in no other count
                self._close(unit)
                return [unit]
            given_up = []
            while self._size > self._bounds.bytes and self._units:
                given_up += self._first(1)
            return given_up

    def loosen(self, unit: Unit) -> bool:
        """Have a unit's steps wait for the request around them; whether others did already.

        Then they are that unit's, and this one is no more.
        """
        with self._lock:
            other = self._loose.get(unit.trace_id)
            if unit.is_closed or other is unit:
                return False
            if other is None or (other.ticket is None) != (unit.ticket is None):
                self._loosen(unit)
                return False
            self._close(unit)
            for span_id in unit.ids:
                self._of_span[span_id] = other
            other.ids |= unit.ids
            other.open |= unit.open
            other.spans += unit.spans
            other.size += unit.size
            other.start_ns = min(other.start_ns, unit.start_ns)
            self._size += unit.size
            return True

    def end(self, unit: Unit, *, due: float) -> None:
        """Have a unit read from a time on; one that nothing is kept of is over at once."""
        with self._lock:
            if unit.is_closed or unit.due is not None:
                return
            if unit.ticket is None:
                self._close(unit)
                return
            unit.due = due
            self._due.append(unit)

    def take_due(self, now: float, *, at_most: float = math.inf) -> list[Unit]:
        """The units that are to be read by now, which are followed no more."""
        due: list[Unit] = []
        with self._lock:
            while (
                len(due) < at_most
                and self._due
                and (self._due[0].is_closed or (self._due[0].due or 0.0) <= now)
            ):
                unit = self._due.popleft()
                if not unit.is_closed:
                    self._close(unit)
                    due.append(unit)
        return due

    def take_overdue(self, now: float) -> list[Unit]:
        """The units that began too long ago and go on, which are followed no more."""
        overdue = []
        with self._lock:
            for unit in self._units.values():
                if now - unit.started <= self._bounds.age:
                    break
                if unit.due is None:
                    overdue.append(unit)
            for unit in overdue:
                self._close(unit)
        return overdue

    def take_all(self) -> list[Unit]:
        """Every unit, which is followed no more."""
        with self._lock:
            return self._first(len(self._units))

    def next_due(self) -> float | None:
        """When to look again, on the monotonic clock; None where nothing is followed."""
        with self._lock:
            if self._due:
                return self._due[0].due
            oldest = next(iter(self._units.values()), None)
        return None if oldest is None else oldest.started + self._bounds.age

    def _loosen(self, unit: Unit) -> None:
        unit.is_loose = True
        self._loose[unit.trace_id] = unit

    def _first(self, count: int) -> list[Unit]:
        units: list[Unit] = []
        while count > 0 and self._units:
            unit = next(iter(self._units.values()))
            self._close(unit)
            units.append(unit)
            count -= 1
        return units

    def _close(self, unit: Unit) -> None:
        unit.is_closed = True
        self._units.pop(unit.top, None)
        if self._loose.get(unit.trace_id) is unit:
            del self._loose[unit.trace_id]
        for span_id in unit.ids:
            if self._of_span.get(span_id) is unit:
                del self._of_span[span_id]
        self._past.add(unit.ids)
        self._size -= unit.size
