"""Running coroutines from synchronous code, also inside a running event loop.

One daemon thread with its own event loop serves every synchronous call of the process, so that
judge clients keep their connections between calls and no running loop is ever patched.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

__all__ = ["LoopThread", "run_sync"]

T = TypeVar("T")


class LoopThread:
    """A daemon thread that runs an event loop, started on first use and anew after a fork.

    The thread ends with `stop`, or when nobody holds this object any more.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        # Re-entrant: the garbage collector may run while it is held, and in it code of an adapter.
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    @property
    def ident(self) -> int | None:
        """The thread's id, or None while it does not run."""
        thread = self._thread
        # The system gives the id of a thread that has ended to another one.
        return thread.ident if thread is not None and thread.is_alive() else None

    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop; starts the thread where there is none in this process.

        Raises:
            RuntimeError: No thread can be started.
        """
        loop, pid = self._loop, os.getpid()
        if loop is not None and self._pid == pid:
            return loop
        if self._pid != pid:
            # The parent may have held the lock at the moment of the fork; its thread is gone.
            self._lock = threading.RLock()
            self._loop, self._thread, self._pid = None, None, pid
        with self._lock:
            if self._loop is None:
                self._loop, self._thread = self._start(pid)
            return self._loop

    def _start(self, pid: int) -> tuple[asyncio.AbstractEventLoop, threading.Thread]:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self._run, args=(loop,), name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # too many threads, or the interpreter ends
            loop.close()
            raise
        weakref.finalize(self, _end, loop, pid).atexit = False
        return loop, thread

    def stop(self, last: Callable[[], Coroutine[Any, Any, None]], timeout: float) -> None:
        """Run `last` on the loop, then end the thread; gives up after `timeout` seconds.

        Does nothing where the thread does not run in this process, or when called from it.
        """
        if self._pid != os.getpid() or threading.get_ident() == self.ident:
            return
        with self._lock:
            (loop, self._loop), thread = (self._loop, None), self._thread
        if loop is None or thread is None:
            return
        with suppress(Exception):  # whatever the last piece of work raises, the thread must end
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


def _end(loop: asyncio.AbstractEventLoop, pid: int) -> None:
    """Stop the loop of a `LoopThread` that is no more; a forked child leaves its parent's alone."""
    if pid == os.getpid():
        with suppress(RuntimeError):  # closed already
            loop.call_soon_threadsafe(loop.stop)


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
