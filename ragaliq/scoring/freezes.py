"""Noticing that the process did not run: a suspended machine, a stopped or throttled container."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
    is one: neither waiting for a judge nor computing delays it. A judge that blocks the loop does:
    a thread looks as well, and where that came in time the process did run.

    Attributes:
        freezes: How many there were.
    """

    freezes: int = 0
    _watched: int = 0
    _looked: float = 0.0
    _used: float = 0.0
    _next: asyncio.TimerHandle | None = None
    _beat: float = 0.0
    _beating: threading.Thread | None = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch inside the block."""
        if not self._watched:
            self._looked, self._used = _clock(), time.process_time()
        self._watched += 1
        if self._beating is None or not self._beating.is_alive():
            self._beat = _clock()
            self._beating = threading.Thread(
                target=self._look_aside, name="ragaliq-clock", daemon=True
            )
            with suppress(RuntimeError):  # too many threads, or the interpreter ends
                self._beating.start()
        try:
            self._look()
            yield
        finally:
            self._watched -= 1
            self._look()

    def _look(self) -> None:
        now, used = _clock(), time.process_time()
        self._compare(max(self._looked, self._beat), now, used - self._used)
        self._looked, self._used = now, used
        if self._next is not None:
            self._next.cancel()
        self._next = None
        if self._watched:
            self._next = asyncio.get_running_loop().call_later(_EVERY, self._look)

    def _compare(self, before: float, now: float, computed: float) -> None:
        late = now - before - _EVERY
        self.freezes += late > _LEAST and computed < late / 2

    def _look_aside(self) -> None:
        used = time.process_time()
        while self._watched:
            time.sleep(_EVERY)
            now, used_before, used = _clock(), used, time.process_time()
            # Counted before the beat is set: the loop may look in between.
            self._compare(self._beat, now, used - used_before)
            self._beat = now
