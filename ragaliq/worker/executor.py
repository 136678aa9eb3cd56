"""Executors that send a monitor's runs to other processes."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress
from functools import partial

from ragaliq.core.checks import require_positive
from ragaliq.errors import ConfigurationError
from ragaliq.worker.brokers import Broker, broker_at, free_frames


class JobExecutor(ABC):
    """Takes jobs, as messages, for evaluation in other processes.

    Attributes:
        name: Its name in `MonitorStats.executor`.
        max_job_bytes: Size of the largest message; None for no limit.
    """

    name: str
    max_job_bytes: int | None = None

    @abstractmethod
    async def publish(self, job_id: str, message: bytes) -> None:
        """Enqueue a job durably; an exception leads to a retry.

        Called on the monitor's loop, which must not be blocked, for one job at a time.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Close connections; it may be used again afterwards."""

    def after_fork(self) -> None:  # noqa: B027 - nothing to do where none is held
        """Drop the parent's connections in a forked child, without touching them."""


class BrokerExecutor(JobExecutor):
    """Sends a monitor's runs to `ragaliq worker` processes: `Monitor(executor=URL)`.

    The monitor samples, queues and counts; its own thread publishes each run as JSON. While the
    broker is unavailable, publishing is retried; the monitor's queue fills, and further runs are
    counted `queue_full`.

    Args:
        url: The broker's address: `redis://`, `amqp://`, `nats://` or `kafka://`; by default from
            `RAGALIQ_BROKER_URL`.
        queue: The queue that the workers read.
        max_job_bytes: Size of the largest message; a larger job is counted `incomplete_run`, with
            the reason `too_large`.
        timeout: Seconds to wait for the broker to confirm a job.

    Raises:
        ConfigurationError: There is no address, or the broker's library is not installed.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        queue: str = "ragaliq",
        max_job_bytes: int = 1_000_000,
        timeout: float = 5.0,
    ) -> None:
        require_positive("BrokerExecutor", max_job_bytes=max_job_bytes, timeout=timeout)
        if not queue:
            raise ConfigurationError("BrokerExecutor: queue must not be empty")
        self.max_job_bytes, self._timeout = max_job_bytes, timeout
        broker = broker_at(url, queue=queue)  # what is wrong is said here, and its modules loaded
        self.name = broker.name
        self._broker_at = partial(broker_at, broker.url, queue=queue, timeout=timeout)
        self._broker: Broker | None = None

    async def publish(self, job_id: str, message: bytes) -> None:  # noqa: ARG002 - it is in the message
        """See `JobExecutor`."""
        try:
            async with asyncio.timeout(self._timeout):
                if self._broker is None:
                    self._broker = self._broker_at()
                    await self._broker.connect()
                await self._broker.publish(message, self._broker.queue)
        except BaseException as error:
            await self.aclose()
            free_frames(error)
            raise

    async def aclose(self) -> None:
        """Close the connection; the next job opens another."""
        broker, self._broker = self._broker, None
        if broker is not None:
            with suppress(Exception):  # it may be broken already
                async with asyncio.timeout(1.0):
                    await broker.native.stop()

    def after_fork(self) -> None:
        """Keep the parent's connection open and unused in a forked child."""
        # Closing it here, even by the garbage collector, would end the parent's.
        _OF_THE_PARENT.append(self._broker)
        self._broker = None


_OF_THE_PARENT: list[object] = []
