"""Beginning and end of an ASGI application, in the form FastAPI and Starlette ask for."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, Protocol

__all__ = ["Lifespan", "lifespan"]

logger = logging.getLogger(__name__)

Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]
"""Takes the application, and is entered when it starts and left when it ends."""


class _Ending(Protocol):
    def flush_at_exit(self, timeout: float | None) -> bool: ...


def lifespan(
    monitor: _Ending, own: Lifespan | None = None, *, timeout: float | None = None
) -> Lifespan:
    """A lifespan that has everything evaluated before the application ends.

    Servers end by the signal that stopped them, which runs no exit code; the end of the lifespan is
    the last moment at which anything can be done. It comes after the last request, and the event
    loop is not blocked meanwhile.

    Args:
        monitor: Whose runs to wait for.
        own: The application's own lifespan. It begins before and ends after the monitor's part, so
            that what it opens can be used until the end; what it yields is passed on.
        timeout: Seconds to wait; by default the monitor's `exit_timeout`. What is left then is
            counted `shutdown`, and the monitor is closed.
    """
    # Starlette's older form of a lifespan, which FastAPI takes as well.
    opened = asynccontextmanager(own) if inspect.isasyncgenfunction(own) else own

    @asynccontextmanager
    async def run(app: Any) -> AsyncIterator[Any]:
        async with opened(app) if opened is not None else nullcontext() as state:
            try:
                yield state
            finally:
                if not await asyncio.to_thread(monitor.flush_at_exit, timeout):
                    logger.warning("the application ended before every run was evaluated")

    return run
