"""Detection of time in which the process did not run: suspended, stopped or throttled."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

from ragaliq.core.process import watch_forks

_EVERY = 0.5  # seconds between two looks
_LEAST = 2.0  # seconds by which a look must be late

# The monotonic clock stops while a machine is suspended, this one does not.
_clock = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME)
    if hasattr(time, "CLOCK_BOOTTIME")
    else time.monotonic
)


class FreezeWatch:
    """Counts freezes of this process while something is evaluated.

    A thread checks the clock. A check that is late by seconds of little processor time is a freeze:
    waiting for a judge, computing, or a judge that blocks the event loop does not delay it.

    Attributes:
        count: Number of freezes.
    """

    def __init__(self) -> None:
        self.restart_after_fork()
        watch_forks(self)

    def restart_after_fork(self) -> None:
        """Reset without a thread in a forked child, where nothing is evaluated yet."""
        self.count = self._watched = 0
        self._lock = threading.Lock()
        self._last = 0.0, 0.0
        self._thread: threading.Thread | None = None
        # Not `time.sleep`, which applications replace in their tests: the thread would spin.
        self._never = threading.Event()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch during the block."""
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
                # A failure due to a freeze may arrive here before the thread's next check.
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
