"""Run coroutines concurrently, pause between attempts, and yield to other tasks."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_COMPUTE_FOR = 0.005  # seconds at a stretch
LONG = 100_000
"""Characters of a long text: reading so many takes some 20 ms."""
_MOST_DOUBLINGS = 60  # beyond that a float would overflow one day, and every cap is reached


async def run_all(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all to their end and return their results in order.

    The first error cancels and awaits the others and is raised by itself, not in a group.
    """
    # Not a TaskGroup: before Python 3.13 one that fails leaves the caller's task marked as being
    # cancelled, and a timeout around it then ends in CancelledError instead of TimeoutError.
    alone = list(coroutines)
    if len(alone) < 2:  # the usual case needs no task
        return [await coroutine for coroutine in alone]
    tasks = [asyncio.ensure_future(coroutine) for coroutine in alone]
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
    """True if somebody cancelled the current task.

    Otherwise a CancelledError came from what the task called, like any other failure.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def pause_if_due(since: float) -> float:
    """Yield to other tasks if computing has taken long, so that they run and a timeout can strike.

    Args:
        since: When the last pause was, by `time.perf_counter`; 0 for the first call.

    Returns:
        The value of `since` for the next call.
    """
    now = time.perf_counter()
    if since and now - since > _COMPUTE_FOR:
        await asyncio.sleep(0)
        return time.perf_counter()
    return since or now


async def off_loop_if_long(
    characters: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call a function that computes; in a thread if its texts are long, so that other tasks run.

    Args:
        characters: Length of the texts.
        function: The function; a thread cannot be cancelled, so its work must be bounded.
        *args: Its arguments.
        **kwargs: Its arguments.
    """
    if characters > LONG:
        # Refused at the end of the interpreter, when a blocked event loop does not matter.
        with suppress(RuntimeError):
            return await asyncio.to_thread(function, *args, **kwargs)
    return function(*args, **kwargs)


def spread(seconds: float) -> float:
    """Add up to a quarter at random, so that many processes do not retry at the same moment."""
    return seconds * (1.0 + random.random() / 4)  # noqa: S311 - not for secrets


def pause_before_retry(failures: int, *, first: float, longest: float) -> float:
    """Seconds to wait after so many failures in a row: doubled with each, with random spread."""
    return spread(min(first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), longest))
