"""The one runtime of a process: the thread that judges, and what the monitors of a process share.

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
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ragaliq.core.process import watch_process
from ragaliq.core.sync import LoopThread

if TYPE_CHECKING:
    from ragaliq.live.monitor import Monitor

logger = logging.getLogger(__name__)

T = TypeVar("T")

LINGER = 60.0
"""Seconds that a judge, its process and a sink wait for a next monitor after the last one is gone:
applications may make a monitor for each request."""

# Seconds a process may take to end without saying why: the embedded judge takes one to start.
_UNNOTICED = 2.0
# Seconds that what nobody uses any more has to end.
_END_WITHIN = 10.0


class Sweepable(Protocol):
    """Something that follows runs and gives them up when they are overdue."""

    def sweep(self) -> object:
        """Give up what is overdue, and ask again for what will be; may come too early."""


class _Same:
    """Compares an object by identity, and keeps it alive: its id is its own for so long."""

    __slots__ = ("_given",)

    def __init__(self, given: object) -> None:
        self._given = given

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other._given is self._given

    def __hash__(self) -> int:
        return id(self._given)


def described_as(given: object) -> Hashable:
    """The part of a key that an argument gives: names are equal by value, objects by identity."""
    if given is None or isinstance(given, str | Path):
        return given
    # Bound methods are made anew each time, and equal where object and function are.
    return given if isinstance(given, MethodType) else _Same(given)


@dataclass(eq=False)
class Part:
    """Something that monitors share.

    Attributes:
        key: What it is found by.
        value: The thing itself.
        close: Ends it within so many seconds; returns whether nothing was left undone.
        disown: In a forked child: lets go of it without touching what is the parent's.
        linger: Seconds it waits for a next user once the last one was dropped without a close.
        users: Monitors that use it.
        unused_since: When the last one was gone, by the monotonic clock.
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
        thread: Where runs are judged.
        monitors: All that are alive.
    """

    def __init__(self) -> None:
        self.thread = LoopThread("ragaliq-worker")
        self.monitors: weakref.WeakSet[Monitor] = weakref.WeakSet()
        self._start()
        watch_process(self)

    def _start(self) -> None:
        """What each process has for itself."""
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
        """The part with this key; made where there is none.

        It ends when the last monitor that uses it is closed, or `linger` seconds after the last one
        was dropped.

        Args:
            uses: What the monitor uses; takes in the part.
            key: Describes it.
            make: Makes it.
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
        """End what nobody else uses; False where something was left undone after `timeout`."""
        deadline = time.monotonic() + timeout
        with self._lock:
            unused = [part for part in self._released(uses) if self._parts.pop(part.key, None)]
        # Whatever the others took, each has its chance: a write to a disk, above all.
        ends = [part.end(max(0.25, deadline - time.monotonic())) for part in unused]
        return all(ends)

    def drop(self, uses: list[Part]) -> None:
        """Note that a monitor is gone; called by the garbage collector, on any thread."""
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
        """End what nobody has used for long enough, and come back for the rest."""
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
        """Have something called on the worker's thread, where it runs."""
        if (loop := self.thread.running) is not None:
            with contextlib.suppress(RuntimeError):  # closed already
                # Not in the caller's context: with a framework's callbacks in it, what the judge
                # asks and is told would be handed to the application, or its user.
                loop.call_soon_threadsafe(function, *given, context=Context())

    def run(self, work: Callable[[], Coroutine[Any, Any, None]], timeout: float) -> None:
        """Run something on the worker's loop, where it runs, and wait so many seconds for it."""
        loop = self.thread.running
        if loop is not None and not self.thread.is_current:
            with contextlib.suppress(Exception):  # whatever it raises, the caller goes on ending
                asyncio.run_coroutine_threadsafe(work(), loop).result(timeout)

    def sweep_later(self, delay: float, sweepable: Sweepable) -> bool:
        """Sweep something once, in `delay` seconds or sooner; False when it will not be done.

        There is one timer, and it keeps nothing alive: applications may make a handler for each
        request, which would pay for timers of their own with time and memory.
        """
        at = time.monotonic() + delay
        with self._lock:
            if self._next_sweep is None or at < self._next_sweep:
                try:
                    loop = self.thread.loop()
                except RuntimeError:
                    return False
                # In no context, or the timer would keep what the request holds for so long.
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
        """Wait for what is queued; called when the main thread has ended."""
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
        """Close every monitor, and end what waits for a next one; the interpreter ends."""
        monitors = list(self.monitors)
        _each(monitors, "close", max((each.exit_timeout for each in monitors), default=0.0))
        with self._lock:
            left = [*self._parts.values()]
            self._parts.clear()
        for part in left:
            part.end(0.25)
        self.thread.stop(0.25)

    def give_up_at_exit(self) -> None:
        """Close without waiting, and log what is lost; called when the user will not wait."""
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
        """In a forked child: the parent's queues, threads and counts are the parent's."""
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


def _each(monitors: list[Monitor], method: str, timeout: float) -> bool:
    """Flush or close monitors, within so many seconds for all together."""
    deadline = time.monotonic() + timeout
    done = [getattr(each, method)(max(0.0, deadline - time.monotonic())) for each in monitors]
    return all(done)  # every one got its chance, also after one that failed


# What is there already stays when the module is loaded again, as in a notebook.
RUNTIME: Runtime = globals().get("RUNTIME") or Runtime()
