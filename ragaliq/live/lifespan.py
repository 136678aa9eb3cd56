"""Lifespan of an application, which waits for evaluations before it ends."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

from ragaliq.live.monitor import Monitor

Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]
"""Takes the application, and is entered when it starts and left when it ends."""


def lifespan(
    monitor: Monitor, own: Lifespan | None = None, *, timeout: float | None = None
) -> Lifespan:
    """Combine `Monitor.lifespan` with the application's own lifespan.

    Args:
        monitor: The monitor whose runs to wait for.
        own: The application's lifespan. It begins before and ends after the monitor's, so that its
            resources stay open until the end; what it yields is passed on.
        timeout: See `Monitor.lifespan`.
    """
    # The older form of a lifespan, which FastAPI still accepts.
    opened = asynccontextmanager(own) if inspect.isasyncgenfunction(own) else own

    @asynccontextmanager
    async def both(app: Any) -> AsyncIterator[Any]:
        async with (
            opened(app) if opened is not None else nullcontext() as state,
            monitor.lifespan(app, timeout=timeout),
        ):
            yield state

    return both
