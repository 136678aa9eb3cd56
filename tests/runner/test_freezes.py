"""Time in which the process did not run is no failure of the judge."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from ragaliq import JudgeAPIError, RAGTestCase
from ragaliq.scoring.limits.breaker import CircuitBreaker
from ragaliq.scoring.limits.protection import Limits
from ragaliq.scoring.scorer import Scorer
from ragaliq.testing import ScriptedJudge

PROGRAM = """
import asyncio, json, sys
from ragaliq import Monitor, RAGTestCase
from ragaliq.scoring.limits.breaker import CircuitBreaker
from ragaliq.testing import ScriptedJudge

class Slow(ScriptedJudge):
    async def evaluate_relevance(self, query, response):
        print("asked", flush=True)
        await asyncio.sleep(0.5)
        return await super().evaluate_relevance(query, response)

monitor = Monitor(judge=Slow(), evaluators=["relevance"], deadline=2.5, concurrency=2,
                  breaker=CircuitBreaker(failures=1, pause=60.0))
for _ in range(6):
    monitor.submit(RAGTestCase(query="q", context=["c"], response="r"))
monitor.flush(30.0)
stats = monitor.stats()
print(json.dumps([stats.outcomes, stats.evaluations, stats.breaker, stats.unjudged]), flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs POSIX signals")
def test_a_stopped_process_judges_what_it_had_and_its_queue_when_it_continues():
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout.readline() == "asked\n"
        os.kill(program.pid, signal.SIGSTOP)
        time.sleep(5.0)
        os.kill(program.pid, signal.SIGCONT)
        *_, last = program.stdout
    assert json.loads(last) == [{"evaluated": 6}, {"relevance": {"scored": 6}}, "closed", 0]


CASE = RAGTestCase(query="q", context=["c"], response="r")


async def statuses(judge, **settings):
    async with Scorer(judge, ["relevance"], **settings) as scorer:
        evaluation = await scorer.score(CASE)
        return [result.status.value for result in evaluation.results.values()], scorer


class Freezing(ScriptedJudge):
    """Fails, so many times, after the whole process stood still."""

    def __init__(self, times, *, watch):
        super().__init__()
        self.times, self.watch = times, watch

    async def evaluate_relevance(self, query, response):
        if self.times:
            self.times -= 1
            self.watch.now += 10.0
            raise JudgeAPIError("the connection broke")
        return await super().evaluate_relevance(query, response)


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("ragaliq.scoring.freezes._clock", clock)
    return clock


async def test_a_judge_that_failed_in_a_freeze_is_asked_again_and_the_breaker_stays_closed(clock):
    limits = Limits(breaker=CircuitBreaker(failures=1))
    found, scorer = await statuses(Freezing(2, watch=clock), limits=limits, backoff=0.001)
    assert (found, scorer.protection.breaker) == (["scored"], "closed")


async def test_after_some_freezes_a_failure_is_a_failure(clock):
    found, _ = await statuses(Freezing(100, watch=clock), backoff=0.001)
    assert found == ["judge_error"]


async def test_a_judge_that_fails_without_a_freeze_is_asked_once():
    judge = ScriptedJudge(failures={"evaluate_relevance": JudgeAPIError("down")})
    found, _ = await statuses(judge)
    assert (found, judge.call_counts) == (["judge_error"], {"evaluate_relevance": 1})


async def test_computing_for_seconds_is_not_a_freeze(clock, monkeypatch):
    monkeypatch.setattr(time, "process_time", lambda: clock.now)
    found, _ = await statuses(Freezing(1, watch=clock))
    assert found == ["judge_error"]


class Blocking(ScriptedJudge):
    """Blocks the loop it is asked on, and fails."""

    async def evaluate_relevance(self, query, response):
        self.asked = getattr(self, "asked", 0) + 1
        time.sleep(1.0)  # noqa: ASYNC251 - what is tested
        raise JudgeAPIError("down")


async def test_a_judge_that_blocks_the_loop_and_fails_is_asked_once(monkeypatch):
    monkeypatch.setattr("ragaliq.scoring.freezes._EVERY", 0.02)
    monkeypatch.setattr("ragaliq.scoring.freezes._LEAST", 0.7)
    judge = Blocking()
    found, _ = await statuses(judge, backoff=0.001)
    assert (found, judge.asked) == (["judge_error"], 1)
