"""What happens to followed units off the request path: reading them in time, or giving them up."""

from __future__ import annotations

import contextvars
import math
import threading
import time
from collections.abc import Iterable

from ragaliq.live.monitor import Monitor
from ragaliq.live.tracing.following import Bounds, Followed
from ragaliq.live.tracing.reading import UnitReader
from ragaliq.live.tracing.unit import Unit

__all__ = ["Upkeep"]

_SOONEST_SECONDS = 0.01
# Units read in one go on the monitor's loop, which judges meanwhile.
_AT_ONCE = 20


class Upkeep:
    """Has ended units read and endless ones given up, with the monitor's one timer.

    Args:
        monitor: Its thread does the work.
        reader: Reads what has ended.
        grace: Seconds to wait for late spans.
        bounds: How much is followed.

    Attributes:
        followed: The units in progress.
    """

    def __init__(
        self, monitor: Monitor, reader: UnitReader, *, grace: float, bounds: Bounds
    ) -> None:
        self._monitor = monitor
        self._reader = reader
        self._grace = grace
        self._bounds = bounds
        self.forget_everything()

    def forget_everything(self) -> None:
        """Start anew, in a forked child: what was running runs in the parent."""
        self.followed = Followed(self._bounds)
        self._wakes_at: float | None = None
        # Held while a unit is in nobody's list, so that whoever waits for all runs misses none.
        self._reading = threading.RLock()

    def opened(self) -> None:
        """Come back for units that never end."""
        if self._wakes_at is None:
            self._wake(self._bounds.age)

    def end(self, unit: Unit) -> None:
        """Have a unit read when its time of grace is over."""
        due = time.monotonic() + self._grace
        self.followed.end(unit, due=due)
        if not unit.is_closed and (self._wakes_at is None or due < self._wakes_at):
            self._wake(self._grace)

    def sweep(self) -> None:
        """Read what is due, give up what is overdue, and come back; called by the timer."""
        # The timer's context is that of whatever request asked for it.
        contextvars.Context().run(self._sweep)

    def hand_over_ended(self) -> None:
        """Read every unit that has ended, without grace."""
        with self._reading:
            for unit in self.followed.take_due(math.inf):
                contextvars.Context().run(self._reader.hand_over, unit)

    def give_up_all(self, reason: str) -> None:
        """End every unit in progress."""
        self.give_up(self.followed.take_all(), reason)

    @staticmethod
    def give_up(units: Iterable[Unit], reason: str) -> None:
        """End units that are followed no more."""
        for unit in units:
            if unit.ticket is not None:
                unit.ticket.discard(reason)

    def _sweep(self) -> None:
        now = time.monotonic()
        # Whoever reads now may wait for this very thread: it comes back rather than wait as well.
        if self._reading.acquire(blocking=False):
            try:
                for unit in self.followed.take_due(now, at_most=_AT_ONCE):
                    self._reader.hand_over(unit)
            finally:
                self._reading.release()
        self.give_up(self.followed.take_overdue(now), "expired")
        self._wakes_at = None
        due = self.followed.next_due()
        if due is not None:
            self._wake(max(due - time.monotonic(), _SOONEST_SECONDS))

    def _wake(self, delay: float) -> None:
        # A racing thread may do the same: then it is swept once more.
        self._wakes_at = time.monotonic() + delay
        if not self._monitor.sweep_later(delay, self):
            self._wakes_at = None
            self.give_up_all("shutdown")  # the monitor is closed: nobody will ever come back
