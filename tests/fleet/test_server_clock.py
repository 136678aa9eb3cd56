"""The server's clock is set back, as happens where it ran ahead."""

from __future__ import annotations

import asyncio

import pytest
from redis import Redis

from ragaliq import RateLimits
from ragaliq.scoring.limits.rate_limits import Turns

SPENT = "ragaliq:{rates:default}:requests"
HOUR = 3_600_000


async def test_what_was_counted_ahead_of_the_clock_does_not_count_longer_than_a_minute(
    redis_server,
):
    turns = Turns(RateLimits(requests_per_minute=5, storage=redis_server.url()))
    for _ in range(3):
        await turns.take(0)
    with Redis.from_url(redis_server.url()) as client:
        counted = {int(ends) + HOUR: calls for ends, calls in client.hgetall(SPENT).items()}
        client.delete(SPENT)
        client.hset(SPENT, mapping=counted)
        await turns.take(0)
        await turns.take(0)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(turns.take(0), 0.1)
        slots = client.hgetall(SPENT)
        assert max(int(ends) for ends in slots) < min(counted)
        assert sum(int(calls) for calls in slots.values()) == 5
        assert 0 < client.pttl(SPENT) <= 120_000
    await turns.aclose()
