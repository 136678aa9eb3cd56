"""Run coroutines from synchronous code, also inside a running event loop.

One daemon thread with its own event loop serves every synchronous call of the process, so that
judge clients keep their connections between calls and no running loop is ever patched.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial, wraps
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar, TypeVarTuple

from ragaliq._private import patched_by
from ragaliq.core.log_once import LogOnce
from ragaliq.core.process import watch_forks

P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_LOG_ONCE = LogOnce(logging.getLogger(__name__))

if sys.platform == "win32":
    _EventLoop = asyncio.ProactorEventLoop
else:
    _EventLoop = asyncio.SelectorEventLoop

# Seconds of one wait. Ctrl-C that comes between Python's check for signals and the wait is seen
# when the wait ends.
_LONGEST_WAIT = 1.0


class _DaemonThread:
    """A daemon thread that is started on first use and again after a fork.

    It ends with `stop`, or when this object is garbage-collected.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.restart_after_fork()
        watch_forks(self)

    def restart_after_fork(self) -> None:
        """Forget the thread in a forked child: it runs in the parent only."""
        # Re-entrant: the garbage collector may run an adapter's code while the lock is held.
        self._own_lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    @property
    def _lock(self) -> threading.RLock:
        # uWSGI forks in C and does not tell Python, unless it is asked to (py-call-osafterfork).
        if self._pid != os.getpid():
            self.restart_after_fork()
        return self._own_lock

    @property
    def is_current(self) -> bool:
        """True if the caller runs on this thread."""
        return threading.current_thread() is self._thread

    def _start(self, work: Callable[[T], object], given: T) -> None:
        """Start the thread, but not as a greenlet.

        An event loop in a greenlet counts as running for the whole of its real thread: from then on
        `asyncio.run` and Django's ORM fail in every request.

        Raises:
            RuntimeError: No thread can be started, or gevent or eventlet has patched `threading`.
        """
        if (patched := patched_by()) is not None:
            _LOG_ONCE.message(
                patched,
                f"{patched} has patched threading, and ragaliq needs real threads: nothing is "
                "evaluated in this process, and runs are counted as incomplete_run. Serve with "
                "real threads (gunicorn -k gthread, or an ASGI server)",
            )
            raise RuntimeError(f"{patched} has patched threading, and ragaliq needs real threads")
        thread = threading.Thread(target=work, args=(given,), name=self._name, daemon=True)
        thread.start()
        self._thread = thread


class LoopThread(_DaemonThread):
    """A daemon thread that runs an event loop.

    Attributes:
        running: The loop while it runs.
    """

    def restart_after_fork(self) -> None:
        """Forget the loop in a forked child as well."""
        super().restart_after_fork()
        self.running: asyncio.AbstractEventLoop | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop; starts the thread where there is none.

        Raises:
            RuntimeError: No thread can be started.
        """
        with self._lock:
            if self.running is None:
                # In an empty context; otherwise the loop keeps the request's context variables.
                loop = Context().run(_Loop)
                try:
                    self._start(_run_loop, loop)
                except RuntimeError:
                    loop.close()
                    raise
                weakref.finalize(self, _stop_loop, loop, os.getpid()).atexit = False
                self.running = loop
            return self.running

    def stop(
        self, timeout: float, last: Callable[[], Coroutine[Any, Any, None]] | None = None
    ) -> None:
        """Run `last` on the loop, then end the thread; give up after `timeout` seconds.

        Does nothing if the thread does not run, or if called from it.
        """
        if self.is_current:
            return
        with self._lock:
            (loop, self.running), thread = (self.running, None), self._thread
        if loop is None or thread is None:
            return
        if last is not None:
            with suppress(Exception):  # whatever it raises, the thread must end
                asyncio.run_coroutine_threadsafe(last(), loop).result(timeout)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout)


class _Loop(_EventLoop):
    """Event loop that runs what threads of any pool are given in a copy of the caller's context.

    `asyncio.to_thread` does so, `run_in_executor` does not: what a judge asked there would no
    longer be inside `suppress()`, and be scored itself, again and again.
    """

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """See `asyncio.loop`. Work for processes stays as it is: a context cannot be sent there."""
        if executor is None or isinstance(executor, ThreadPoolExecutor):
            return super().run_in_executor(executor, partial(copy_context().run, func, *args))
        return super().run_in_executor(executor, func, *args)


class WorkThread(_DaemonThread):
    """A daemon thread without an event loop, for what blocks; one piece of work after the other.

    Files, processes and functions of the user's must not block a loop, not even one of ours:
    `langgraph dev` raises at the first such call on any loop of the process. `asyncio.to_thread`
    would do until the interpreter ends: then its threads are gone first.
    """

    def restart_after_fork(self) -> None:
        """Forget the queued work in a forked child as well."""
        super().restart_after_fork()
        self._queue: SimpleQueue[Callable[[], object] | None] | None = None

    def start(self) -> SimpleQueue[Callable[[], object] | None]:
        """Start the thread if it does not run; return its queue of work.

        Raises:
            RuntimeError: No thread can be started.
        """
        with self._lock:
            if self._queue is None:
                queue: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
                self._start(_work_through, queue)
                weakref.finalize(self, queue.put, None).atexit = False
                self._queue = queue
            return self._queue

    def submit(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `work` on the thread, in a copy of the caller's context.

        Raises:
            RuntimeError: No thread can be started.
        """
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
            self.start().put(call)
        return done

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`submit`, and await the result; when cancelled, work that has not begun is skipped."""
        return await asyncio.wrap_future(self.submit(work, *args, **kwargs))

    def stop(self, timeout: float) -> None:
        """End the thread after the queued work; stop waiting after `timeout` seconds."""
        with self._lock:
            (queue, self._queue), thread = (self._queue, None), self._thread
        if queue is not None and thread is not None:
            queue.put(None)
            if not self.is_current:
                thread.join(timeout)


def _work_through(queue: SimpleQueue[Callable[[], object] | None]) -> None:
    while (work := queue.get()) is not None:
        work()
        del work  # or its arguments would live until the next piece comes


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        while True:
            # Raised by a task, such as a user's judge, these ended that task, and asyncio passes
            # them on. Callers that await the task get them; the other tasks need the loop.
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
                # A thread that is stopped and then garbage-collected is stopped twice.
                with suppress(RuntimeError):
                    loop.run_until_complete(ended)
        loop.close()


def _stop_loop(loop: asyncio.AbstractEventLoop, pid: int) -> None:
    """Stop the loop of a garbage-collected thread; a forked child leaves its parent's alone."""
    if pid == os.getpid():
        with suppress(RuntimeError):  # closed already
            loop.call_soon_threadsafe(loop.stop)


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
    """Run `coroutine` to its end and return its result.

    Context variables of the caller are seen by the coroutine. An interrupt (Ctrl-C) cancels it.

    Raises:
        RuntimeError: Called from a coroutine that itself runs under `run_sync`; it would wait for
            itself. Use `await` there.
    """
    if _SYNC_CALLS.is_current:
        coroutine.close()
        raise RuntimeError("a synchronous ragaliq call was made from inside another; use await")
    future = asyncio.run_coroutine_threadsafe(coroutine, _SYNC_CALLS.loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def synchronous(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Wrap a coroutine function as one that is called without `await`; see `run_sync`."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_sync(function(*args, **kwargs))

    call.__name__ = call.__qualname__ = function.__name__.removesuffix("_async")
    return call
