"""Running coroutines side by side without leaving any behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

__all__ = ["Breather", "is_being_cancelled", "run_all"]

T = TypeVar("T")


async def run_all(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all to their end and return what they return, in order.

    The first error cancels and awaits the others and is raised by itself, not in a group.
    """
    # Not a TaskGroup: before Python 3.13 one that fails leaves the caller's task marked as being
    # cancelled, and a timeout around it then ends in CancelledError instead of TimeoutError.
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    if not tasks:
        return []
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        failed = (task for task in tasks if task.done() and not task.cancelled())
        first = next((error for task in failed if (error := task.exception())), None)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if first is not None:
        raise first
    return [task.result() for task in tasks]


def is_being_cancelled() -> bool:
    """Whether somebody asked the current task to end.

    Where nobody did, a CancelledError came out of what the task called, like any other failure.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Breather:
    """Lets other tasks run, and a time limit strike, in the middle of long computing.

    Args:
        every: Seconds to compute at a stretch.
    """

    def __init__(self, every: float = 0.005) -> None:
        self._every = every
        self._since = time.perf_counter()

    async def pause_if_due(self) -> None:
        """Pause if it has been a while."""
        if time.perf_counter() - self._since > self._every:
            await asyncio.sleep(0)
            self._since = time.perf_counter()
