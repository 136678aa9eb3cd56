"""Telling the application: `on_result`, on a thread of its own and within a time limit."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import threading
import time
from collections.abc import Awaitable, Callable

from ragaliq.core.concurrency import is_being_cancelled
from ragaliq.core.results import Evaluation
from ragaliq.core.suppression import suppress
from ragaliq.core.sync import LoopThread, WorkThread
from ragaliq.live.complaints import Complaints
from ragaliq.live.stats import Tally

__all__ = ["Reporter", "ResultCallback"]

logger = logging.getLogger(__name__)

ResultCallback = Callable[[Evaluation], object | Awaitable[object]]


class Reporter:
    """Calls the user's function with each result.

    A function that blocks cannot be stopped. On a thread of its own, where no event loop runs, it
    blocks nothing but later calls, and those are given up, and counted, until it returns. What a
    coroutine function awaits runs on a loop of its own.

    Args:
        on_result: The user's function; may be a coroutine function.
        timeout: Seconds a call may take.
    """

    def __init__(self, on_result: ResultCallback, *, timeout: float) -> None:
        self._on_result = on_result
        self._timeout = timeout
        self._calls = WorkThread("ragaliq-on-result")
        self._coroutines = LoopThread("ragaliq-on-result-loop")
        self._blocked_since: float | None = None
        self._complaints = Complaints(logger)

    def prepare(self) -> None:
        """Start the thread while threads can still be started."""
        with contextlib.suppress(RuntimeError):  # counted once there is something to report
            self._calls.start()

    def is_own_thread(self) -> bool:
        """Whether the caller is the user's function."""
        return threading.get_ident() in (self._calls.ident, self._coroutines.ident)

    async def report(self, result: Evaluation, tally: Tally) -> None:
        """Call the function and wait for its end; counts what goes wrong."""
        since = self._blocked_since
        if since is not None and time.monotonic() - since > self._timeout:
            tally.callback_timed_out()
            return
        limit = None
        try:
            async with asyncio.timeout(self._timeout) as limit:
                # Given up while another call blocks the thread, this one is never made.
                outcome = await self._calls.run(self._call, result)
                if inspect.isawaitable(outcome):
                    loop = self._coroutines.loop()
                    finishing = asyncio.run_coroutine_threadsafe(_finish(outcome), loop)
                    await asyncio.wrap_future(finishing)
        except BaseException as error:
            if is_being_cancelled():
                raise
            if limit is not None and limit.expired():
                tally.callback_timed_out()
                self._complaints.add(f"on_result took longer than {self._timeout:g} s", error)
            else:
                tally.callback_failed()
                self._complaints.add("on_result raised", error)

    def stop(self) -> None:
        """End the threads; a function that blocks one is left behind."""
        self._coroutines.stop(_nothing, timeout=0.25)
        self._calls.stop(timeout=0.25)

    def _call(self, result: Evaluation) -> object:
        self._blocked_since = time.monotonic()
        try:
            with suppress():
                return self._on_result(result)
        finally:
            self._blocked_since = None


async def _finish(outcome: Awaitable[object]) -> None:
    with suppress():
        await outcome


async def _nothing() -> None:
    """The last piece of work of a thread that has none."""
