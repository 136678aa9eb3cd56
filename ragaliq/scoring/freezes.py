"""Noticing that the process did not run: a suspended machine, a stopped or throttled container."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["FreezeWatch"]

_EVERY = 0.5  # seconds between two looks
_LEAST = 2.0  # seconds by which a look must be late


class FreezeWatch:
    """Counts freezes while something is evaluated; used on one event loop.

    A look at the clock that comes late by seconds in which the process used little of a processor
    is one: neither waiting for a judge nor computing delays it.

    Attributes:
        freezes: How many there were.
    """

    def __init__(self) -> None:
        self.freezes = 0
        self._watched = 0
        self._next: asyncio.TimerHandle | None = None
        self._looked = self._used = 0.0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch inside the block."""
        self._watched += 1
        if self._watched == 1:
            self._looked, self._used = _clock(), time.process_time()
            self._look()
        try:
            yield
        finally:
            self.look()
            self._watched -= 1
            if not self._watched and self._next is not None:
                self._next.cancel()

    def look(self) -> None:
        """Count a freeze that has just ended."""
        now, used = _clock(), time.process_time()
        late, computed = now - self._looked - _EVERY, used - self._used
        self.freezes += late > _LEAST and computed < late / 2
        self._looked, self._used = now, used

    def _look(self) -> None:
        self.look()
        self._next = asyncio.get_running_loop().call_later(_EVERY, self._look)


def _clock() -> float:
    # The monotonic clock stands still while a machine is suspended, this one does not.
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
