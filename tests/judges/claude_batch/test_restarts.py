"""Whenever a process ends, nothing is lost and nothing is paid for twice."""

from __future__ import annotations

import asyncio

import pytest

from ragaliq import JudgeAPIError, StoreError, evaluate
from ragaliq.judges.claude_batch.api import BatchApi
from ragaliq.judges.claude_batch.ledger import Ledger
from ragaliq.testing import BatchesServer


class Crash:
    """A process that is killed: from the given step on it does nothing any more.

    Steps are the transactions of the store and the requests to the API, before and after each.
    """

    def __init__(self, patch) -> None:
        self.plan(None)
        self._patch = patch
        transaction, create = Ledger.transaction, BatchApi.create

        def stepped(ledger):
            self.step()
            return transaction(ledger)

        async def created(api, requests):
            self.step()
            batch_id = await create(api, requests)
            self.step()
            return batch_id

        patch.setattr(Ledger, "transaction", stepped)
        patch.setattr(BatchApi, "create", created)

    def step(self) -> None:
        self.steps += 1
        if self.at is not None and self.steps > self.at:
            raise StoreError("the process was killed")

    def plan(self, at: int | None) -> None:
        self.steps, self.at = 0, at


def die(judge):
    """What the system does when a process ends: its locks are given back, and nothing else."""
    for gatherer in judge._gatherers.values():
        if gatherer._ledger.owner._lock is not None:
            gatherer._ledger.owner._lock.release()


@pytest.fixture
def crash(monkeypatch):
    return Crash(monkeypatch)


def paid_after_a_crash(at, judge_at, cases, crash, store):
    """How many requests two runs paid for, the first of which was killed at a step."""
    quick = {"max_wait": 0.01, "poll_interval": 0.01, "resend_after": 0.05, "store": store}
    with BatchesServer() as server:
        crash.plan(at)
        first = judge_at(server, **quick)
        done = evaluate(cases, judge=first)
        die(first)
        if all(metric.measured for metric in done.metrics.values()):
            return len(server.paid)  # it came after the results: asking again is another run
        crash.plan(None)
        run = evaluate(cases, judge=judge_at(server, **quick))
        assert [run.metrics[name].measured for name in ("faithfulness", "relevance")] == [1, 1]
        assert len(set(server.paid)) == len(server.paid)
        return len(server.paid)


@pytest.mark.fleet
def test_a_crash_at_any_step_pays_each_request_once(judge_at, cases, crash, tmp_path):
    with BatchesServer() as server:
        evaluate(cases[:1], judge=judge_at(server, store=tmp_path / "whole.db"))
        steps, paid = crash.steps, len(server.paid)
    assert (steps > 10, paid) == (True, 3)

    after = {
        at: paid_after_a_crash(at, judge_at, cases[:1], crash, tmp_path / f"{at}.db")
        for at in range(steps)
    }
    assert after == dict.fromkeys(range(steps), paid)


def test_what_a_crashed_run_paid_for_is_in_the_cost_of_the_run_that_uses_it(
    server, judge_at, cases, crash, tmp_path
):
    whole = evaluate(cases, judge=judge_at(server, store=tmp_path / "whole.db")).usage
    steps = crash.steps
    crash.plan(steps - 6)
    first = judge_at(server)
    evaluate(cases, judge=first)
    die(first)
    crash.plan(None)

    assert evaluate(cases, judge=judge_at(server)).usage == whole


async def relevance(judge, number=1):
    return await judge.evaluate_relevance(f"Where is number {number}?", f"Number {number} is here.")


def test_a_batch_under_way_is_found_by_the_next_event_loop(server, judge_at, rows, until):
    server.holds = True

    async def begin(judge):
        asking = asyncio.create_task(relevance(judge))
        await until(lambda: rows() == ["sent"])
        asking.cancel()

    asyncio.run(begin(judge_at(server)))
    server.holds = False
    assert asyncio.run(relevance(judge_at(server))).score > 0
    assert server.calls.count("create") == 1


async def test_of_two_that_share_a_store_one_sends(server, judge_at):
    judges = [judge_at(server) for _ in range(2)]
    answers = await asyncio.gather(
        *(relevance(judge, number) for judge in judges for number in range(5))
    )

    # The same request is made once, and its cost is in the accounts of one of them.
    assert len(server.paid) == 5
    costs = [answer.spent().cost_usd for answer in answers]
    assert sorted(cost > 0 for cost in costs) == [False] * 5 + [True] * 5


async def test_when_the_one_that_sends_ends_another_one_goes_on(server, judge_at, rows, until):
    server.holds = True
    first, second = judge_at(server), judge_at(server)
    asking = asyncio.create_task(relevance(first, 1))
    await until(lambda: rows() == ["sent"])
    waiting = asyncio.create_task(relevance(second, 2))
    await until(lambda: len(rows()) == 2)
    asking.cancel()
    await first.aclose()
    server.holds = False

    assert (await waiting).score > 0
    assert (await relevance(second, 1)).score > 0
    assert len(server.paid) == len(set(server.paid)) == 2


async def test_who_waits_when_the_judge_is_closed_is_told(server, judge, rows, until):
    server.holds = True
    asking = asyncio.create_task(relevance(judge))
    await until(lambda: rows() == ["sent"])
    await judge.aclose()

    with pytest.raises(JudgeAPIError, match="closed"):
        await asking
    assert rows() == ["sent"]


async def test_one_that_came_later_is_not_served_from_what_another_one_made_use_of(
    server, judge_at, rows
):
    await relevance(judge_at(server))
    assert rows() == []
    await relevance(judge_at(server))

    assert len(server.paid) == 2


def test_results_that_were_handed_over_are_not_in_the_way_of_repeats(server, judge, cases):
    evaluate(cases[:1], judge=judge, evaluators=["relevance"])
    evaluate(cases[:1], judge=judge, evaluators=["relevance"])

    assert len(server.paid) == 2
