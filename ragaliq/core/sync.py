"""Running coroutines from synchronous code, also inside a running event loop.

One daemon thread with its own event loop serves every synchronous call of the process, so that
judge clients keep their connections between calls and no running loop is ever patched.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from functools import wraps
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

from ragaliq._private import patched_by
from ragaliq.core.complaints import Complaints

P = ParamSpec("P")
T = TypeVar("T")

_COMPLAINTS = Complaints(logging.getLogger(__name__))

# Seconds of one wait. Ctrl-C that comes between Python's check for signals and the wait is seen
# when the wait ends.
_LONGEST_WAIT = 1.0


def require_real_threads() -> None:
    """Refuse to start a thread that would be a greenlet.

    An event loop in a greenlet counts as running for the whole of its real thread: from then on
    `asyncio.run` and Django's ORM fail in every request.

    Raises:
        RuntimeError: gevent or eventlet has patched `threading`.
    """
    patched = patched_by()
    if patched is None:
        return
    _COMPLAINTS.once(
        patched,
        f"{patched} has patched threading, and ragaliq needs real threads: nothing is evaluated in "
        "this process, and runs are counted as incomplete_run. Serve with real threads (gunicorn "
        "-k gthread, or an ASGI server)",
    )
    raise RuntimeError(f"{patched} has patched threading, and ragaliq needs real threads")


class LoopThread:
    """A daemon thread that runs an event loop, started on first use and again after a fork.

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
        pid = os.getpid()
        if self._pid != pid:
            # The parent may have held the lock at the moment of the fork; its thread is gone.
            self._lock = threading.RLock()
            self._loop, self._thread, self._pid = None, None, pid
        with self._lock:
            if self._loop is None:
                require_real_threads()
                loop = asyncio.new_event_loop()
                thread = threading.Thread(
                    target=_run_loop, args=(loop,), name=self._name, daemon=True
                )
                try:
                    thread.start()
                except RuntimeError:  # too many threads, or the interpreter ends
                    loop.close()
                    raise
                weakref.finalize(self, _stop_loop, loop, pid).atexit = False
                self._loop, self._thread = loop, thread
            return self._loop

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


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        while True:
            # Raised by a task, a judge of the user's for instance, these ended that task, and
            # asyncio passes them on. Those who await the task get them; the others need the loop.
            with suppress(SystemExit, KeyboardInterrupt):
                loop.run_forever()
                return
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        for rest in (asyncio.gather(*left, return_exceptions=True), loop.shutdown_asyncgens()):
            ended = asyncio.ensure_future(rest, loop=loop)
            while not ended.done():
                # Stopped once more: a thread that is stopped and then dropped is stopped twice.
                with suppress(RuntimeError):
                    loop.run_until_complete(ended)
        loop.close()


def _stop_loop(loop: asyncio.AbstractEventLoop, pid: int) -> None:
    """Stop the loop of a `LoopThread` that is gone; a forked child leaves its parent's alone."""
    if pid == os.getpid():
        with suppress(RuntimeError):  # closed already
            loop.call_soon_threadsafe(loop.stop)


class WorkThread:
    """A daemon thread without an event loop, for what blocks; one piece of work after the other.

    Files, processes and functions of the user's must not block a loop, not even one of ours:
    `langgraph dev` raises at the first such call on any loop of the process. The thread is started
    on first use and again after a fork, and ends when nobody holds this object any more.
    `asyncio.to_thread` would do until the interpreter ends: then its threads are gone first.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.RLock()
        self._queue: SimpleQueue[Callable[[], object] | None] | None = None
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    @property
    def ident(self) -> int | None:
        """The thread's id, or None while it does not run."""
        thread = self._thread
        return thread.ident if thread is not None and thread.is_alive() else None

    def start(self) -> None:
        """Start the thread where it does not run in this process.

        Raises:
            RuntimeError: No thread can be started.
        """
        if self._pid != os.getpid():
            # The parent may have held the lock at the moment of the fork; its thread is gone.
            self._lock = threading.RLock()
            self._queue, self._thread, self._pid = None, None, os.getpid()
        with self._lock:
            if self._queue is None:
                require_real_threads()
                queue: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
                thread = threading.Thread(
                    target=_work_through, args=(queue,), name=self._name, daemon=True
                )
                thread.start()
                self._queue, self._thread = queue, thread
                weakref.finalize(self, queue.put, None).atexit = False

    def submit(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have `work` called with these arguments, in a copy of the caller's context.

        Raises:
            RuntimeError: No thread can be started.
        """
        self.start()
        done: Future[T] = Future()
        context = copy_context()

        def call() -> None:
            if not done.set_running_or_notify_cancel():
                return
            try:
                result = context.run(work, *args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - the caller gets it
                done.set_exception(error)
            else:
                done.set_result(result)

        with self._lock:
            self.start()
            assert self._queue is not None  # noqa: S101 - the thread runs
            self._queue.put(call)
        return done

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`submit`, and await the result; when cancelled, work that has not begun is skipped."""
        return await asyncio.wrap_future(self.submit(work, *args, **kwargs))

    def stop(self, timeout: float) -> None:
        """End the thread after what is queued; give up waiting after `timeout` seconds."""
        with self._lock:
            queue, thread = self._queue, self._thread
            self._queue = None
        if queue is not None and thread is not None and self._pid == os.getpid():
            queue.put(None)
            if threading.get_ident() != thread.ident:
                thread.join(timeout)


def _work_through(queue: SimpleQueue[Callable[[], object] | None]) -> None:
    while (work := queue.get()) is not None:
        work()
        del work  # or its arguments would live until the next piece comes


_SYNC_CALLS = LoopThread("ragaliq-sync")


def wait_for(changed: threading.Condition, is_done: Callable[[], bool], timeout: float) -> bool:
    """Wait as `changed.wait_for` does, in pieces, so that Ctrl-C is seen within a second."""
    deadline = time.monotonic() + timeout
    while not changed.wait_for(is_done, min(timeout, _LONGEST_WAIT)):
        timeout = deadline - time.monotonic()
        if timeout <= 0:
            return False
    return True


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


def synchronous(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """A coroutine function as one that is called without `await`; see `run_sync`."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_sync(function(*args, **kwargs))

    call.__name__ = call.__qualname__ = function.__name__.removesuffix("_async")
    return call
