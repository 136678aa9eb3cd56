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
from typing import Any, Literal

from ragaliq.core.sync import LoopThread
from ragaliq.live.job import Submission

__all__ = ["Refusal", "Worker"]

Refusal = Literal["queue_full", "shutdown"]


class Worker:
    """Runs jobs in the background.

    Args:
        handle: Evaluates one job on the worker's loop; must not raise.
        dropped: Called for each job that a shutdown leaves undone.
        concurrency: Jobs evaluated at the same time.
        max_queue: Jobs that may wait; more are refused.
    """

    def __init__(
        self,
        handle: Callable[[Submission], Awaitable[None]],
        dropped: Callable[[Submission], None],
        *,
        concurrency: int,
        max_queue: int,
    ) -> None:
        self._handle = handle
        self._dropped = dropped
        self._concurrency = concurrency
        self._max_queue = max_queue
        self._thread = LoopThread("ragaliq-worker")
        self._queue: deque[Submission] = deque()
        self._changed = threading.Condition()
        self._lanes: set[asyncio.Task[None]] = set()
        self._active = 0
        self._closed = False

    def submit(self, job: Submission) -> Refusal | None:
        """Queue a job without blocking; returns why it was refused, or None.

        Raises:
            RuntimeError: The thread cannot be started; the job is not queued.
        """
        with self._changed:
            if self._closed:
                return "shutdown"
            if len(self._queue) >= self._max_queue:
                return "queue_full"
            # The loop is woken only for a new lane: a busy lane takes the next job by itself.
            if self._active < self._concurrency:
                self._thread.loop().call_soon_threadsafe(self._open_lane)
                self._active += 1
            self._queue.append(job)
        return None

    @property
    def is_current_thread(self) -> bool:
        """Whether the caller is on the worker's thread, where waiting for it would never end."""
        return threading.get_ident() == self._thread.ident

    @property
    def size(self) -> int:
        """Jobs waiting in the queue."""
        return len(self._queue)

    def flush(self, timeout: float) -> bool:
        """Wait until nothing is queued or running; False if `timeout` seconds were not enough."""
        if self.is_current_thread:
            return False  # a callback on the worker would wait for itself
        with self._changed:
            return self._changed.wait_for(self._is_idle, timeout)

    def close(self, timeout: float) -> bool:
        """Refuse new jobs, wait up to `timeout` seconds, then drop what is left."""
        deadline = time.monotonic() + timeout
        with self._changed:
            if self._closed:
                return self._is_idle()
            self._closed = True
        finished = self.flush(timeout)
        with self._changed:
            left = list(self._queue)
            self._queue.clear()
        for job in left:
            self._dropped(job)
        if not finished:
            self._thread.loop().call_soon_threadsafe(self._cancel_lanes)
            # A moment for cancelled evaluations to count themselves and release their connections.
            self.flush(max(0.5, deadline - time.monotonic()))
        return finished

    def abandon(self) -> None:
        """In a forked child: refuse what leftovers of the parent's runs hand in.

        The parent may have held the lock at the moment of the fork.
        """
        self._changed = threading.Condition()
        self._closed = True

    def stop(self, last: Callable[[], Coroutine[Any, Any, None]], timeout: float) -> None:
        """Run a last piece of work on the loop, if one was started, then end the thread."""
        self._thread.stop(last, timeout)

    def _is_idle(self) -> bool:
        return not self._queue and self._active == 0

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
        while (job := self._next()) is not None:
            await self._handle(job)

    def _next(self) -> Submission | None:
        with self._changed:
            return self._queue.popleft() if self._queue else None
