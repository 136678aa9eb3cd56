"""Judge calls wait for their turn on the worker, at most until the deadline."""

import asyncio
import threading
import time

import pytest

from ragaliq import CircuitBreaker, ConfigurationError, JudgeUsage, RateLimits
from ragaliq.scoring.limits.rate_limits import RateLimiter
from ragaliq.testing import ScriptedJudge


async def granted(limiter, calls, *, within=0.05, tokens=0, guess=0):
    """Number of `calls` calls that are permitted at once."""
    given = 0
    for _ in range(calls):
        try:
            permit = await asyncio.wait_for(limiter.take(guess), within)
        except TimeoutError:
            break
        limiter.settle(permit, JudgeUsage(requests=1, input_tokens=tokens))
        given += 1
    return given


async def test_tokens_are_counted_by_what_calls_really_used():
    limiter = RateLimiter(RateLimits(tokens_per_minute=1000))
    # The first is expected to use nothing; the second 300, for which there is room, and so on.
    assert await granted(limiter, 10, tokens=300) == 3


async def test_a_call_larger_than_the_limit_gets_its_turn_all_the_same():
    limiter = RateLimiter(RateLimits(tokens_per_minute=100))
    assert await granted(limiter, 1, guess=5000, tokens=5000) == 1
    assert await granted(limiter, 1, guess=5000, tokens=5000) == 0


async def test_calls_get_their_turns_in_the_order_they_came():
    limiter = RateLimiter(RateLimits(requests_per_minute=1), minute=0.3)
    await limiter.take(0)
    order = []

    async def call(number):
        await limiter.take(0)
        order.append(number)

    await asyncio.gather(*map(call, range(3)))
    assert order == [0, 1, 2]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"requests_per_minute": 0},
        {"requests_per_minute": 0.5},
        {"tokens_per_minute": float("inf")},
        {"requests_per_minute": 5, "storage": "nowhere://user:secret@host"},
        {"requests_per_minute": 5, "storage": "memcached://user:secret@host"},
        {"requests_per_minute": 5, "local_share": 1.5},
        {"requests_per_minute": 5, "name": "{secret}"[:2]},
    ],
)
def test_wrong_limits_are_refused_and_no_password_is_shown(wrong):
    with pytest.raises(ConfigurationError, match=r"RateLimits|judge_limits") as refused:
        RateLimits(**wrong)
    assert "secret" not in str(refused.value)


class TestMonitor:
    def test_a_run_without_a_turn_within_its_deadline_is_no_failure_of_the_judge(
        self, monitor_of, case
    ):
        heard, judge = [], ScriptedJudge()
        monitor = monitor_of(
            judge=judge,
            metrics=["relevance"],
            judge_limits=RateLimits(requests_per_minute=2),
            breaker=CircuitBreaker(failures=1),
            deadline=0.5,
            concurrency=1,
            on_result=heard.append,
        )
        for _ in range(4):
            monitor.submit(case)
        assert monitor.flush(10.0)
        stats = monitor.stats()
        assert judge.call_counts["evaluate_relevance"] == 2
        assert stats.evaluations["relevance"] == {"scored": 2, "judge_timeout": 2}
        assert heard[-1].results["relevance"].error_type == "RateLimitedError"
        assert stats.breaker == "closed"

    def test_claim_checks_that_metrics_share_are_held_up_for_all_of_them(self, monitor_of, case):
        heard = []
        monitor = monitor_of(
            metrics=["faithfulness", "hallucination"],
            judge_limits=RateLimits(requests_per_minute=1),
            deadline=0.5,
            on_result=heard.append,
        )
        monitor.submit(case)
        assert monitor.flush(5.0)
        errors = [result.error_type for result in heard[0].results.values()]
        assert errors == ["RateLimitedError"] * 2

    def test_the_application_never_waits(self, monitor_of, case):
        entered = threading.Event()

        class Telling(ScriptedJudge):
            async def evaluate_relevance(self, query, response):
                entered.set()
                return await super().evaluate_relevance(query, response)

        monitor = monitor_of(
            judge=Telling(),
            metrics=["relevance"],
            judge_limits=RateLimits(requests_per_minute=1),
        )
        monitor.submit(case)
        assert entered.wait(5.0)
        started = time.thread_time()
        assert all(monitor.submit(case) for _ in range(100))
        assert time.thread_time() - started < 1.0
        assert not monitor.close(0.0)
        assert monitor.stats().pending == 0
