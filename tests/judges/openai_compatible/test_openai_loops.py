"""One judge, several event loops and many calls at once."""

from __future__ import annotations

import asyncio
import gc
import warnings
from concurrent.futures import ThreadPoolExecutor

from ragaliq.testing import ChatCompletionsServer, ScriptedJudge


def ask(judge) -> float:
    async def score() -> float:
        return (await judge.evaluate_relevance("same words", "same words")).score

    return asyncio.run(score())


def test_a_judge_built_outside_any_loop_works_in_one_loop_after_the_other(server, judge):
    assert [ask(judge) for _ in range(3)] == [1.0, 1.0, 1.0]


def test_loops_in_several_threads_do_not_share_connections(server, judge):
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda _: ask(judge), range(8))) == [1.0] * 8


def test_nothing_is_left_open_when_a_loop_ends(server, judge):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            ask(judge)
            gc.collect()

    assert not judge._clients._open


async def test_connections_can_be_closed_and_are_opened_again(server, judge):
    await judge.evaluate_relevance("a", "b")
    await judge.aclose()
    await judge.evaluate_relevance("a", "b")
    await judge.aclose()

    assert len(server.requests) == 2


async def test_calls_at_once_keep_their_answers_apart(judge_at):
    behind = ScriptedJudge(verdicts=lambda claim, _: "SUPPORTED" if "even" in claim else None)
    claims = [f"number {n} is {'even' if n % 2 == 0 else 'odd'}" for n in range(40)]
    with ChatCompletionsServer(behind) as server:
        judge = judge_at(server)
        results = await asyncio.gather(*(judge.verify_claim(claim, ["x"]) for claim in claims))
        await judge.aclose()

    assert [result.verdict == "SUPPORTED" for result in results] == [True, False] * 20
