"""The in-process executor: a bounded queue drained by one daemon thread with its own event loop.

The thread never touches the application's loop, so it works the same in scripts, notebooks and
synchronous or asynchronous servers.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Literal

from ragaliq.core.sync import LoopThread
from ragaliq.live.job import Submission
from ragaliq.live.queue import RunQueue, WaitingRun

__all__ = ["Refusal", "Worker"]

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
        self._active = 0
        # Jobs that are not done, by the epoch they came in. Each `flush` ends an epoch and waits
        # for it and those before, so that jobs which come later do not keep it waiting.
        self._undone: Counter[int] = Counter()
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
            # The loop is woken only for a new lane: a busy lane takes the next job by itself. Woken
            # first, so that a job which is in the queue will be done.
            if self._active < self._concurrency:
                self._loop = loop = self._thread.loop()
                loop.call_soon_threadsafe(self._open_lane)
                self._active += 1
            displaced = self._queue.put(WaitingRun(job, size, self._epoch))
            if displaced is None:
                return "queue_full"
            self._undone[self._epoch] += 1
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
            return self._undone.total()

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
            return self._changed.wait_for(lambda: self._is_done(last), timeout)

    def _is_done(self, last: int) -> bool:
        if not self._undone:
            return not self._active  # lanes are about to end, and hold what they worked with
        return all(epoch > last for epoch in self._undone)

    def _done(self, run: WaitingRun) -> None:
        with self._changed:
            self._undone[run.epoch] -= 1
            if not self._undone[run.epoch]:
                del self._undone[run.epoch]
                self._changed.notify_all()

    def _drop(self, run: WaitingRun, reason: Refusal) -> None:
        self._dropped(run.submission, reason)
        self._done(run)

    def _open_lane(self) -> None:
        lane = asyncio.ensure_future(self._drain())
        self._lanes.add(lane)
        lane.add_done_callback(self._lane_ended)

    def _lane_ended(self, lane: asyncio.Task[None]) -> None:
        self._lanes.discard(lane)
        if not lane.cancelled():
            # Asked for, or asyncio would log what was raised, the application's text included.
            lane.exception()
        with self._changed:
            # A job may have been queued after the lane found nothing and before it ended.
            reopen = bool(self._queue)
            if not reopen:
                self._active -= 1
                self._changed.notify_all()
        if reopen:
            self._open_lane()

    def _cancel_lanes(self) -> None:
        for lane in list(self._lanes):
            lane.cancel()

    async def _drain(self) -> None:
        while (run := self._next()) is not None:
            try:
                await self._handle(run.submission)
            finally:
                self._done(run)

    def _next(self) -> WaitingRun | None:
        with self._changed:
            return self._queue.take()
