"""Calls of the user's function with each result: `on_result`."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

from ragaliq.core.concurrency import is_being_cancelled
from ragaliq.core.log_once import LogOnce
from ragaliq.core.results import Evaluation
from ragaliq.core.suppression import suppress
from ragaliq.core.sync import LoopThread, WorkThread
from ragaliq.live.stats import RunCounters

_REPORTING: ContextVar[bool] = ContextVar("ragaliq_reporting", default=False)

is_reporting: Callable[[], bool] = _REPORTING.get
"""Whether the caller is a function that is called with results, of whatever monitor."""

ResultCallback = Callable[[Evaluation], object | Awaitable[object]]


class Reporter:
    """Calls `on_result` with each result.

    A function that blocks cannot be stopped. On its own thread without an event loop it blocks only
    later calls, which are dropped and counted until it returns. A coroutine function runs on its
    own loop.

    Args:
        on_result: The function.
        timeout: Most seconds of a call.
        log_once: Logs failures.
    """

    def __init__(self, on_result: ResultCallback, timeout: float, log_once: LogOnce) -> None:
        self._on_result, self._timeout, self._log_once = on_result, timeout, log_once
        self._calls = WorkThread("ragaliq-on-result")
        self._coroutines = LoopThread("ragaliq-on-result-loop")
        self._blocked_since: float | None = None

    def prepare(self) -> None:
        """Start the thread while threads can still be started.

        Python 3.12.0 to 3.12.2 cannot start one after the main thread has ended.
        """
        with contextlib.suppress(RuntimeError):  # counted once there is something to report
            self._calls.start()

    @property
    def is_own_thread(self) -> bool:
        """True if called from the user's function."""
        return self._calls.is_current or self._coroutines.is_current

    async def report(self, result: Evaluation, counters: RunCounters) -> None:
        """Call the function and wait for its end; count its errors."""
        since = self._blocked_since
        if since is not None and time.monotonic() - since > self._timeout:
            counters.callback_timeouts += 1
            return
        limit = None
        try:
            async with asyncio.timeout(self._timeout) as limit:
                # A call that times out while another one blocks the thread is never made.
                outcome = await self._calls.run(self._call, result)
                if inspect.isawaitable(outcome):
                    loop = self._coroutines.loop()
                    finishing = asyncio.run_coroutine_threadsafe(_finish(outcome), loop)
                    await asyncio.wrap_future(finishing)
        except BaseException as error:
            if is_being_cancelled():
                raise
            if limit is not None and limit.expired():
                counters.callback_timeouts += 1
                self._log_once.failure(f"on_result took longer than {self._timeout:g} s", error)
            else:
                counters.callback_errors += 1
                self._log_once.failure("on_result raised", error, in_application=True)

    def stop(self) -> None:
        """End the threads; abandon a function that blocks one."""
        self._coroutines.stop(0.25)
        self._calls.stop(0.25)

    def _call(self, result: Evaluation) -> object:
        self._blocked_since = time.monotonic()
        _REPORTING.set(True)  # in a context of its own
        try:
            with suppress():
                return self._on_result(result)
        finally:
            self._blocked_since = None


async def _finish(outcome: Awaitable[object]) -> None:
    _REPORTING.set(True)
    with suppress():
        await outcome
