"""A budget over several processes: what one spends, all know."""

from __future__ import annotations

import asyncio

import pytest

from ragaliq import JudgeUsage


def cost(usd=None, tokens=0):
    return JudgeUsage(requests=1, cost_usd=usd, input_tokens=tokens)


async def told(budget):
    """Wait until the storage knows what this process spent."""
    await budget._shared._ask()


async def spend(budget, usage):
    reserved = await budget.reserve()
    if reserved is not None:
        budget.settle(reserved, usage)
        await told(budget)
    return reserved is not None


async def test_what_one_process_spends_is_not_left_for_another(budget_of):
    one, other = budget_of(usd_per_hour=1.0), budget_of(usd_per_hour=1.0)
    assert [await spend(b, cost(0.3)) for b in (one, other, one, other, one)] == [
        *[True, True, True],
        *[False, False],
    ]
    line = other.lines()["usd_per_hour"]
    assert (line.scope, line.limit, line.spent, line.reserved) == ("shared", 1.0, 0.9, 0.0)
    assert line.left == pytest.approx(0.1)


async def test_what_is_set_aside_in_one_process_is_not_left_for_another(budget_of):
    one, other = budget_of(usd_per_hour=1.0), budget_of(usd_per_hour=1.0)
    await spend(one, cost(0.4))
    await spend(other, cost(0.4))
    assert await one.reserve() is None


async def test_many_at_once_go_over_by_no_more_than_what_was_not_set_aside(budget_of):
    members = [budget_of(tokens_per_hour=10_000) for _ in range(4)]
    await spend(members[0], cost(tokens=100))

    async def work(budget):
        while (reserved := await budget.reserve()) is not None:
            await asyncio.sleep(0)
            budget.settle(reserved, cost(tokens=100))

    await asyncio.gather(*(work(each) for each in members for _ in range(8)))
    for each in (*members, members[0]):
        await each._shared._ask()
    line = members[0].lines()["tokens_per_hour"]
    assert 9_000 <= line.spent <= 10_000
    assert line.reserved == 0


@pytest.mark.parametrize("turns", [0, 1, 2, 5])
async def test_what_was_spent_just_before_the_end_is_delivered(budget_of, turns):
    one, other = budget_of(tokens_per_hour=1000), budget_of(tokens_per_hour=1000)
    one.settle(await one.reserve(), cost(tokens=300))
    for _ in range(turns):
        await asyncio.sleep(0.01)
    await one.aclose()
    await told(other)
    assert other.lines()["tokens_per_hour"].spent == 300


async def test_what_was_spent_leaves_the_window_when_it_is_old(budget_of):
    budget = budget_of(tokens_per_hour=100, hour=2.0)
    assert await spend(budget, cost(tokens=100))
    assert not await spend(budget, cost(tokens=1))
    await asyncio.sleep(2.1)
    assert await spend(budget, cost(tokens=1))


async def test_budgets_of_other_names_are_counted_apart(budget_of):
    assert await spend(budget_of(tokens_per_hour=100, name="a"), cost(tokens=100))
    assert await spend(budget_of(tokens_per_hour=100, name="b"), cost(tokens=100))
    assert not await spend(budget_of(tokens_per_hour=100, name="a"), cost(tokens=100))


async def test_without_any_known_price_the_limit_of_the_fleet_counts_as_used_up(budget_of, caplog):
    one, other = budget_of(usd_per_hour=1.0), budget_of(usd_per_hour=1.0)
    assert await spend(one, cost(None))
    assert not await spend(other, cost(0.1))
    assert other.lines()["usd_per_hour"].left == 0
    assert "limit tokens instead" in caplog.text


async def test_runs_in_flight_when_the_storage_is_lost_are_charged_once(budget_of, redis_server):
    budget = budget_of(tokens_per_day=100_000)
    assert await spend(budget, cost(tokens=4_000))
    in_flight = [await budget.reserve() for _ in range(5)]
    redis_server.kill()
    assert await budget.reserve() is not None
    assert budget.storage == "unavailable"
    for reserved in in_flight:
        budget.settle(reserved, cost(tokens=4_000))
    # Half of what all had used before, and what this process used since.
    assert budget.lines()["tokens_per_day"].spent <= 26_000
