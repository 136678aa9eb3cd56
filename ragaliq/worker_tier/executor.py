"""The application's side: a monitor that publishes runs in place of judging them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opentelemetry.context import attach, detach, set_value

from ragaliq._private import suppress_instrumentation_key
from ragaliq.core.checks import require_positive
from ragaliq.core.sync import LoopThread
from ragaliq.errors import ConfigurationError
from ragaliq.live.handing_over import JobExecutor, JobRefusedError
from ragaliq.live.job import Job
from ragaliq.worker_tier.broker import broker_url, celery_app
from ragaliq.worker_tier.message import message_of
from ragaliq.worker_tier.publisher import Publisher

if TYPE_CHECKING:
    from celery import Celery

__all__ = ["CeleryExecutor"]


class CeleryExecutor(JobExecutor):
    """Has a monitor's runs judged by `ragaliq worker` processes: `Monitor(executor=...)`.

    The monitor samples, queues and counts as always; its own thread publishes each run as JSON in
    place of judging it. While the broker is away or slow the run is held and tried again; the
    monitor's queue fills, and further runs are counted `queue_full`.

    Args:
        app_or_broker_url: The broker's address, or a Celery application, of which only the address
            and `broker_use_ssl` are used; by default from `RAGALIQ_BROKER_URL`.
        queue: The queue the workers listen on.
        max_job_bytes: The largest message; a larger job is counted `incomplete_run`, with the
            reason `too_large`.
        timeout: Seconds to wait for the broker: for connecting, for each read and each write.

    Raises:
        ConfigurationError: There is no broker to be found, or Celery is not installed.
    """

    name = "celery"

    def __init__(
        self,
        app_or_broker_url: Celery | str | None = None,
        *,
        queue: str = "ragaliq",
        max_job_bytes: int = 1_000_000,
        timeout: float = 5.0,
    ) -> None:
        require_positive("CeleryExecutor", max_job_bytes=max_job_bytes, timeout=timeout)
        if not isinstance(queue, str) or not queue:
            raise ConfigurationError(f"CeleryExecutor: queue must be a name, got {queue!r}")
        self._queue, self._max_job_bytes = queue, max_job_bytes
        self._publisher = Publisher(_app_of(app_or_broker_url, queue), timeout=timeout)
        self._thread = LoopThread("ragaliq-publish")

    async def publish(self, job: Job, metrics: Sequence[str]) -> None:
        """See `JobExecutor`; the broker is waited for on a thread of its own."""
        publishing = asyncio.run_coroutine_threadsafe(
            self._publish(job, tuple(metrics)), self._thread.loop()
        )
        await asyncio.wrap_future(publishing)

    async def aclose(self) -> None:
        """Let go of the connection and the thread."""
        if self._thread.ident is not None:
            await asyncio.to_thread(self._thread.stop, self._release, 0.5)

    def after_fork(self) -> None:
        """Nothing is to be done: connections and threads know the process they belong to."""

    # --- on the publishing thread -------------------------------------------------------------

    async def _publish(self, job: Job, metrics: tuple[str, ...]) -> None:
        # Before time is spent on writing it as JSON. Characters take up to four bytes here.
        if job.case.size > 4 * self._max_job_bytes:
            raise JobRefusedError("too_large")
        try:
            message = message_of(job, metrics)
        except ValueError:
            raise JobRefusedError("not_plain_data") from None
        if len(json.dumps(message)) > self._max_job_bytes:
            raise JobRefusedError("too_large")
        # What the application has instrumented must not take this for a part of itself.
        token = attach(set_value(suppress_instrumentation_key(), value=True))
        try:
            self._publisher.publish(message, queue=self._queue)
        finally:
            detach(token)

    async def _release(self) -> None:
        self._publisher.close()


def _app_of(given: Any, queue: str) -> Celery:
    if given is None or isinstance(given, str):
        return celery_app(broker_url(given), queue=queue)
    if not hasattr(given, "send_task"):
        raise ConfigurationError(
            "CeleryExecutor: give a Celery application or the broker's address, not "
            f"{type(given).__name__}"
        )
    # Not the application itself: its routes, priorities and key prefixes would take jobs to where
    # no worker of ours looks, and its serializer may be pickle.
    address = given.conf.broker_write_url
    joined = ";".join(address) if isinstance(address, list | tuple) else address
    return celery_app(broker_url(joined), queue=queue, ssl=given.conf.broker_use_ssl)
