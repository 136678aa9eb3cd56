import asyncio
import contextvars
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from ragaliq.core.sync import LoopThread, run_sync, wait_for

NAME = contextvars.ContextVar("name", default="unset")


async def name():
    await asyncio.sleep(0)
    return NAME.get()


def test_returns_and_raises_what_the_coroutine_does():
    async def fail():
        raise LookupError("inside")

    assert run_sync(name()) == "unset"
    with pytest.raises(LookupError, match="inside"):
        run_sync(fail())


async def test_works_inside_a_running_loop_and_sees_the_callers_context_variables():
    token = NAME.set("caller")
    try:
        assert run_sync(name()) == "caller"
    finally:
        NAME.reset(token)


def test_a_synchronous_call_inside_another_is_refused_instead_of_hanging():
    async def nested():
        return run_sync(name())

    with pytest.raises(RuntimeError, match="use await"):
        run_sync(nested())


def test_a_stopped_thread_has_run_its_last_piece_of_work():
    thread, ran = LoopThread("test"), []
    assert thread.running is None

    async def last():
        ran.append(thread.is_current)

    thread.loop()
    for _ in range(2):
        thread.stop(5.0, last)
        assert ran == [True]
        assert thread.running is None


def test_a_loop_that_is_stopped_twice_ends_its_tasks_and_is_closed():
    thread, ended = LoopThread("test"), []
    loop = thread.loop()

    async def ends_slowly():
        try:
            await asyncio.sleep(60)
        finally:
            loop.stop()  # as for a thread that nobody holds any more
            await asyncio.sleep(0.01)
            ended.append(True)

    asyncio.run_coroutine_threadsafe(ends_slowly(), loop)
    thread.stop(5.0, partial(asyncio.sleep, 0))
    assert ended == [True]
    assert loop.is_closed()


def test_stopping_from_two_threads_at_once_is_harmless():
    thread = LoopThread("test")
    thread.loop()
    ran = []

    async def last():
        ran.append(True)
        await asyncio.sleep(0.01)

    with ThreadPoolExecutor(4) as pool:
        for stopping in [pool.submit(thread.stop, 5.0, last) for _ in range(4)]:
            stopping.result(10.0)
    assert ran == [True]


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs POSIX signals")
def test_a_wait_ends_soon_after_an_interrupt_that_did_not_wake_it():
    def interrupt(number, frame):
        raise KeyboardInterrupt

    def in_another_thread():  # as one that came just before the wait: the lock sees nothing of it
        is_asked.wait()
        time.sleep(0.1)
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)

    is_asked, changed = threading.Event(), threading.Condition()
    thread = threading.Thread(target=in_another_thread)
    before = signal.signal(signal.SIGUSR1, interrupt)
    started = time.monotonic()
    thread.start()
    try:
        with changed, pytest.raises(KeyboardInterrupt):
            wait_for(changed, is_asked.set, 60.0)
    finally:
        signal.signal(signal.SIGUSR1, before)
        thread.join()
    assert time.monotonic() - started < 30.0


def test_a_wait_says_whether_it_was_worth_it():
    changed = threading.Condition()
    with changed:
        assert not wait_for(changed, lambda: False, 0.01)
        assert wait_for(changed, lambda: True, 0.0)
