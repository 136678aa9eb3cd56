"""A budget over several processes: what one spends, all know."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from ragaliq import Budget, JudgeUsage
from ragaliq.scoring.limits import fleet_budget
from ragaliq.scoring.limits.budget_ledger import BudgetLedger
from ragaliq.scoring.limits.fleet_budget import SharedBudget


def cost(usd=None, tokens=0):
    return JudgeUsage(requests=1, cost_usd=usd, input_tokens=tokens)


async def told(budget):
    """Wait until the storage knows what this process spent."""
    budget._account.deliver_soon()
    await budget._account._task


@pytest.fixture
async def member(redis_server):
    members = []

    def make(hour=3600.0, **limits):
        limits = {"storage": redis_server.url(), "local_share": 0.5, **limits}
        members.append(SharedBudget(Budget(**limits), hour=hour, pause=0.02))
        return members[-1]

    yield make
    for each in members:
        await each.aclose()


async def spend(budget, usage):
    reserved = await budget.reserve()
    if reserved is not None:
        budget.settle(reserved, usage)
        await told(budget)
    return reserved is not None


async def test_what_one_process_spends_is_not_left_for_another(member):
    one, other = member(usd_per_hour=1.0), member(usd_per_hour=1.0)
    assert [await spend(b, cost(0.3)) for b in (one, other, one, other, one)] == [
        *[True, True, True],
        *[False, False],
    ]
    line = other.lines()["usd_per_hour"]
    assert (line.scope, line.limit, line.spent, line.reserved) == ("fleet", 1.0, 0.9, 0.0)
    assert line.left == pytest.approx(0.1)


async def test_what_is_set_aside_in_one_process_is_not_left_for_another(member):
    one, other = member(usd_per_hour=1.0), member(usd_per_hour=1.0)
    await spend(one, cost(0.4))
    assert await one.reserve() is not None
    assert await other.reserve() is None
    assert other.lines()["usd_per_hour"].reserved == 0.4


async def test_a_process_that_has_just_started_knows_what_runs_cost(member):
    await spend(member(tokens_per_day=1000), cost(tokens=400))
    newcomer = member(tokens_per_day=1000)
    assert (await newcomer.reserve()).amounts == {"tokens_per_day": 400}


async def test_many_at_once_go_over_by_no_more_than_what_was_not_set_aside(member):
    members = [member(tokens_per_hour=10_000) for _ in range(4)]
    await spend(members[0], cost(tokens=100))

    async def work(budget):
        while (reserved := await budget.reserve()) is not None:
            await asyncio.sleep(0)
            budget.settle(reserved, cost(tokens=100))

    await asyncio.gather(*(work(each) for each in members for _ in range(8)))
    for each in (*members, members[0]):
        await each._account._deliver(tries=True)
    line = members[0].lines()["tokens_per_hour"]
    assert 9_000 <= line.spent <= 10_000
    assert line.reserved == 0


async def test_what_was_set_aside_for_a_run_of_a_dead_process_is_free_again(member, monkeypatch):
    monkeypatch.setattr(fleet_budget, "_LEASE", 150)
    dead, other = member(tokens_per_hour=1000), member(tokens_per_hour=1000)
    await spend(dead, cost(tokens=400))
    assert await dead.reserve() is not None
    assert await other.reserve() is None
    await asyncio.sleep(0.2)
    assert await other.reserve() is not None
    assert other.lines()["tokens_per_hour"].reserved == 400  # its own


async def test_what_was_spent_leaves_the_window_when_it_is_old(member):
    budget = member(tokens_per_hour=100, hour=0.6)
    assert await spend(budget, cost(tokens=100))
    assert not await spend(budget, cost(tokens=1))
    await asyncio.sleep(0.65)
    assert await spend(budget, cost(tokens=1))


async def test_a_batch_that_arrives_twice_is_counted_once(member, monkeypatch):
    budget = member(tokens_per_hour=1000)
    run, sent = budget._account._storage.run, []

    async def twice(script, keys, request):
        sent.append(script)
        await run(script, keys, request)
        return await run(script, keys, request)

    reserved = await budget.reserve()
    monkeypatch.setattr(budget._account._storage, "run", twice)
    budget.settle(reserved, cost(tokens=70))
    await told(budget)
    assert sent == ["settle"]
    assert budget.lines()["tokens_per_hour"].spent == 70


async def test_budgets_of_other_names_are_counted_apart(member):
    assert await spend(member(tokens_per_hour=100, name="a"), cost(tokens=100))
    assert await spend(member(tokens_per_hour=100, name="b"), cost(tokens=100))
    assert not await spend(member(tokens_per_hour=100, name="a"), cost(tokens=100))


async def test_processes_may_have_other_limits_beside_a_common_one(member, monkeypatch):
    monkeypatch.setattr(fleet_budget, "_LEASE", 100)
    one = member(usd_per_hour=10.0, tokens_per_day=1000)
    other = member(tokens_per_day=1000)
    await spend(one, cost(2.0, tokens=100))
    assert (await one.reserve()).amounts == {"usd_per_hour": 2_000_000, "tokens_per_day": 100}
    assert (await other.reserve()).amounts == {"tokens_per_day": 100}
    assert other.lines()["tokens_per_day"].reserved == 200
    await asyncio.sleep(0.15)
    await other._account._deliver(tries=True)  # what it finds too old is not one's dollars
    await one._account._deliver(tries=True)
    assert [line.reserved for line in one.lines().values()] == [0, 0]


async def test_without_any_known_price_the_limit_of_the_fleet_counts_as_used_up(member, caplog):
    one, other = member(usd_per_hour=1.0), member(usd_per_hour=1.0)
    assert await spend(one, cost(None))
    assert not await spend(other, cost(0.1))
    assert other.lines()["usd_per_hour"].left == 0
    assert "limit tokens instead" in caplog.text


LIMITS = {"usd_per_hour": 1.0, "tokens_per_day": 2000}


def machine(url):
    """Two processes with one budget, and a ledger in memory to which all the same happens."""

    class Books(RuleBasedStateMachine):
        def __init__(self):
            super().__init__()
            self.runner = asyncio.Runner()
            self.model, self.open = BudgetLedger(Budget(**LIMITS)), []
            shared = Budget(**LIMITS, storage=url, name=uuid4().hex)
            self.members = [SharedBudget(shared) for _ in range(2)]

        @rule(who=st.integers(0, 1))
        def reserve(self, who):
            modelled = self.model.reserve()
            reserved = self.runner.run(self.members[who].reserve())
            assert (reserved is None) == (modelled is None)
            if reserved is not None:
                assert reserved.amounts == modelled.amounts
                self.open.append((who, reserved, modelled))

        @rule(
            which=st.integers(0, 20),
            usd=st.floats(0, 0.4),
            tokens=st.integers(0, 600),
            requests=st.integers(0, 2),
        )
        def settle(self, which, usd, tokens, requests):
            if not self.open:
                return
            who, reserved, modelled = self.open.pop(which % len(self.open))
            usage = JudgeUsage(requests=requests, cost_usd=usd, input_tokens=tokens)
            self.model.settle(modelled, usage)
            self.members[who].settle(reserved, usage)
            self.runner.run(told(self.members[who]))

        @invariant()
        def figures_agree(self):
            known = self.model.lines()
            for budget in self.members:
                self.runner.run(budget._account._deliver(tries=True))
                for name, line in budget.lines().items():
                    assert line.scope == "fleet"
                    assert (line.spent, line.reserved) == (known[name].spent, known[name].reserved)

        def teardown(self):
            for budget in self.members:
                self.runner.run(budget.aclose())
            self.runner.close()

    return Books


def test_the_shared_ledger_agrees_with_the_one_in_memory(redis_server):
    run_state_machine_as_test(
        machine(redis_server.url()),
        settings=settings(
            max_examples=25,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
