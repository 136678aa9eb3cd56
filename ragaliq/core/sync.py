"""Running coroutines from synchronous code, also inside a running event loop.

One daemon thread with its own event loop serves every synchronous call of the process, so that
judge clients keep their connections between calls and no running loop is ever patched.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

__all__ = ["LoopThread", "run_sync"]

T = TypeVar("T")


class LoopThread:
    """A daemon thread that runs an event loop, started on first use and anew after a fork."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0

    @property
    def ident(self) -> int | None:
        """The thread's id, or None while it does not run."""
        return self._thread.ident if self._thread is not None else None

    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop; starts the thread where there is none in this process."""
        if self._loop is not None and self._pid == os.getpid():
            return self._loop
        if self._pid and self._pid != os.getpid():
            # The parent may have held the lock at the moment of the fork; its thread is gone.
            self._lock = threading.Lock()
            self._loop = None
            self._pid = 0
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                thread = threading.Thread(target=self._run, args=(loop,), daemon=True)
                thread.name = self._name
                thread.start()
                self._pid, self._thread, self._loop = os.getpid(), thread, loop
            return self._loop

    def stop(self, last: Callable[[], Coroutine[Any, Any, None]], timeout: float) -> None:
        """Run `last` on the loop, then end the thread; gives up after `timeout` seconds.

        Does nothing where the thread does not run in this process, or when called from it.
        """
        loop, thread = self._loop, self._thread
        if loop is None or thread is None or self._pid != os.getpid():
            return
        if threading.get_ident() == thread.ident:
            return
        with self._lock:
            self._loop = None
        with suppress(Exception):
            asyncio.run_coroutine_threadsafe(last(), loop).result(timeout)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout)

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            while not _ran_to_its_stop(loop):
                pass
        finally:
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()


def _ran_to_its_stop(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        loop.run_forever()
    except (SystemExit, KeyboardInterrupt):
        # Raised by a task, a judge of the user's for instance: it ended that task, and asyncio
        # passes it on. Those who await the task hear of it; the others need the loop.
        return False
    return True


_SYNC_CALLS = LoopThread("ragaliq-sync")


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run `coroutine` to its end and return what it returns.

    Context variables of the caller are seen by the coroutine. An interrupt (Ctrl-C) cancels it.

    Raises:
        RuntimeError: Called from a coroutine that itself runs under `run_sync`; it would wait for
            itself. Use `await` there.
    """
    if threading.get_ident() == _SYNC_CALLS.ident:
        coroutine.close()
        raise RuntimeError("a synchronous ragaliq call was made from inside another; use await")
    future = asyncio.run_coroutine_threadsafe(coroutine, _SYNC_CALLS.loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise
