"""Ends: a last flush at exit, a fresh start after a fork, and runs that never end."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from contextlib import suppress

# Registered exit hooks run in reverse order. The executors that connecting needs (getaddrinfo runs
# in one) close in a hook of their own, made on this import: importing it first lets ours run
# before theirs.
import concurrent.futures.thread  # noqa: F401  # isort: skip
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from ragaliq._private import register_before_threads_end

__all__ = ["HoldsRuns", "Sweepable", "Sweeps", "watch_process"]


class _Living(Protocol):
    def flush_at_exit(self) -> None: ...

    def close_at_exit(self) -> None: ...

    def give_up_at_exit(self) -> None: ...

    def restart_after_fork(self) -> None: ...


_WATCHED: weakref.WeakSet[_Living] = weakref.WeakSet()


def watch_process(living: _Living) -> None:
    """Call `living`'s hooks at exit and in forked children, for as long as it lives."""
    _WATCHED.add(living)


def _flush_all() -> None:
    # The main thread has ended, but others and executors may still be at work and end runs, so
    # nothing is closed yet. Registered last, the close comes before other libraries' exit hooks,
    # such as the one that shuts an exporter down.
    atexit.register(_close_all)
    _unless_interrupted(lambda living: living.flush_at_exit())


def _close_all() -> None:
    _unless_interrupted(lambda living: living.close_at_exit())


def _unless_interrupted(end: Callable[[_Living], None]) -> None:
    watched = list(_WATCHED)
    try:
        for living in watched:
            end(living)
    except KeyboardInterrupt:
        # Who presses Ctrl-C while the process ends wants it to end now. Let through, Python would
        # print it and go on to the next hook, which would wait anew.
        for living in watched:
            with suppress(KeyboardInterrupt):
                living.give_up_at_exit()


def _after_fork() -> None:
    for living in list(_WATCHED):
        living.restart_after_fork()


# atexit runs after the executors are closed, too late for an asynchronous judge client.
if not register_before_threads_end(_flush_all):
    atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Sweepable(Protocol):
    """Something that follows runs and gives them up when they are overdue."""

    def sweep(self) -> object:
        """Give up what is overdue, and ask again for what will be; may come too early."""


@runtime_checkable
class HoldsRuns(Sweepable, Protocol):
    """Something that keeps runs back for a while after their end."""

    def hand_over_ended(self) -> object:
        """Submit every run that has ended, now."""


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
        """Have every run that has ended submitted now: somebody waits for its score."""
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
