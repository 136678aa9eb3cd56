"""What crosses to the other process, written as JSON and read again."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragaliq import (
    ContextChunk,
    Fallback,
    HallucinationEvaluator,
    LocalJudge,
    RAGTestCase,
    RelevanceEvaluator,
    ScoringPolicy,
    get_evaluator,
    list_evaluators,
)
from ragaliq.scoring.execution import Channel, case_data, read_plan, write_plan

OWN = ("chunk_utility", "context_precision", "context_recall", "faithfulness")
POLICIES = (ScoringPolicy.LIVE, ScoringPolicy.RAGAS, ScoringPolicy.PROMPTFOO, None)


def there_and_back(evaluators):
    _, back = read_plan(json.loads(json.dumps(write_plan(evaluators, LocalJudge()))))
    return list(back.values())


@given(
    st.sampled_from([*OWN, "hallucination", "relevance"]),
    st.none() | st.floats(0, 1),
    st.sampled_from(POLICIES),
)
def test_every_evaluator_comes_back_as_it_was(name, threshold, policy):
    evaluator = get_evaluator(name)(threshold, policy=policy)
    [back] = there_and_back([evaluator])
    assert type(back) is type(evaluator)
    assert back.threshold == evaluator.threshold
    # Compared as text: a policy with a NaN in it equals no other.
    assert repr(back.policy) == repr(evaluator.policy)


def test_no_built_in_evaluator_is_left_out():
    assert {*OWN, "hallucination", "relevance"} <= set(list_evaluators())


def test_settings_of_one_metric_only_come_back_too():
    [back] = there_and_back([HallucinationEvaluator(min_confidence=0.4, strategy="single_pass")])
    assert (back.min_confidence, back.strategy) == (0.4, "single_pass")


def test_a_policy_of_the_users_own_comes_back():
    policy = ScoringPolicy.LIVE.model_copy(
        update={"name": "mine", "no_claims": Fallback(score=0.3, passed=True)}
    )
    [back] = there_and_back([RelevanceEvaluator(policy=policy)])
    assert back.policy == policy


def test_evaluators_that_shared_a_claim_check_still_do():
    names = ["faithfulness", "hallucination"]
    first, second = there_and_back([get_evaluator(n)(policy=ScoringPolicy.RAGAS) for n in names])
    assert (first.policy, first.strategy) == (second.policy, second.strategy)


def test_of_a_case_all_that_is_judged_goes_along_and_nothing_else():
    case = RAGTestCase(
        query="q \ud800",
        context=["a", ContextChunk(text="b", id="2", metadata={"row": object()}, score=0.5)],
        response="r",
        expected_answer="e",
        expected_facts=["f"],
        tags=["t"],
        metadata={"user": object()},
    )
    back = RAGTestCase.model_validate(json.loads(json.dumps(case_data(case))))
    assert back.metadata == back.context[1].metadata == {}
    kept = ("id", "query", "context_texts", "chunk_ids", "response", "expected_facts")
    assert [getattr(back, name) for name in kept] == [getattr(case, name) for name in kept]


TEXT = st.text(st.characters(categories=None), max_size=30)
VALUES = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False) | TEXT, lambda v: st.lists(v, max_size=3)
)


@settings(max_examples=25)
@given(st.lists(st.dictionaries(TEXT, VALUES, max_size=3), min_size=1, max_size=5))
def test_messages_arrive_whole_in_order_and_then_the_end(messages):
    async def exchange():
        here, there = map(Channel, socket.socketpair())
        for message in messages:
            await here.send(message)
        here.hang_up()
        arrived = [await there.receive() for _ in messages]
        assert await there.receive() is None
        here.close()
        there.close()
        return arrived

    assert asyncio.run(exchange()) == messages


@pytest.mark.parametrize("cut", [1, 3, 4, 9])
async def test_half_a_message_is_the_end(cut):
    raw, end = socket.socketpair()
    channel = Channel(end)
    raw.sendall((b"\0\0\0\x0a" + b'{"a": "b"}')[:cut])
    raw.close()
    assert await channel.receive() is None
    channel.close()


@pytest.mark.parametrize("text", [b"[1]", b"nonsense", b"\xff\xfe"])
async def test_what_is_no_message_is_an_error(text):
    raw, end = socket.socketpair()
    channel = Channel(end)
    raw.sendall(len(text).to_bytes(4) + text)
    with pytest.raises(ValueError, match=r".+"):
        await channel.receive()
    channel.close()
    raw.close()


async def test_a_message_is_sent_whole_also_when_its_sender_stops_waiting():
    here, end = socket.socketpair()
    channel, other = Channel(here), Channel(end)
    long = {"long": "x" * 1_000_000}
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await channel.send(long)  # nobody reads yet
    assert await other.receive() == long
    other.close()
    with pytest.raises(OSError, match=r".+"):
        await channel.send(long)
    channel.close()


async def test_what_is_sent_at_the_same_time_goes_out_at_once(monkeypatch):
    here, end = socket.socketpair()
    channel, other = Channel(here), Channel(end)
    loop, sent = asyncio.get_running_loop(), []
    send_all = loop.sock_sendall
    monkeypatch.setattr(loop, "sock_sendall", lambda *given: sent.append(1) or send_all(*given))
    messages = [{"id": number} for number in range(20)]
    await asyncio.gather(*(channel.send(message) for message in messages))
    assert [await other.receive() for _ in messages] == messages
    assert len(sent) == 1
    channel.close()
    other.close()
