"""Queue of runs for a judge, shared by all monitors of the judge."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Iterator
from contextvars import Context
from functools import partial
from itertools import chain

from ragaliq.capture import Conversations
from ragaliq.core.sync import wait_for
from ragaliq.live.run import RunHandle
from ragaliq.live.runtime import RUNTIME
from ragaliq.live.stats import RunCounters
from ragaliq.telemetry.names import Outcome

_LINGER = 0.05
"""Seconds that a run waits for others: waking the worker's thread and the judge's process for each
run would cost the application as much as the rest of its evaluation."""
_AWAITED = 2


class RunQueue:
    """Runs in the order of evaluation; not thread-safe by itself.

    Within a priority, first come is first served. In a full queue, a run displaces the newest ones
    of the lowest priority below its own.

    Attributes:
        bytes: Bytes of the texts of all runs.
    """

    def __init__(self) -> None:
        # By priority: 0 rate-sampled, 1 rule-selected, 2 awaited.
        self._levels: tuple[deque[RunHandle], ...] = (deque(), deque(), deque())
        self.bytes = 0

    def __len__(self) -> int:
        return sum(map(len, self._levels))

    def __iter__(self) -> Iterator[RunHandle]:
        return chain.from_iterable(reversed(self._levels))

    def put(self, run: RunHandle, *, max_runs: int, max_bytes: int) -> list[RunHandle] | None:
        """Add a run.

        Args:
            run: The run.
            max_runs: Most queued runs, including this one.
            max_bytes: Most bytes of their texts together.

        Returns:
            The displaced runs; None if there is no room for it.
        """
        count, size = len(self) + 1, self.bytes + run.size
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
            # One statement, here and below: a signal's exception may come between two.
            _, self.bytes = self._levels[other.priority].pop(), self.bytes - other.size
        level = self._levels[run.priority]
        _, self.bytes = level.extend((run,)), self.bytes + run.size  # type: ignore[func-returns-value]
        return displaced

    def next(self) -> RunHandle | None:
        """Run that `take` would return."""
        return next(iter(self), None)

    def take(self) -> RunHandle | None:
        """Remove and return the next run."""
        for level in reversed(self._levels):
            if level:
                run = level[0]
                _, self.bytes = level.popleft(), self.bytes - run.size
                return run
        return None

    def clear(self, counters: RunCounters) -> list[RunHandle]:
        """Remove and return all runs of one monitor."""
        gone = [run for run in self if run.counters is counters]
        for run in gone:
            self._levels[run.priority].remove(run)
            self.bytes -= run.size
        return gone


class JudgeQueue:
    """Shared parts of the monitors of one judge, or of one place of evaluation.

    The bounds of a run's own monitor apply to the whole queue: there may be one monitor for each
    request, and together they must not exceed the bounds of one.

    Attributes:
        conversations: Earlier turns of the runs' conversations.
    """

    def __init__(self) -> None:
        # Re-entrant: the garbage collector may end a run on this thread. Without a notification
        # only the lock is taken, which costs a request less.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._waiting = RunQueue()
        self._working: dict[asyncio.Task[None], RunHandle] = {}
        self._is_woken = False
        self.conversations = Conversations()

    @property
    def size(self) -> int:
        """Number of waiting runs."""
        return len(self._waiting)

    @property
    def bytes(self) -> int:
        """Bytes of the waiting runs' texts."""
        return self._waiting.bytes

    @property
    def undone(self) -> int:
        """Number of runs that wait or are being evaluated."""
        return len(self._waiting) + len(self._working)

    def put(self, run: RunHandle) -> bool:
        """Queue a submitted run without blocking; return False, and count the reason, if refused.

        Raises:
            RuntimeError: The thread cannot be started; nothing is counted.
        """
        displaced: list[RunHandle] | None = None
        monitor = run.monitor
        with self._lock:
            is_closed = run.counters.is_closed
            if not is_closed:
                # First: without a thread nothing may be queued.
                loop = RUNTIME.thread.loop()
                displaced = self._waiting.put(
                    run, max_runs=monitor.max_queue, max_bytes=monitor.max_queue_bytes
                )
                # With enough runs in progress, the end of one begins the next.
                has_room = displaced is not None and len(self._working) < monitor.concurrency
                if has_room and run.priority == _AWAITED:
                    loop.call_soon_threadsafe(self._begin, context=Context())
                elif has_room and not self._is_woken:
                    begin = partial(loop.call_later, _LINGER, self._begin)
                    loop.call_soon_threadsafe(begin, context=Context())
                    self._is_woken = True
        if displaced is None:
            run.end("shutdown" if is_closed else "queue_full")
        elif displaced:
            self._drop(displaced, "queue_full")
        return displaced is not None

    def wait(self, counters: RunCounters, timeout: float, *, whatever: bool = False) -> bool:
        """Wait until a monitor's runs so far are done.

        Args:
            counters: The monitor's counters.
            timeout: Seconds.
            whatever: Whether to wait for a monitor that was closed before its runs were done.
        """
        if RUNTIME.thread.is_current:
            return False
        with self._changed:
            undone = [*self._waiting, *self._working.values()]
            left = [run for run in undone if run.counters is counters]
            if counters.is_given_up and not whatever:
                timeout = 0.0
            if self._waiting:
                # It may linger, or its thread was interrupted before it woke the loop.
                RUNTIME.call(self._begin)

            def is_done() -> bool:
                while left and left[-1].is_done:
                    left.pop()
                return not left

            return wait_for(self._changed, is_done, timeout)

    def give_up(self, counters: RunCounters) -> None:
        """Drop and count the waiting runs of a monitor."""
        with self._lock:
            left = self._waiting.clear(counters)
        self._drop(left, "shutdown")

    def cancel(self, counters: RunCounters) -> None:
        """Cancel the evaluations of a monitor; called on the worker's thread."""
        for task, run in self._working.items():
            if run.counters is counters:
                task.cancel()

    def count_stuck(self, counters: RunCounters) -> None:
        """Count the runs in progress of a monitor, where a judge blocks the thread to the end."""
        with self._lock:
            left = [run for run in self._working.values() if run.counters is counters]
        for run in left:
            run.end("shutdown")

    def _drop(self, runs: list[RunHandle], reason: Outcome) -> None:
        for run in runs:
            run.end(reason)
            with self._changed:
                run.is_done = True
                self._changed.notify_all()

    # --- on the worker's thread ---------------------------------------------------------------

    def _begin(self) -> None:
        """Start as many runs as may be evaluated concurrently."""
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
                # Retrieve the exception, or asyncio would log it with the application's text.
                task.exception()
            run.is_done = True
            self._begin()
            self._changed.notify_all()
