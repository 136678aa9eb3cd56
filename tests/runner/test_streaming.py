"""Scoring as cases come, with caps, stops and failures."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import aclosing

import pytest

from ragaliq import BudgetExceeded, ConfigurationError, JudgeAPIError, JudgeUsage, RAGTestCase
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


PROGRAM = """
import asyncio, json, sys
from ragaliq import Monitor, RAGTestCase
from ragaliq.testing import ScriptedJudge

class Slow(ScriptedJudge):
    async def evaluate_relevance(self, query, response):
        print("asked", flush=True)
        await asyncio.sleep(0.5)
        return await super().evaluate_relevance(query, response)

monitor = Monitor(judge=Slow(), metrics=["relevance"], deadline=2.5, concurrency=2)
for _ in range(6):
    monitor.submit(RAGTestCase(query="q", context=["c"], response="r"))
monitor.flush(30.0)
stats = monitor.stats()
print(json.dumps([stats.outcomes, stats.evaluations["relevance"]]), flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs POSIX signals")
def test_a_stopped_process_judges_its_queue_when_it_continues():
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout.readline() == "asked\n"
        os.kill(program.pid, signal.SIGSTOP)
        time.sleep(5.0)
        os.kill(program.pid, signal.SIGCONT)
        *_, last = program.stdout
    outcomes, statuses = json.loads(last)
    assert outcomes == {"evaluated": 6}
    # Two were being judged, for longer than the deadline by the clock.
    assert statuses["scored"] >= 4
    assert statuses["scored"] + statuses.get("judge_timeout", 0) == 6


CASE = RAGTestCase(query="q", context=["c"], response="r")


async def statuses(judge, **settings):
    async with Scorer(judge, ["relevance"], **settings) as scorer:
        evaluation = await scorer.score(CASE)
        return [result.status.value for result in evaluation.results.values()], scorer


async def test_a_judge_that_fails_is_asked_once():
    judge = ScriptedJudge(failures={"evaluate_relevance": JudgeAPIError("down")})
    found, _ = await statuses(judge)
    assert (found, judge.call_counts) == (["judge_error"], {"evaluate_relevance": 1})


class Blocking(ScriptedJudge):
    """Blocks the loop it is asked on, and fails."""

    async def evaluate_relevance(self, query, response):
        self.asked = getattr(self, "asked", 0) + 1
        time.sleep(1.0)  # noqa: ASYNC251 - what is tested
        raise JudgeAPIError("down")


async def test_a_judge_that_blocks_the_loop_and_fails_is_asked_once():
    judge = Blocking()
    found, _ = await statuses(judge, backoff=0.001)
    assert (found, judge.asked) == (["judge_error"], 1)
