"""Scoring as cases come."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from ragaliq.streaming import score_stream


async def test_every_item_comes_with_its_result():
    async def double(item):
        return 2 * item

    found = [pair async for pair in score_stream(range(20), double, concurrency=3)]

    assert sorted(found) == [(item, 2 * item) for item in range(20)]


async def test_no_more_are_read_than_are_in_work():
    read, release = [], asyncio.Event()

    def items():
        for item in range(100):
            read.append(item)
            yield item

    async def wait(item):
        await release.wait()

    async with aclosing(score_stream(items(), wait, concurrency=4)) as stream:
        first = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert read == [0, 1, 2, 3]
        release.set()
        await first


async def test_when_the_consumer_stops_so_does_the_work():
    cancelled = []

    async def work(item):
        if item == 0:
            return
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(item)
            raise

    async with aclosing(score_stream(range(9), work, concurrency=3)) as stream:
        await anext(stream)
    assert sorted(cancelled) == [1, 2]


async def test_what_scoring_raises_reaches_the_consumer():
    async def fail(item):
        raise ValueError(item)

    with pytest.raises(ValueError, match="0"):
        async for _ in score_stream([0], fail, concurrency=1):
            pass
