"""The in-process executor: a bounded queue drained by one daemon thread with its own event loop.

The thread never touches the application's loop, so it works the same in scripts, notebooks and
synchronous or asynchronous servers.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ragaliq.core.sync import LoopThread
from ragaliq.live.run import Submission

__all__ = ["Refusal", "RunQueue", "WaitingRun", "Worker"]

Refusal = Literal["queue_full", "shutdown"]


class Worker:
    """Runs jobs in the background.

    Args:
        handle: Evaluates one job on the worker's loop; must not raise.
        dropped: Called for each job that was taken and will not be done, with the reason.
        concurrency: Jobs evaluated at the same time.
        queue: Where jobs wait.
        is_callback_thread: Whether the caller is a callback that a job waits for.
    """

    def __init__(
        self,
        handle: Callable[[Submission], Awaitable[None]],
        dropped: Callable[[Submission, Refusal], None],
        *,
        concurrency: int,
        queue: RunQueue,
        is_callback_thread: Callable[[], bool] = lambda: False,
    ) -> None:
        self._handle = handle
        self._dropped = dropped
        self._concurrency = concurrency
        self._queue = queue
        self._is_callback_thread = is_callback_thread
        self._thread = LoopThread("ragaliq-worker")
        self._loop: asyncio.AbstractEventLoop | None = None
        # Where nobody is notified the lock alone is taken, which costs a request less.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._lanes: set[asyncio.Task[None]] = set()
        self._is_woken = False
        # Each `flush` ends an epoch and waits for the jobs of it and of those before, so that jobs
        # which come later do not keep it waiting.
        self._working: set[WaitingRun] = set()
        self._epoch = 0
        self._closed = self._given_up = False

    def submit(self, job: Submission) -> Refusal | None:
        """Queue a job without blocking; returns why it was refused, or None.

        Raises:
            RuntimeError: The thread cannot be started; the job is not queued.
        """
        size = job.size
        with self._lock:
            if self._closed:
                return "shutdown"
            # First: where there is no thread nothing may be queued.
            self._loop = loop = self._thread.loop()
            displaced = self._queue.put(WaitingRun(job, size, self._epoch))
            if displaced is None:
                return "queue_full"
            # The loop is woken only for a new lane: a busy lane takes the next job by itself.
            if not self._is_woken and len(self._lanes) < self._concurrency:
                loop.call_soon_threadsafe(self._open_lanes)
                self._is_woken = True
        for run in displaced:
            self._drop(run, "queue_full")
        return None

    def call_later(self, delay: float, callback: Callable[[], object]) -> bool:
        """Call something on the worker's thread in `delay` seconds; False if that cannot be."""
        with self._changed:
            if self._closed:
                return False
            try:
                loop = self._thread.loop()
            except RuntimeError:
                return False
            loop.call_soon_threadsafe(loop.call_later, delay, callback)
        return True

    def run(self, work: Coroutine[Any, Any, object]) -> None:
        """Run something on the worker's loop at once, beside the lanes; nobody waits for it here.

        Raises:
            RuntimeError: The thread cannot be started.
        """
        try:
            loop = self._thread.loop()
        except RuntimeError:
            work.close()
            raise
        asyncio.run_coroutine_threadsafe(work, loop)

    @property
    def size(self) -> int:
        """Jobs waiting in the queue."""
        return len(self._queue)

    @property
    def undone(self) -> int:
        """Jobs waiting in the queue or being done."""
        with self._lock:
            return len(self._queue) + len(self._working)

    @property
    def queued_bytes(self) -> int:
        """Bytes the texts of the waiting jobs take."""
        return self._queue.size

    @property
    def is_closed(self) -> bool:
        """Whether new jobs are refused."""
        return self._closed

    def flush(self, timeout: float) -> bool:
        """Wait for the jobs taken so far; False if `timeout` seconds were not enough.

        Jobs that come while it waits are not waited for. False at once on the worker's own threads,
        and on a closed worker that left jobs behind.
        """
        if self.is_current_thread:
            return False
        return self._wait(0.0 if self._given_up else timeout)

    def close(self, timeout: float) -> bool:
        """Refuse new jobs, wait up to `timeout` seconds, then drop what is left.

        On the worker's own threads it cannot wait: jobs are refused from then on, those in the
        queue are still done, and the next close from elsewhere, or the exit's, waits for them.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            self._closed = True
        if self.is_current_thread:
            return False
        finished = self.flush(timeout)
        with self._changed:
            left = self._queue.clear()
            first, self._given_up = not self._given_up, True
        for run in left:
            self._drop(run, "shutdown")
        if not finished and first and self._loop is not None:
            with suppress(RuntimeError):  # closed already
                self._loop.call_soon_threadsafe(self._cancel_lanes)
            # A moment for cancelled evaluations to count themselves and release their connections.
            self._wait(max(0.5, deadline - time.monotonic()))
        return finished

    def abandon(self) -> None:
        """In a forked child: refuse what leftovers of the parent's runs hand in.

        The parent may have held the lock at the moment of the fork.
        """
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._closed = True

    def stop(self, last: Callable[[], Coroutine[Any, Any, None]], timeout: float) -> None:
        """Run a last piece of work on the loop, if one was started, then end the thread."""
        self._thread.stop(last, timeout)

    @property
    def is_current_thread(self) -> bool:
        """Whether the caller runs on one of the worker's threads: waiting would be for itself."""
        return threading.get_ident() == self._thread.ident or self._is_callback_thread()

    def _wait(self, timeout: float) -> bool:
        with self._changed:
            last = self._epoch
            self._epoch += 1
            if self._queue and self._loop is not None and not self._lanes:
                # Whoever queued the job may have been interrupted before it woke the loop.
                with suppress(RuntimeError):  # closed already
                    self._loop.call_soon_threadsafe(self._open_lanes)
            return self._changed.wait_for(lambda: self._is_done(last), timeout)

    def _is_done(self, last: int) -> bool:
        if not self._queue and not self._working:
            return not self._lanes  # they are about to end, and hold what they worked with
        return not self._queue.holds_up_to(last) and all(run.epoch > last for run in self._working)

    def _drop(self, run: WaitingRun, reason: Refusal) -> None:
        self._dropped(run.submission, reason)
        with self._changed:
            self._changed.notify_all()

    # --- on the worker's thread ---------------------------------------------------------------

    def _open_lanes(self) -> None:
        with self._changed:
            self._is_woken = False
            wanted = min(len(self._queue), self._concurrency - len(self._lanes))
            for _ in range(wanted):
                lane = asyncio.ensure_future(self._drain())
                self._lanes.add(lane)
                lane.add_done_callback(self._lane_ended)

    def _lane_ended(self, lane: asyncio.Task[None]) -> None:
        if not lane.cancelled():
            # Asked for, or asyncio would log what was raised, the application's text included.
            lane.exception()
        with self._changed:
            self._lanes.discard(lane)
            # A job may have been queued after the lane found nothing and before it ended.
            self._open_lanes()
            self._changed.notify_all()

    def _cancel_lanes(self) -> None:
        for lane in list(self._lanes):
            lane.cancel()

    async def _drain(self) -> None:
        while True:
            with self._changed:
                run = self._queue.take()
                if run is None:
                    return
                self._working.add(run)
            try:
                await self._handle(run.submission)
            finally:
                with self._changed:
                    self._working.discard(run)
                    self._changed.notify_all()


class WaitingRun(NamedTuple):
    """A run in the queue.

    Attributes:
        submission: The run.
        size: Bytes its texts take.
        epoch: Which calls of `flush` wait for it; see `Worker`.
    """

    submission: Submission
    size: int
    epoch: int


@dataclass(slots=True)
class _Level:
    """The waiting runs of one priority, oldest first."""

    runs: deque[WaitingRun] = field(default_factory=deque)
    size: int = 0


class RunQueue:
    """Runs in the order in which they are to be judged; not safe for threads by itself.

    Within a priority, first come is first served. A run that finds the queue full takes the place
    of the newest ones of the lowest priority below its own.

    Args:
        max_runs: Runs that may wait.
        max_bytes: Bytes their texts may take together.
    """

    def __init__(self, *, max_runs: int, max_bytes: int) -> None:
        self._max_runs = max_runs
        self._max_bytes = max_bytes
        self._levels: dict[int, _Level] = {}

    def __len__(self) -> int:
        return sum(len(level.runs) for level in self._levels.values())

    @property
    def size(self) -> int:
        """Bytes the texts of all runs take."""
        return sum(level.size for level in self._levels.values())

    def put(self, run: WaitingRun) -> list[WaitingRun] | None:
        """Add a run.

        Returns:
            The runs that lost their place to it, or None when there is no room for it.
        """
        priority = run.submission.priority
        displaced: list[WaitingRun] | None = []
        if not self._fits(run, len(self), self.size):
            displaced = self._make_room(run, priority)
            if displaced is None:
                return None
        level = self._levels.get(priority)
        if level is None:
            level = self._levels[priority] = _Level()
        # In one line: an exception from a signal may come between two.
        _, level.size = level.runs.extend((run,)), level.size + run.size  # type: ignore[func-returns-value]
        return displaced

    def holds_up_to(self, epoch: int) -> bool:
        """Whether a run of this epoch or an earlier one waits."""
        # A level's runs came one after the other: its first one is of its earliest epoch.
        return any(level.runs[0].epoch <= epoch for level in self._levels.values() if level.runs)

    def take(self) -> WaitingRun | None:
        """Remove and return the run that is next."""
        waiting = [priority for priority, level in self._levels.items() if level.runs]
        return self._remove(max(waiting), newest=False) if waiting else None

    def clear(self) -> list[WaitingRun]:
        """Remove and return all runs."""
        taken = []
        while (run := self.take()) is not None:
            taken.append(run)
        return taken

    def _make_room(self, run: WaitingRun, priority: int) -> list[WaitingRun] | None:
        below = sorted(level for level in self._levels if level < priority)
        count = len(self) - sum(len(self._levels[level].runs) for level in below)
        size = self.size - sum(self._levels[level].size for level in below)
        if not self._fits(run, count, size):
            return None
        displaced = []
        while not self._fits(run, len(self), self.size):
            lowest = next(level for level in below if self._has(level))
            displaced.append(self._remove(lowest, newest=True))
        return displaced

    def _has(self, priority: int) -> bool:
        level = self._levels.get(priority)
        return level is not None and bool(level.runs)

    def _fits(self, run: WaitingRun, count: int, size: int) -> bool:
        return count < self._max_runs and size + run.size <= self._max_bytes

    def _remove(self, priority: int, *, newest: bool) -> WaitingRun:
        level = self._levels[priority]
        run = level.runs[-1 if newest else 0]
        remove = level.runs.pop if newest else level.runs.popleft
        _, level.size = remove(), level.size - run.size  # in one line, as above
        if not level.runs:
            del self._levels[priority]
        return run
