"""Scoring cases as they come, in bounded memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import TypeVar

__all__ = ["score_stream"]

Item = TypeVar("Item")
Result = TypeVar("Result")


async def score_stream(
    items: Iterable[Item], score: Callable[[Item], Awaitable[Result]], *, concurrency: int
) -> AsyncGenerator[tuple[Item, Result], None]:
    """Yield each item with its result as soon as it is there.

    At most `concurrency` items are in work, and the next one is read only when there is room.
    When the consumer stops, so does the work.

    Args:
        items: Read as they are needed.
        score: Scores one item.
        concurrency: Items in work at the same time.

    Raises:
        Exception: Whatever `score` raised first.
    """
    waiting = iter(items)
    running: dict[asyncio.Task[Result], Item] = {}

    async def scored(item: Item) -> Result:
        return await score(item)

    try:
        while True:
            while len(running) < concurrency:
                try:
                    item = next(waiting)
                except StopIteration:
                    break
                running[asyncio.create_task(scored(item))] = item
            if not running:
                return
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield running.pop(task), task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
