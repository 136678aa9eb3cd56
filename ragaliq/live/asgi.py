"""Beginning and end of an ASGI application, in the form FastAPI and Starlette ask for."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, Protocol

from ragaliq.live.capture import Capture

__all__ = ["Lifespan", "lifespan", "settled_at_end"]

Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]
"""Takes the application, and is entered when it starts and left when it ends."""


class _Ending(Protocol):
    def capture(self, *, timeout: float) -> Capture: ...

    def close(self, timeout: float) -> bool: ...


class _Lasting(Protocol):
    def lifespan(
        self, app: object, *, timeout: float | None
    ) -> AbstractAsyncContextManager[None]: ...


def lifespan(
    monitor: _Lasting, own: Lifespan | None = None, *, timeout: float | None = None
) -> Lifespan:
    """`Monitor.lifespan` around an application that has a lifespan of its own.

    Args:
        monitor: Whose runs to wait for.
        own: The application's own lifespan. It begins before and ends after the monitor's part, so
            that what it opens can be used until the end; what it yields is passed on.
        timeout: See `Monitor.lifespan`.
    """
    # The older form of a lifespan, which FastAPI still takes.
    opened = asynccontextmanager(own) if inspect.isasyncgenfunction(own) else own

    @asynccontextmanager
    async def both(app: Any) -> AsyncIterator[Any]:
        async with (
            opened(app) if opened is not None else nullcontext() as state,
            monitor.lifespan(app, timeout=timeout),
        ):
            yield state

    return both


@asynccontextmanager
async def settled_at_end(
    monitor: _Ending,
    *,
    timeout: float,  # noqa: ASYNC109 - threads are waited for, which nothing can cancel
) -> AsyncIterator[None]:
    """Have everything evaluated and sent when the block ends; drop, counted, what takes longer."""
    try:
        yield
    finally:
        # Made only now, when the application has set its telemetry up.
        async with monitor.capture(timeout=timeout) as capture:
            pass
        if not capture.complete:
            await asyncio.to_thread(monitor.close, 0.0)
