"""The runs that wait for a judge, and those that it has; shared by all monitors of the judge."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Iterator
from contextvars import Context
from itertools import chain

from ragaliq.capture import Conversations
from ragaliq.core.sync import wait_for
from ragaliq.live.run import RunHandle
from ragaliq.live.runtime import RUNTIME
from ragaliq.live.stats import RunCounters
from ragaliq.telemetry.names import Outcome


class RunQueue:
    """Runs in the order in which they are to be judged; not safe for threads by itself.

    Within a priority, first come is first served. A run that finds the queue full takes the place
    of the newest ones of the lowest priority below its own.

    Attributes:
        size: Bytes the texts of all runs take.
    """

    def __init__(self) -> None:
        # By priority: 0 chosen by the rate, 1 by a rule, 2 somebody waits.
        self._levels: tuple[deque[RunHandle], ...] = (deque(), deque(), deque())
        self.size = 0

    def __len__(self) -> int:
        return sum(map(len, self._levels))

    def __iter__(self) -> Iterator[RunHandle]:
        return chain.from_iterable(reversed(self._levels))

    def put(self, run: RunHandle, *, max_runs: int, max_bytes: int) -> list[RunHandle] | None:
        """Add a run.

        Args:
            run: The run.
            max_runs: Runs that may wait, this one included.
            max_bytes: Bytes their texts may take together.

        Returns:
            The runs that lost their place to it, or None when there is no room for it.
        """
        count, size = len(self) + 1, self.size + run.size
        displaced: list[RunHandle] = []
        if count > max_runs or size > max_bytes:
            for other in chain.from_iterable(map(reversed, self._levels[: run.priority])):
                displaced.append(other)
                count, size = count - 1, size - other.size
                if count <= max_runs and size <= max_bytes:
                    break
            else:
                return None
        for other in displaced:
            # In one line, here and below: an exception from a signal may come between two.
            _, self.size = self._levels[other.priority].pop(), self.size - other.size
        level = self._levels[run.priority]
        _, self.size = level.extend((run,)), self.size + run.size  # type: ignore[func-returns-value]
        return displaced

    def next(self) -> RunHandle | None:
        """The run that `take` would give."""
        return next(iter(self), None)

    def take(self) -> RunHandle | None:
        """Remove and return the run that is next."""
        for level in reversed(self._levels):
            if level:
                run = level[0]
                _, self.size = level.popleft(), self.size - run.size
                return run
        return None

    def clear(self, counters: RunCounters) -> list[RunHandle]:
        """Remove and return all runs of one monitor."""
        gone = [run for run in self if run.counters is counters]
        for run in gone:
            self._levels[run.priority].remove(run)
            self.size -= run.size
        return gone


class JudgeQueue:
    """What the monitors of one judge, or of one place where judging happens, have in common.

    Each run is measured by the bounds of its own monitor, against everything that waits here:
    monitors may be made for each request, and together they must not exceed what one may.

    Attributes:
        conversations: Earlier turns of the runs' conversations.
    """

    def __init__(self) -> None:
        # Re-entrant: the garbage collector may end a run on this thread. Where nobody is notified
        # the lock alone is taken, which costs a request less.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._waiting = RunQueue()
        self._working: dict[asyncio.Task[None], RunHandle] = {}
        self._is_woken = False
        self.conversations = Conversations()

    @property
    def size(self) -> int:
        """Runs waiting."""
        return len(self._waiting)

    @property
    def bytes(self) -> int:
        """Bytes the texts of the waiting runs take."""
        return self._waiting.size

    @property
    def undone(self) -> int:
        """Runs waiting, and those that the judge has."""
        return len(self._waiting) + len(self._working)

    def put(self, run: RunHandle) -> bool:
        """Queue a submitted run without blocking; whether it was taken. The reason is counted.

        Raises:
            RuntimeError: The thread cannot be started; nothing is counted.
        """
        displaced: list[RunHandle] | None = None
        monitor = run.monitor
        with self._lock:
            is_closed = run.counters.is_closed
            if not is_closed:
                # First: where there is no thread nothing may be queued.
                loop = RUNTIME.thread.loop()
                displaced = self._waiting.put(
                    run, max_runs=monitor.max_queue, max_bytes=monitor.max_queue_bytes
                )
                # Where enough runs are being judged, the end of one begins the next.
                has_room = not self._is_woken and len(self._working) < monitor.concurrency
                if displaced is not None and has_room:
                    loop.call_soon_threadsafe(self._begin, context=Context())
                    self._is_woken = True
        if displaced is None:
            run.end("shutdown" if is_closed else "queue_full")
        elif displaced:
            self._drop(displaced, "queue_full")
        return displaced is not None

    def wait(self, counters: RunCounters, timeout: float, *, whatever: bool = False) -> bool:
        """Wait until a monitor's runs so far are done.

        Args:
            counters: Whose runs.
            timeout: Seconds.
            whatever: Whether to wait for a monitor that was closed with runs left behind.
        """
        if RUNTIME.thread.is_current:
            return False
        with self._changed:
            undone = [*self._waiting, *self._working.values()]
            left = [run for run in undone if run.counters is counters]
            if counters.is_given_up and not whatever:
                timeout = 0.0
            if self._waiting and not self._working:
                # The thread that queued the run may have been interrupted before it woke the loop.
                RUNTIME.call(self._begin)

            def is_done() -> bool:
                while left and left[-1].is_done:
                    left.pop()
                return not left

            return wait_for(self._changed, is_done, timeout)

    def give_up(self, counters: RunCounters) -> None:
        """Drop and count what waits of a monitor."""
        with self._lock:
            left = self._waiting.clear(counters)
        self._drop(left, "shutdown")

    def cancel(self, counters: RunCounters) -> None:
        """Cancel the evaluations of a monitor; called on the worker's thread."""
        for task, run in self._working.items():
            if run.counters is counters:
                task.cancel()

    def _drop(self, runs: list[RunHandle], reason: Outcome) -> None:
        for run in runs:
            run.end(reason)
            with self._changed:
                run.is_done = True
                self._changed.notify_all()

    # --- on the worker's thread ---------------------------------------------------------------

    def _begin(self) -> None:
        """Begin with as many runs as may be judged at the same time."""
        with self._lock:
            self._is_woken = False
            while (run := self._waiting.next()) is not None:
                if len(self._working) >= run.monitor.concurrency:
                    return
                self._waiting.take()
                task = asyncio.ensure_future(run.monitor.judge_run(run))
                self._working[task] = run
                task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        with self._changed:
            run = self._working.pop(task)
            if task.cancelled():
                run.end("shutdown")  # where its first step never came, nothing else counts it
            else:
                # Asked for, or asyncio would log what was raised, the application's text included.
                task.exception()
            run.is_done = True
            self._begin()
            self._changed.notify_all()


async def closed(*things: object) -> None:
    """Close judges, processes and connections, each whatever becomes of the others."""
    for thing in things:
        with contextlib.suppress(Exception):
            await thing.aclose()  # type: ignore[attr-defined]
