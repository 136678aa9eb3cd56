"""Looking after runs that never end, for all that follow runs, with one timer at a time."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import Protocol, runtime_checkable

__all__ = ["HoldsRuns", "Sweepable", "Sweeps"]


class Sweepable(Protocol):
    """Something that follows runs and gives them up when they are overdue."""

    def sweep(self) -> object:
        """Give up what is overdue, and ask again for what will be; may come too early."""


@runtime_checkable
class HoldsRuns(Sweepable, Protocol):
    """Something that keeps runs back for a while after their end."""

    def hand_over_ended(self) -> object:
        """Hand over every run that has ended, now."""


class Sweeps:
    """Has everything swept in time, without keeping any of it alive.

    Applications may make a handler for each request. With a timer for each of them, which would
    stay until the run's longest age is over, they would pay for it with time and memory.

    Args:
        call_later: Has something called in so many seconds; False if it cannot.
    """

    def __init__(self, call_later: Callable[[float, Callable[[], object]], bool]) -> None:
        self._call_later = call_later
        # Re-entrant: the garbage collector may end a run, and begin another, on this thread.
        self._lock = threading.RLock()
        self._waiting: weakref.WeakSet[Sweepable] = weakref.WeakSet()
        self._holding: weakref.WeakSet[HoldsRuns] = weakref.WeakSet()
        self._next: float | None = None

    def add(self, delay: float, sweepable: Sweepable) -> bool:
        """Sweep this once, in `delay` seconds or sooner; False when it will not be done."""
        at = time.monotonic() + delay
        with self._lock:
            if self._next is None or at < self._next:
                # Weak, or the timer would keep a forgotten monitor's thread for so long.
                sweep = weakref.WeakMethod(self._sweep)
                if not self._call_later(delay, lambda: (now := sweep()) and now()):
                    return False
                self._next = at
            self._waiting.add(sweepable)
            if isinstance(sweepable, HoldsRuns):
                self._holding.add(sweepable)
        return True

    def hand_over(self) -> None:
        """Have every run that has ended handed over now: somebody waits for its score."""
        with self._lock:
            holding = list(self._holding)
        for each in holding:
            each.hand_over_ended()

    def _sweep(self) -> None:
        with self._lock:
            self._next = None
            due = list(self._waiting)
            self._waiting.clear()
        for each in due:
            each.sweep()
