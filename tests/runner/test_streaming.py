"""Scoring as cases come: `Scorer.stream`."""

import asyncio
from contextlib import aclosing

import pytest

from ragaliq import BudgetExceeded, ConfigurationError, JudgeUsage, RAGTestCase
from ragaliq.scoring.scorer import CostCap, Scorer
from ragaliq.testing import ScriptedJudge


class Waiting(ScriptedJudge):
    """Answers the first case, and the others when it is released."""

    def __init__(self, *, waits_for=lambda query: True):
        super().__init__()
        self.released, self.cancelled = asyncio.Event(), []
        self.waits_for = waits_for

    async def evaluate_relevance(self, query, response):
        if self.waits_for(query):
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                self.cancelled.append(query)
                raise
        return await super().evaluate_relevance(query, response)


def cases(number):
    return [RAGTestCase(id=str(n), query=str(n), response="It is.") for n in range(number)]


def scorer(judge=None, **settings):
    return Scorer(judge or ScriptedJudge(), ["relevance"], **settings)


async def test_every_case_comes_with_its_results():
    found = [each async for each in scorer().stream(cases(20), concurrency=3, pipeline="p")]
    assert sorted(int(each.case.id) for each in found) == list(range(20))
    assert {(each.run.run_id, each.run.pipeline) for each in found} == {
        (str(n), "p") for n in range(20)
    }
    assert all(each.results["relevance"].score is not None for each in found)


async def test_no_more_are_read_than_are_in_work():
    judge, read = Waiting(), []

    def reading():
        for case in cases(100):
            read.append(case.id)
            yield case

    async with aclosing(scorer(judge).stream(reading(), concurrency=4)) as stream:
        first = asyncio.ensure_future(anext(stream))
        for _ in range(20):
            await asyncio.sleep(0)
        assert read == ["0", "1", "2", "3"]
        judge.released.set()
        await first


async def test_when_the_consumer_stops_so_does_the_work():
    judge = Waiting(waits_for=lambda query: query != "0")
    async with aclosing(scorer(judge).stream(cases(9), concurrency=3)) as stream:
        await anext(stream)
    assert sorted(judge.cancelled) == ["1", "2"]


async def test_what_scoring_raises_reaches_the_consumer():
    class Wrong(ScriptedJudge):
        async def evaluate_relevance(self, query, response):
            raise ConfigurationError("it would fail every case alike")

    with pytest.raises(ConfigurationError, match="alike"):
        async for _ in scorer(Wrong()).stream(cases(1)):
            pass


async def test_repeats_are_runs_of_their_own_and_what_is_done_is_skipped():
    stream = scorer().stream(cases(2), repeats=3, skip={"0", "1#2"})
    assert sorted([each.run.run_id async for each in stream]) == ["0#2", "0#3", "1", "1#3"]


async def test_at_the_cap_nothing_more_is_begun_and_what_was_begun_is_kept():
    judge = ScriptedJudge(usage=JudgeUsage(input_tokens=1, cost_usd=0.25))
    cap, found = CostCap(1.0), []
    stream = scorer(judge).stream(cases(50), concurrency=2, cap=cap)

    async def keep():
        async for each in stream:
            found.append(each)  # noqa: PERF401 - kept one by one, as they come

    with pytest.raises(BudgetExceeded, match=r"\$1\.(00|25)00 is spent, of max_cost 1"):
        await keep()
    # The fourth case reaches the cap; a fifth may have been begun at the same time.
    assert len(found) in (4, 5)
    assert cap.spent.cost_usd == len(found) * 0.25


async def test_a_cap_of_nothing_lets_pass_what_is_free():
    assert len([each async for each in scorer().stream(cases(3), cap=CostCap(0.0))]) == 3


async def test_a_cap_needs_a_known_price():
    judge = ScriptedJudge(usage=JudgeUsage(input_tokens=1, cost_usd=None))
    with pytest.raises(ConfigurationError, match="max_cost cannot be held"):
        async for _ in scorer(judge).stream(cases(50), concurrency=1, cap=CostCap(1.0)):
            pass
