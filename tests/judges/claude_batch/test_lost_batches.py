"""A batch of which nobody noted that the API took it is found again, whatever the clocks say."""

from __future__ import annotations

import asyncio
import time

import pytest

from ragaliq import JudgeAPIError
from ragaliq.testing import faults
from ragaliq.testing.batches import Batch
from ragaliq.testing.replies import Reply

ASKED = ("When does it open?", "At nine.")


@pytest.fixture
def clock(monkeypatch):
    """Sets this machine's clock, and not that of the API."""
    real = time.time

    def set_by(seconds: float) -> None:
        monkeypatch.setattr(time, "time", lambda: real() + seconds)

    return set_by


@pytest.mark.parametrize("seconds", [1800.0, -1800.0])
async def test_a_clock_that_is_wrong_pays_nothing_twice(server, judge, clock, seconds):
    clock(seconds)
    server.plan("create", faults.cut_off())
    await judge.evaluate_relevance(*ASKED)

    assert len(server.paid) == len(server.batches) == 1


@pytest.mark.parametrize("seconds", [1800.0, -86_400.0])
async def test_a_clock_that_is_set_meanwhile_holds_up_nobody_and_pays_nothing_twice(
    server, judge, clock, until, seconds
):
    server.holds = True
    server.plan("create", faults.cut_off())
    waiting = asyncio.ensure_future(judge.evaluate_relevance(*ASKED))
    await until(lambda: server.batches)
    clock(seconds)
    server.holds = False
    await waiting

    assert len(server.paid) == len(server.batches) == 1


async def test_a_clock_that_is_set_back_keeps_no_request_from_being_sent(server, judge_at, clock):
    judge = judge_at(server, max_wait=0.2)
    waiting = asyncio.ensure_future(judge.evaluate_relevance(*ASKED))
    await asyncio.sleep(0.1)
    clock(-86_400.0)
    await waiting

    assert len(server.paid) == 1


async def test_an_earlier_batch_with_the_same_request_is_not_taken_for_the_lost_one(
    server, judge, until
):
    await judge.evaluate_relevance(*ASKED)  # done, and forgotten
    server.holds = True
    server.plan("create", faults.cut_off())
    waiting = asyncio.ensure_future(judge.evaluate_relevance(*ASKED))
    # Both have the same size and the same request; the newer one is still being processed.
    await until(lambda: server.calls.count("list") >= 3)
    assert not waiting.done()
    server.holds = False
    await waiting

    assert len(server.paid) == len(server.batches) == 2
    assert server.calls.count("results") == 3  # the first one's; the second one's, twice


async def test_a_lost_batch_with_results_missing_is_not_sent_again(server, judge, monkeypatch):
    server.plan("create", faults.cut_off())
    whole = Batch.lines
    monkeypatch.setattr(Batch, "lines", lambda batch: whole(batch).split(b"\n")[0] + b"\n")
    replies = await asyncio.gather(
        judge.evaluate_relevance("q", "a 1"),
        judge.evaluate_relevance("q", "a 2"),
        return_exceptions=True,
    )

    assert len(server.batches) == 1
    assert sum(isinstance(reply, Exception) for reply in replies) == 1


async def test_a_batch_that_is_not_found_once_is_not_given_up(server, judge):
    server.plan("retrieve", Reply(status=404), Reply(status=404))
    assert (await judge.evaluate_relevance(*ASKED)).score == 0.0

    server.plan("retrieve", *[Reply(status=404)] * 3)
    with pytest.raises(JudgeAPIError, match="does not know the batch"):
        await judge.evaluate_relevance("another", "question")


def test_nothing_is_at_work_when_the_last_reply_has_come(judge):
    for number in range(3):
        loop = asyncio.new_event_loop()
        loop.run_until_complete(judge.evaluate_relevance("q", f"a {number}"))
        assert not asyncio.all_tasks(loop)
        loop.run_until_complete(judge.aclose())
        loop.close()
