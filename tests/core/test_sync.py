from __future__ import annotations

import asyncio
import contextvars

import pytest

from ragaliq.core.sync import LoopThread, run_sync

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


async def test_works_inside_a_running_loop():
    assert run_sync(name()) == "unset"


def test_sees_the_callers_context_variables():
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

    async def last():
        ran.append(True)

    thread.loop()
    thread.stop(last, timeout=5.0)
    assert ran == [True]
    thread.stop(last, timeout=5.0)
    assert ran == [True]
