"""One judge, several event loops and many calls at once."""

import asyncio
import gc
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from loopback import faults
from ragaliq.testing import ScriptedJudge


def ask(judge) -> float:
    async def score() -> float:
        return (await judge.evaluate_relevance("same words", "same words")).score

    return asyncio.run(score())


def test_a_judge_built_outside_any_loop_works_in_loops_one_after_the_other(server, judge):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            assert ask(judge) == 1.0
            gc.collect()

    assert len(server.requests) == 3


def test_loops_in_several_threads_do_not_share_connections(judge):
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda _: ask(judge), range(4))) == [1.0] * 4


async def test_connections_can_be_closed_and_are_opened_again(server, judge):
    await judge.aclose()  # nothing is open
    await judge.evaluate_relevance("a", "b")
    await judge.aclose()
    await judge.evaluate_relevance("a", "b")
    await judge.aclose()
    assert len(server.requests) == 2


async def test_calls_at_once_share_one_client_and_keep_their_answers_apart(api):
    behind = ScriptedJudge(verdicts=lambda claim, _: "SUPPORTED" if "even" in claim else None)
    claims = [f"number {n} is {'even' if n % 2 == 0 else 'odd'}" for n in range(12)]
    with api.serve(behind) as server:
        judge = api.judge(server)
        results = await asyncio.gather(*(judge.verify_claim(claim, ["x"]) for claim in claims))
        await judge.aclose()

    assert [result.verdict == "SUPPORTED" for result in results] == [True, False] * 6
    assert len(server.requests) == 12


@pytest.mark.timeout(30)
async def test_a_cancelled_call_is_cancelled_and_the_judge_stays_usable(api):
    arrived = threading.Event()

    def respond(_):
        arrived.set()
        return faults.slow(30) if len(server.requests) == 1 else faults.slow(0)

    with api.serve(respond=respond) as server:
        judge = api.judge(server)
        call = asyncio.create_task(judge.evaluate_relevance("a", "b"))
        await asyncio.to_thread(arrived.wait, 5)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await judge.evaluate_relevance("a a", "a a")).score >= 0.0
        await judge.aclose()
