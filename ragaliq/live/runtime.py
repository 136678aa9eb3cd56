"""The one runtime of a process: the worker thread, and the shared parts of all monitors.

The thread is a daemon with its own event loop. It never touches the application's loop, so it works
the same in scripts, notebooks and synchronous or asynchronous servers.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Hashable
from contextvars import Context
from dataclasses import dataclass
from pathlib import Path
from types import MethodType
from typing import Any, Protocol, TypeVar

from ragaliq.core.process import watch_process
from ragaliq.core.sync import LoopThread
from ragaliq.live.stats import MonitorStats
from ragaliq.records.sinks import SinkSet

logger = logging.getLogger(__name__)

T = TypeVar("T")

LINGER = 60.0
"""Seconds that a judge, its process and a sink wait for a next monitor after the last one is gone:
applications may make a monitor for each request."""

# Seconds of waiting at exit before the reason is logged: the embedded judge takes one to start.
_UNNOTICED = 2.0
# Most seconds for ending an unused part.
_END_WITHIN = 10.0


class Sweepable(Protocol):
    """An adapter with open runs that may be overdue."""

    def sweep(self) -> object:
        """Give up overdue runs, and schedule the next sweep; may be called too early."""


class Queueing(Protocol):
    """A queue of monitors, as the runtime sees it."""

    @property
    def undone(self) -> int:
        """Number of runs that wait or are being evaluated."""


class Ending(Protocol):
    """A monitor, as the runtime sees it: it ends with its process."""

    sinks: SinkSet
    exit_timeout: float

    @property
    def queue(self) -> Queueing:
        """Its runs, and those of other monitors of its judge."""

    def flush(self, timeout: float) -> bool:
        """Wait for its runs."""

    def close(self, timeout: float) -> bool:
        """Wait for its runs, and stop."""

    def stats(self) -> MonitorStats:
        """Counts of its runs."""

    def restart_after_fork(self) -> None:
        """Replace the parent's parts in a forked child."""


class _Same:
    """Compares an object by identity, and keeps it alive so that its id stays unique."""

    __slots__ = ("_given",)

    def __init__(self, given: object) -> None:
        self._given = given

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other._given is self._given

    def __hash__(self) -> int:
        return id(self._given)


def described_as(given: object) -> Hashable:
    """Part of a key: names are equal by value, objects by identity."""
    if given is None or isinstance(given, str | Path):
        return given
    # Each access creates a new bound method; they are equal if object and function are.
    return given if isinstance(given, MethodType) else _Same(given)


@dataclass(eq=False)
class Part:
    """Part that monitors share.

    Attributes:
        key: Key of the part.
        value: The shared object.
        close: Ends it within the given seconds; returns False if something was left undone.
        disown: Drops the parent's object in a forked child, without touching it.
        linger: Seconds to wait for a next user after the last one was garbage-collected.
        users: Number of monitors that use it.
        unused_since: Monotonic time at which the last one was garbage-collected.
    """

    key: Hashable
    value: Any
    close: Callable[[Any, float], object] | None
    disown: Callable[[Any], object] | None
    linger: float
    users: int = 0
    unused_since: float = 0.0

    def end(self, timeout: float) -> bool:
        """End it."""
        return self.close is None or self.close(self.value, timeout) is not False


class Runtime:
    """Thread, timer and shared parts of all monitors of this process.

    Attributes:
        thread: The worker thread.
        monitors: All living monitors.
    """

    def __init__(self) -> None:
        self.thread = LoopThread("ragaliq-worker")
        self.monitors: weakref.WeakSet[Ending] = weakref.WeakSet()
        self._start()
        watch_process(self)

    def _start(self) -> None:
        """Initialise what each process has for itself."""
        # Re-entrant: the garbage collector may end a run on this thread.
        self._lock = threading.RLock()
        self._parts: dict[Hashable, Part] = {}
        self._left: deque[list[Part]] = deque()
        self._is_tidying = False
        self._sweepables: weakref.WeakSet[Sweepable] = weakref.WeakSet()
        self._next_sweep: float | None = None

    # --- what monitors share ------------------------------------------------------------------

    def share(
        self,
        uses: list[Part],
        key: Hashable,
        make: Callable[[], T],
        *,
        close: Callable[[T, float], object] | None = None,
        disown: Callable[[T], object] | None = None,
        linger: float = 0.0,
    ) -> T:
        """Return the part with this key; create it if there is none.

        It ends when the last monitor that uses it is closed, or `linger` seconds after the last one
        was dropped.

        Args:
            uses: The monitor's parts; the part is added.
            key: Key of the part.
            make: Creates it.
            close: See `Part`.
            disown: See `Part`.
            linger: See `Part`.
        """
        if self._left and self.thread.running is None:
            self._tidy()
        with self._lock:
            part = self._parts.get(key)
            if part is None:
                part = self._parts[key] = Part(key, make(), close, disown, linger)
            part.users += 1
            uses.append(part)
            value: T = part.value
            return value

    def let_go(self, uses: list[Part], timeout: float) -> bool:
        """Release parts and end those without users; False if something was left undone."""
        deadline = time.monotonic() + timeout
        with self._lock:
            unused = [part for part in self._released(uses) if self._parts.pop(part.key, None)]
        # Each part gets some time, however long the others took: above all a write to a disk.
        ends = [part.end(max(0.25, deadline - time.monotonic())) for part in unused]
        return all(ends)

    def drop(self, uses: list[Part]) -> None:
        """Release the parts of a garbage-collected monitor; called on any thread."""
        self._left.append(uses)  # which needs no lock
        self.call(self._tidy)

    def _released(self, uses: list[Part]) -> list[Part]:
        unused = []
        while uses:
            part = uses.pop(0)
            part.users -= 1
            if not part.users:
                part.unused_since = time.monotonic()
                unused.append(part)
        return unused

    def _tidy(self) -> None:
        """End parts that were unused for long enough, and schedule the next check."""
        with self._lock:
            while self._left:
                self._released(self._left.popleft())
            now = time.monotonic()
            unused = [part for part in self._parts.values() if not part.users]
            due = [part for part in unused if now - part.unused_since >= part.linger]
            for part in due:
                del self._parts[part.key]
            waits = [part.unused_since + part.linger for part in unused if part not in due]
            left = min(waits, default=math.inf) - now
            if left < math.inf and not self._is_tidying and self.thread.running is not None:
                self._is_tidying = True
                self.thread.running.call_later(left + 0.01, self._tidy_again, context=Context())
        if due and self.thread.running is None:
            _end(due, 0.0)  # nothing of it has begun
        elif due:
            ending = threading.Thread(target=_end, args=(due, _END_WITHIN), name="ragaliq-ends")
            ending.daemon = True
            with contextlib.suppress(RuntimeError):  # no thread can be started any more
                ending.start()

    def _tidy_again(self) -> None:
        self._is_tidying = False
        self._tidy()

    # --- the thread ---------------------------------------------------------------------------

    def call(self, function: Callable[..., object], *given: object) -> None:
        """Call a function on the worker's thread, if it runs."""
        if (loop := self.thread.running) is not None:
            with contextlib.suppress(RuntimeError):  # closed already
                # Not in the caller's context: a framework's callbacks in it would pass the judge's
                # calls to the application, or its user.
                loop.call_soon_threadsafe(function, *given, context=Context())

    def run(self, work: Callable[[], Coroutine[Any, Any, None]], timeout: float) -> None:
        """Run a coroutine on the worker's loop, if it runs, and wait at most `timeout` seconds."""
        loop = self.thread.running
        if loop is not None and not self.thread.is_current:
            with contextlib.suppress(Exception):  # whatever it raises, the caller goes on ending
                asyncio.run_coroutine_threadsafe(work(), loop).result(timeout)

    def sweep_later(self, delay: float, sweepable: Sweepable) -> bool:
        """Schedule one sweep, in `delay` seconds or sooner; False if there will be none.

        There is one timer for all, and it keeps no object alive: an application may make a handler
        for each request, for which separate timers would cost too much.
        """
        at = time.monotonic() + delay
        with self._lock:
            if self._next_sweep is None or at < self._next_sweep:
                try:
                    loop = self.thread.loop()
                except RuntimeError:
                    return False
                # In an empty context; otherwise the timer keeps the request's context variables
                # alive.
                loop.call_soon_threadsafe(loop.call_later, delay, self._sweep, context=Context())
                self._next_sweep = at
            self._sweepables.add(sweepable)
        return True

    def _sweep(self) -> None:
        with self._lock:
            self._next_sweep = None
            due = list(self._sweepables)
            self._sweepables.clear()
        for each in due:
            each.sweep()

    # --- the ends of the process --------------------------------------------------------------

    def flush_at_exit(self) -> None:
        """Wait for queued runs after the main thread has ended."""
        monitors = list(self.monitors)
        limit = max((each.exit_timeout for each in monitors), default=0.0)
        unnoticed = min(limit, _UNNOTICED)
        if _each(monitors, "flush", unnoticed):
            return
        left = limit - unnoticed
        if left > 0:
            sinks = {sink for each in monitors for sink in each.sinks.workers}
            logger.warning(
                "the process waits for %d runs to be evaluated and %d results to be stored, %g s "
                "more at most; Ctrl-C ends it now",
                sum(queue.undone for queue in {each.queue for each in monitors}),
                sum(sink.stats().pending for sink in sinks),
                left,
            )
        if left <= 0 or not _each(monitors, "flush", left):
            self.give_up_at_exit()

    def close_at_exit(self) -> None:
        """Close every monitor and all unused parts at the end of the interpreter."""
        monitors = list(self.monitors)
        _each(monitors, "close", max((each.exit_timeout for each in monitors), default=0.0))
        with self._lock:
            left = [*self._parts.values()]
            self._parts.clear()
        for part in left:
            part.end(0.25)
        self.thread.stop(0.25)

    def give_up_at_exit(self) -> None:
        """Close without waiting, and log what is lost, when the user will not wait."""
        monitors = list(self.monitors)
        sinks = {sink for each in monitors for sink in each.sinks.workers}

        def lost() -> tuple[int, int]:
            runs = sum(each.stats().outcomes.get("shutdown", 0) for each in monitors)
            return runs, sum(sink.stats().dropped for sink in sinks)

        runs, records = lost()
        _each(monitors, "close", 0.0)
        runs, records = lost()[0] - runs, lost()[1] - records
        if runs or records:
            logger.warning(
                "lost at the end of the process: %d runs not evaluated (counted as shutdown), %d "
                "results not stored (counted as dropped)",
                runs,
                records,
            )

    def restart_after_fork(self) -> None:
        """Replace the parent's queues, threads and counts in a forked child."""
        parts = [*self._parts.values()]
        self._start()
        for part in parts:
            if part.disown is not None:
                part.disown(part.value)
        for monitor in list(self.monitors):
            monitor.restart_after_fork()


def _end(parts: list[Part], timeout: float) -> None:
    for part in parts:
        part.end(timeout)


def _each(monitors: list[Ending], method: str, timeout: float) -> bool:
    """Flush or close monitors within `timeout` seconds for all together."""
    deadline = time.monotonic() + timeout
    done = [getattr(each, method)(max(0.0, deadline - time.monotonic())) for each in monitors]
    return all(done)  # every one got its chance, also after one that failed


# Keep the runtime when the module is loaded again, as in a notebook.
RUNTIME: Runtime = globals().get("RUNTIME") or Runtime()
