"""Side by side, and nothing left behind: neither tasks nor marks on the caller's own."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragaliq.core.concurrency import is_being_cancelled, pause_before_retry, run_all


async def reply(value):
    await asyncio.sleep(0)
    return value


async def fail(error):
    await asyncio.sleep(0)
    raise error


async def test_results_come_in_order():
    assert await run_all(reply(n) for n in range(5)) == [0, 1, 2, 3, 4]


async def test_the_first_error_ends_the_others_and_comes_alone():
    ended = []

    async def wait():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    with pytest.raises(LookupError, match="inside"):
        await run_all([wait(), fail(LookupError("inside")), wait()])
    assert not is_being_cancelled()
    assert ended == [True, True]


async def test_a_callers_timeout_still_works_after_a_failure():
    async def fail_and_then_take_too_long():
        async with asyncio.timeout(0.05):
            with pytest.raises(LookupError):
                await run_all([asyncio.sleep(10), fail(LookupError())])
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await fail_and_then_take_too_long()


async def test_cancelling_the_caller_cancels_all_even_where_one_then_fails():
    async def ends_badly():
        try:
            await asyncio.Event().wait()
        finally:
            raise LookupError

    caller = asyncio.ensure_future(run_all([ends_badly(), asyncio.sleep(10)]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_one_that_cancels_itself_is_heard():
    with pytest.raises(asyncio.CancelledError):
        await run_all([reply(1), fail(asyncio.CancelledError())])
    assert not is_being_cancelled()


@given(st.integers(1, 10_000), st.floats(0.001, 10.0), st.floats(10.0, 1e6))
def test_a_pause_doubles_up_to_the_longest_and_is_spread_by_a_quarter(failures, first, longest):
    doubled = min(first * 2.0 ** min(failures - 1, 60), longest)
    pause = pause_before_retry(failures, first=first, longest=longest)
    assert doubled <= pause <= 1.25 * doubled
    assert len({pause_before_retry(1, first=first, longest=longest) for _ in range(20)}) > 1
