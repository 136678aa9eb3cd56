"""Registry of open runs, bounded in number, age and bytes, for every adapter.

Frameworks deliver the events of one run from several threads, sometimes twice, sometimes never.
Only opening and closing a run takes the lock; everything between is a dictionary access.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable
from typing import Generic, Protocol, TypeVar

from ragaliq.core.checks import require_positive
from ragaliq.core.process import watch_forks

_SWEEP_SECONDS = 5.0
_SOONEST_SECONDS = 0.05
_PAST_STEPS = 16_384


class FollowedRun(Protocol):
    """A run as the registry sees it.

    Attributes:
        key: The id of its first step.
        started: When it began, in seconds of the registry's clock.
        closed: Whether it is over; the registry sets it.
    """

    key: Hashable
    started: float
    closed: bool

    @property
    def steps(self) -> Collection[Hashable]:
        """The ids of all its steps so far, its own among them."""

    @property
    def size(self) -> int:
        """Bytes of what it holds, about."""

    def discard(self, reason: str) -> None:
        """Discard the run: `evicted`, `expired` or the reason of `give_up`."""


R = TypeVar("R", bound=FollowedRun)


class RunRegistry(Generic[R]):
    """Open runs of one handler.

    Args:
        max_runs: Most open runs; the oldest is evicted first (`evicted`).
        max_age: Seconds after which a run that never ended expires (`expired`).
        max_bytes: Most bytes of all runs; the oldest are evicted first (`evicted`), with the sweep
            of overdue ones every few seconds.
        sweep_later: Schedules a sweep on another thread: takes the most seconds until then, and
            this registry; returns False if it cannot.
        clock: Seconds, monotonic.

    Attributes:
        runs: The run of every step in progress. Adapters look it up here for every event, without
            a method call.
    """

    def __init__(
        self,
        *,
        max_runs: int = 10_000,
        max_age: float = 600.0,
        max_bytes: int = 256 * 1024 * 1024,
        sweep_later: Callable[[float, RunRegistry[R]], bool] = lambda *_: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        require_positive("a handler", max_runs=max_runs, max_age=max_age, max_bytes=max_bytes)
        self._max_runs = max_runs
        self._max_age = max_age
        self._max_bytes = max_bytes
        self._sweep_later = sweep_later
        self._clock = clock
        self._sweep_every = min(_SWEEP_SECONDS, max_age)
        self.restart_after_fork()
        watch_forks(self)

    def restart_after_fork(self) -> None:
        """Forget everything in a forked child: the parent's runs go on there."""
        # Re-entrant: a stream that is dropped half-read ends its run from the garbage collector,
        # which may run on this thread while it holds the lock.
        self._lock = threading.RLock()
        self._open: OrderedDict[Hashable, R] = OrderedDict()
        self.runs: dict[Hashable, R] = {}
        # Steps that are over, or were ignored.
        self._past: set[Hashable] = set()
        self._before: set[Hashable] = set()
        self._next_sweep = self._clock() + self._sweep_every
        self._is_watched = False

    def __len__(self) -> int:
        return len(self._open)

    def open(self, run: R) -> None:
        """Add a run, and evict runs that are too old, too many or too large."""
        with self._lock:
            self._open[run.key] = self.runs[run.key] = run
            is_due = run.started >= self._next_sweep or len(self._open) > self._max_runs
            given_up = self._overdue(run.started) if is_due else ()
        if not self._is_watched:  # after the run is in: a sweep in between would have missed it
            # Runs that never end are given up when another one starts; in a process that has
            # become idle, by the worker.
            self._is_watched = self._sweep_later(self._max_age, self)
        for reason, old in given_up:
            old.discard(reason)

    def join(self, run: R, step: Hashable) -> None:
        """Register a step of a run; the run's own `steps` must have it already."""
        self.runs[step] = run
        if run.closed:  # it ended in another thread just now
            self.runs.pop(step, None)
            self.ignore(step)

    def close(self, run: R) -> bool:
        """Remove a run; return True the first time."""
        with self._lock:
            # Removed from `_open` first, in one step: the garbage collector may end it in between.
            if run.closed or self._open.pop(run.key, None) is None:
                return False
            run.closed = True
            steps = tuple(run.steps)  # a snapshot: steps may start in other threads
            forget = self.runs.pop
            for step in steps:
                forget(step, None)
            self._past.update(steps)
            if len(self._past) >= _PAST_STEPS:
                self.ignore()  # which makes room
            return True

    def ignore(self, *steps: Hashable) -> None:
        """Ignore these steps and everything below them."""
        with self._lock:
            self._past.update(steps)
            if len(self._past) >= _PAST_STEPS:
                self._past, self._before = set(), self._past

    def follows(self, run: R | None) -> bool:
        """True if a run is one of these and has not ended."""
        return run is not None and self.runs.get(run.key) is run

    def is_ignored(self, step: Hashable | None) -> bool:
        """True if a step's run is over, or the step was ignored.

        At least the latest 16,384 steps are remembered, and at most about twice as many.
        """
        with self._lock:
            return step in self._past or step in self._before

    def open_runs(self) -> list[R]:
        """The runs in progress, the oldest first."""
        with self._lock:
            return list(self._open.values())

    def give_up(self, reason: str) -> None:
        """End every run: no more events will come."""
        for run in self.open_runs():
            if self.close(run):
                run.discard(reason)

    def sweep(self) -> None:
        """Expire overdue runs, and schedule the next sweep; called by a timer."""
        with self._lock:
            self._next_sweep = -math.inf
            given_up = self._overdue(self._clock())
            oldest = next(iter(self._open.values()), None)
            self._is_watched = False  # a run that starts from here on has to ask again
        for reason, run in given_up:
            run.discard(reason)
        if oldest is not None:
            left = max(self._max_age - (self._clock() - oldest.started), _SOONEST_SECONDS)
            self._is_watched = self._sweep_later(left, self)

    def _overdue(self, now: float) -> list[tuple[str, R]]:
        given_up = []
        is_sweep = now >= self._next_sweep
        held = 0
        if is_sweep:
            self._next_sweep = now + self._sweep_every
            held = sum(run.size for run in self._open.values())
        while self._open:
            oldest = next(iter(self._open.values()))
            if len(self._open) > self._max_runs or held > self._max_bytes:
                reason = "evicted"
            elif is_sweep and now - oldest.started > self._max_age:
                reason = "expired"
            else:
                break
            held -= oldest.size
            if self.close(oldest):
                given_up.append((reason, oldest))
        return given_up
