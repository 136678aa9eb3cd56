"""Running coroutines side by side without leaving any behind."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

__all__ = ["is_being_cancelled", "run_all"]

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
