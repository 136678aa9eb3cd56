"""What crosses to the other process, written as JSON and read again."""

import asyncio
import marshal
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragaliq import (
    Fallback,
    HallucinationEvaluator,
    ScoringPolicy,
)
from ragaliq.scoring.execution import Channel, read_evaluator, write_evaluator


def test_an_evaluator_comes_back_as_it_was_with_a_policy_of_the_users_own():
    policy = ScoringPolicy.LIVE.model_copy(
        update={"name": "mine", "no_claims": Fallback(score=0.3, passed=True)}
    )
    sent = HallucinationEvaluator(0.3, policy=policy, min_confidence=0.4, strategy="single_pass")
    back = read_evaluator(write_evaluator(sent))
    assert (type(back), back.threshold, back.policy) == (HallucinationEvaluator, 0.3, policy)
    assert (back.min_confidence, back.strategy) == (0.4, "single_pass")


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
    raw.sendall((b"\0\0\0\x0a" + marshal.dumps({"a": "b"}))[:cut])
    raw.close()
    assert await channel.receive() is None
    channel.close()


async def test_a_message_is_sent_whole_though_nobody_waits_for_that():
    here, end = socket.socketpair()
    channel, other = Channel(here), Channel(end)
    long = {"long": "x" * 1_000_000}
    channel.send(long)
    assert await other.receive() == long
    other.close()
    with pytest.raises(OSError, match=r".+"):
        await channel.send(long)
    channel.close()
