"""Waiting for evaluations before an application is frozen or stopped."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, AbstractContextManager

from ragaliq.telemetry.providers import force_flush

logger = logging.getLogger(__name__)


class Capture(AbstractContextManager["Capture"], AbstractAsyncContextManager["Capture"]):
    """Waits at the end of the block until every run is evaluated and its telemetry is sent.

    A context manager, synchronous and asynchronous; leaving it never raises and hides no error of
    the block.

    Args:
        flush: The monitor's.
        timeout: Seconds to wait for the evaluations; the rest of it is for sending telemetry, with
            at least half a second for each provider.
        providers: OpenTelemetry's providers of the application or the monitor.

    Attributes:
        complete: Whether everything was evaluated in time; None until the block was left.
    """

    def __init__(
        self, flush: Callable[[float], bool], *, timeout: float, providers: Iterable[object]
    ) -> None:
        self._flush, self._timeout, self._providers = flush, timeout, list(providers)
        self.complete: bool | None = None

    def __exit__(self, *error: object) -> None:
        self._send()

    async def __aexit__(self, *error: object) -> None:
        # Exporters block; the handler's loop may have other requests to answer meanwhile.
        await asyncio.to_thread(self._send)

    def _send(self) -> None:
        deadline = time.monotonic() + self._timeout
        try:
            self.complete = self._flush(self._timeout)
        except Exception as error:  # noqa: BLE001 - the application's request must not notice
            self.complete = False
            logger.debug("runs could not be flushed: %s", type(error).__name__)
        if not self.complete:
            logger.warning("not every run was evaluated within %g s", self._timeout)
        for provider in self._providers:
            force_flush(provider, max(0.5, deadline - time.monotonic()))
