"""Calls and runs that are given up while the storage is asked."""

from __future__ import annotations

import asyncio

import pytest
from fleet import becomes

from ragaliq import JudgeUsage

MOMENTS = range(40)


async def given_up(work, moment):
    """Cancel something after so many turns of the loop; whether it took notice."""
    task = asyncio.ensure_future(work)
    for _ in range(moment):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task], timeout=2.0)
    if not task.done():
        task.cancel()
        pytest.fail(f"cancelled after {moment} turns of the loop it went on")
    return task.cancelled()


async def test_a_call_that_waits_for_its_turn_can_be_given_up_at_any_moment(turns_of):
    turns = turns_of(requests_per_minute=1, local_share=1.0)
    await turns.take(0)
    assert all([await given_up(turns.take(0), moment) for moment in MOMENTS])


async def test_calls_whose_deadlines_end_together_all_end(turns_of):
    turns = turns_of(requests_per_minute=1, local_share=1.0)
    await turns.take(0)

    async def call():
        async with asyncio.timeout(0.1):
            await turns.take(0)

    for _ in range(5):
        calls = [asyncio.ensure_future(call()) for _ in range(8)]
        done, waiting = await asyncio.wait(calls, timeout=2.0)
        for each in waiting:
            each.cancel()
        assert not waiting
        assert {type(each.exception()) for each in done} == {TimeoutError}


async def test_nothing_stays_set_aside_for_a_run_that_was_given_up(budget_of):
    budget = budget_of(tokens_per_hour=100_000)
    first = await budget.reserve()
    budget.settle(first, JudgeUsage(requests=1, input_tokens=100))
    for moment in MOMENTS:
        await given_up(reserve_and_return(budget), moment)

    def line():
        found = budget.lines()["tokens_per_hour"]
        return found.spent, found.reserved

    await becomes(line, (100, 0))


async def reserve_and_return(budget):
    reserved = await budget.reserve()
    budget.settle(reserved, JudgeUsage())
