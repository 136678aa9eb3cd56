"""Waiting for evaluations before an application is frozen or stopped."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    nullcontext,
)
from typing import TYPE_CHECKING, Any

from ragaliq.telemetry.providers import force_flush

if TYPE_CHECKING:
    from ragaliq.live.monitor import Monitor


logger = logging.getLogger(__name__)

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


class Capture(AbstractContextManager["Capture"], AbstractAsyncContextManager["Capture"]):
    """Waits at the end of the block until every run is evaluated and its telemetry is sent.

    A context manager, synchronous and asynchronous; leaving it never raises and hides no error of
    the block.

    Args:
        monitor: The monitor of the runs.
        timeout: Seconds to wait for the evaluations; the rest of it is for sending telemetry, with
            at least half a second for each provider.
        providers: OpenTelemetry's providers of the application or the monitor.

    Attributes:
        complete: Whether everything was evaluated in time; None until the block was left.
    """

    def __init__(self, monitor: Monitor, *, timeout: float, providers: Iterable[object]) -> None:
        self._monitor, self._timeout, self._providers = monitor, timeout, list(providers)
        self.complete: bool | None = None

    def __exit__(self, *error: object) -> None:
        self._send()

    async def __aexit__(self, *error: object) -> None:
        # Exporters block; the handler's loop may have other requests to answer meanwhile.
        await asyncio.to_thread(self._send)

    def _send(self) -> None:
        deadline = time.monotonic() + self._timeout
        try:
            self.complete = self._monitor.flush(self._timeout)
        except Exception as error:  # noqa: BLE001 - the application's request must not notice
            self.complete = False
            logger.debug("runs could not be flushed: %s", type(error).__name__)
        if not self.complete:
            logger.warning("not every run was evaluated within %g s", self._timeout)
        for provider in self._providers:
            force_flush(provider, max(0.5, deadline - time.monotonic()))
