"""Jobs that were set aside: looking at them, having them done after all, dropping them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragaliq.worker_tier.broker import broker_url, celery_app, connected, set_aside_queue
from ragaliq.worker_tier.message import MessageRefusedError, read_message
from ragaliq.worker_tier.publisher import Publisher

if TYPE_CHECKING:
    from celery import Celery

__all__ = ["SetAside", "SetAsideJob"]

_TIMEOUT = 5.0


@dataclass(frozen=True, kw_only=True)
class SetAsideJob:
    """One message that was set aside.

    Attributes:
        job_id: The job's id; empty where the message could not be read.
        reason: Why, in a word.
        detail: Why, in a few more.
        set_aside_at: Unix time in seconds.
        deliveries: How often workers were given it.
        message: The message itself; has the application's texts in it.
    """

    job_id: str
    reason: str
    detail: str
    set_aside_at: float
    deliveries: int
    message: Any


class SetAside:
    """What was set aside from one queue.

    Args:
        broker: The broker's address; by default from `RAGALIQ_BROKER_URL`.
        queue: The queue the jobs came from.

    Raises:
        ConfigurationError: The broker's address is wrong.
    """

    def __init__(self, broker: str | None, *, queue: str) -> None:
        self._app: Celery = celery_app(broker_url(broker), queue=queue)
        self._queue = queue

    def jobs(self) -> list[SetAsideJob]:
        """All of them, oldest first; they stay where they are."""
        with self._received() as received:
            return [job for job, _ in received]

    def retry(self, *, job_id: str | None = None) -> tuple[int, int]:
        """Have jobs done after all, as if never delivered.

        Args:
            job_id: Only this one; by default all that can be read.

        Returns:
            How many were put back, and how many cannot be: they hold no job.
        """
        publisher = Publisher(self._app, timeout=_TIMEOUT)
        done = unreadable = 0
        try:
            with self._received() as received:
                for job, message in received:
                    if job_id is not None and job.job_id != job_id:
                        continue
                    if not isinstance(job.message, dict) or "version" not in job.message:
                        unreadable += 1
                        continue
                    publisher.publish(job.message | {"deliveries": 1}, queue=self._queue)
                    message.ack()
                    done += 1
        finally:
            publisher.close()
        return done, unreadable

    def drop(self, *, job_id: str | None = None) -> int:
        """Forget jobs for good; returns how many.

        Args:
            job_id: Only this one; by default all.
        """
        dropped = 0
        with self._received() as received:
            for job, message in received:
                if job_id is None or job.job_id == job_id:
                    message.ack()
                    dropped += 1
        return dropped

    @contextmanager
    def _received(self) -> Iterator[list[tuple[SetAsideJob, Any]]]:
        """Everything on the queue; what is not acknowledged inside the block is put back."""
        with connected(self._app, timeout=_TIMEOUT) as connection:
            place = self._app.amqp.queues[set_aside_queue(self._queue)](connection.channel())
            place.declare()
            received = []
            while (message := place.get(no_ack=False, accept=["json"])) is not None:
                received.append((_job_of(message), message))
            try:
                yield received
            finally:
                for _, message in reversed(received):
                    if not message.acknowledged:
                        message.requeue()


def _job_of(message: Any) -> SetAsideJob:
    kept = message.payload if isinstance(message.payload, dict) else {}
    inner = kept.get("message")
    try:
        job = read_message(inner)
        job_id, deliveries = job.job_id, job.deliveries
    except MessageRefusedError:
        job_id, deliveries = "", 0
    return SetAsideJob(
        job_id=job_id,
        reason=str(kept.get("reason", "")),
        detail=str(kept.get("detail", "")),
        set_aside_at=float(kept.get("set_aside_at", 0.0)),
        deliveries=deliveries,
        message=inner,
    )
