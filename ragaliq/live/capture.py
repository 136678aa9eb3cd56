"""Handlers that are frozen when they return: everything is sent before they do."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Protocol, Self

from ragaliq.telemetry.providers import force_flush

__all__ = ["Capture"]

logger = logging.getLogger(__name__)


class _Flushing(Protocol):
    def flush(self, timeout: float) -> bool: ...


class Capture:
    """Waits, when the block is left, until every run is evaluated and its telemetry is sent.

    A context manager, synchronous and asynchronous; leaving it never raises and hides no error of
    the block.

    Args:
        monitor: Where the runs go.
        timeout: Seconds to wait for the evaluations; what they leave is for sending telemetry, and
            half a second for each provider at least.
        providers: OpenTelemetry's providers, of the application or the monitor's own.

    Attributes:
        complete: Whether everything was evaluated in time; None until the block was left.
    """

    def __init__(self, monitor: _Flushing, *, timeout: float, providers: Iterable[object]) -> None:
        self._monitor = monitor
        self._timeout = timeout
        self._providers = list(providers)
        self.complete: bool | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._send()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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
