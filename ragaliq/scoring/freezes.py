"""Noticing that the process did not run: a suspended machine, a stopped or throttled container."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

__all__ = ["FreezeWatch"]

_EVERY = 0.5  # seconds between two looks
_LEAST = 2.0  # seconds by which a look must be late

# The monotonic clock stands still while a machine is suspended, this one does not.
_clock = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME)
    if hasattr(time, "CLOCK_BOOTTIME")
    else time.monotonic
)


@dataclass
class FreezeWatch:
    """Counts freezes while something is evaluated; used on one event loop.

    A look at the clock that comes late by seconds in which the process used little of a processor
    is one: neither waiting for a judge nor computing delays it.

    Attributes:
        freezes: How many there were.
    """

    freezes: int = 0
    _watched: int = 0
    _looked: float = 0.0
    _used: float = 0.0
    _next: asyncio.TimerHandle | None = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch inside the block."""
        if not self._watched:
            self._looked, self._used = _clock(), time.process_time()
        self._watched += 1
        try:
            self._look()
            yield
        finally:
            self._watched -= 1
            self._look()

    def _look(self) -> None:
        now, used = _clock(), time.process_time()
        late, computed = now - self._looked - _EVERY, used - self._used
        self.freezes += late > _LEAST and computed < late / 2
        self._looked, self._used = now, used
        if self._next is not None:
            self._next.cancel()
        self._next = None
        if self._watched:
            self._next = asyncio.get_running_loop().call_later(_EVERY, self._look)
