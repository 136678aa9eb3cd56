"""The worker's Celery application: its settings, and the one task."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragaliq.worker_tier.broker import TASK, celery_app
from ragaliq.worker_tier.delivery import Deliveries
from ragaliq.worker_tier.mail import BrokerMail
from ragaliq.worker_tier.settings import WorkerSettings

if TYPE_CHECKING:
    from celery import Celery

__all__ = ["BrokerOptions", "Hands", "worker_app"]


@dataclass(frozen=True, kw_only=True)
class BrokerOptions:
    """How a worker uses the broker.

    Attributes:
        url: Its address.
        queue: Where the jobs are.
        visibility_timeout: Seconds after which Redis gives a job to another worker that nobody
            acknowledged; the same for all workers.
        timeout: Seconds to wait for the broker when a job is put back or aside.
    """

    url: str
    queue: str
    visibility_timeout: float
    timeout: float = 5.0


class Hands:
    """What works on deliveries, made in each process for itself."""

    def __init__(self, app: Celery, settings: WorkerSettings, broker: BrokerOptions) -> None:
        self._app, self._settings, self._broker = app, settings, broker
        self._mail = self._new_mail()
        self._made: tuple[int, Deliveries] | None = None

    def deliveries(self) -> Deliveries:
        """Those of this process.

        Raises:
            ConfigurationError: The settings cannot be used.
        """
        if self._made is None or self._made[0] != os.getpid():
            self._made = os.getpid(), Deliveries(self._settings, self._new_mail())
        return self._made[1]

    def _new_mail(self) -> BrokerMail:
        return BrokerMail(self._app, queue=self._broker.queue, timeout=self._broker.timeout)

    def refuse(self, message: object, *, detail: str) -> None:
        """Set aside what came over the broker and could not even be decoded.

        Raises:
            Exception: The broker cannot be reached.
        """
        self._mail.set_aside(message, reason="malformed", detail=detail)
        self.deliveries().refused()

    def close(self, timeout: float) -> None:
        """Release what this process made."""
        if self._made is not None and self._made[0] == os.getpid():
            self._made[1].close(timeout)


def worker_app(settings: WorkerSettings, broker: BrokerOptions) -> tuple[Celery, Hands]:
    """The application a worker runs."""
    app = celery_app(broker.url, queue=broker.queue)
    app.conf.update(_settings(settings, broker))
    app.conf.broker_transport_options |= {
        "visibility_timeout": broker.visibility_timeout,
        "unacked_restore_interval": max(1, min(10, int(broker.visibility_timeout / 4))),
        "unacked_restore_throttle": 1,
        "socket_connect_timeout": broker.timeout,
        "socket_keepalive": True,
    }
    hands = app.ragaliq_hands = Hands(app, settings, broker)  # for the consumer

    @app.task(  # type: ignore[untyped-decorator]
        name=TASK,
        bind=True,
        typing=False,
        shared=False,
        Request="ragaliq.worker_tier.consumer:JobRequest",
    )
    def evaluate(task: Any, *args: Any, **kwargs: Any) -> None:
        from celery.exceptions import Reject

        told = task.request.delivery_info or {}
        data = args[0] if len(args) == 1 and not kwargs else None
        try:
            hands.deliveries().take(data, redelivered=bool(told.get("redelivered")))
        except Exception as error:  # noqa: BLE001 - client libraries have errors of every class
            # The broker is away: it gives the message to a worker again. The error's own words
            # may hold the broker's address.
            raise Reject(type(error).__name__, requeue=True) from None

    return app, hands


def _settings(settings: WorkerSettings, broker: BrokerOptions) -> dict[str, Any]:
    return {
        "task_default_queue": broker.queue,
        # A job is acknowledged when its record is stored; a worker that dies has acknowledged
        # nothing, and another one is given what it had.
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "task_acks_on_failure_or_timeout": False,
        "worker_prefetch_multiplier": 1,
        # In prefork processes only; jobs limit themselves, this is for code that blocks.
        "task_time_limit": settings.time_limit + 30.0,
        "task_store_errors_even_if_ignored": False,
        "worker_send_task_events": False,
        "worker_redirect_stdouts": False,
        # A module with settings may have set up logging its own way.
        "worker_hijack_root_logger": False,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "worker_consumer": "ragaliq.worker_tier.consumer:JobConsumer",
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        # A Redis that is full or a replica answers with errors: wait for it to recover, likewise.
        "broker_channel_error_retry": True,
    }
