"""Noticing that the process did not run: a suspended machine, a stopped or throttled container."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

from ragaliq.core.process import watch_forks

_EVERY = 0.5  # seconds between two looks
_LEAST = 2.0  # seconds by which a look must be late

# The monotonic clock stands still while a machine is suspended, this one does not.
_clock = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME)
    if hasattr(time, "CLOCK_BOOTTIME")
    else time.monotonic
)


class FreezeWatch:
    """Counts freezes of this process while something is evaluated.

    A thread looks at the clock. A look that comes late by seconds in which the process used little
    of a processor is a freeze: neither waiting for a judge, nor computing, nor a judge that blocks
    the event loop delays it.

    Attributes:
        count: How many there were.
    """

    def __init__(self) -> None:
        self.restart_after_fork()
        watch_forks(self)

    def restart_after_fork(self) -> None:
        """Begin again, without a thread: in a forked child nothing is evaluated yet."""
        self.count = self._watched = 0
        self._lock = threading.Lock()
        self._last = 0.0, 0.0
        self._thread: threading.Thread | None = None
        # Not `time.sleep`, which applications replace in their tests: the thread would spin.
        self._never = threading.Event()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch inside the block."""
        with self._lock:
            self._watched += 1
            if self._thread is None or not self._thread.is_alive():
                self._last = _clock(), time.process_time()
                self._thread = threading.Thread(
                    target=self._watch, name="ragaliq-clock", daemon=True
                )
                with suppress(RuntimeError):  # too many threads, or the interpreter ends
                    self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                # What failed in a freeze may come here before the thread looks again.
                if self._thread is not None and self._thread.is_alive():
                    self._compare()
                self._watched -= 1

    def _watch(self) -> None:
        while self._watched:
            self._never.wait(_EVERY)
            with self._lock:
                self._compare()
                self._last = _clock(), time.process_time()

    def _compare(self) -> None:
        (before, used_before), now = self._last, _clock()
        late = now - before - _EVERY
        if late > _LEAST:  # only then, as to ask for processor time takes long on some systems
            used = time.process_time()
            self.count += used - used_before < late / 2
            self._last = now, used


FREEZES = FreezeWatch()
