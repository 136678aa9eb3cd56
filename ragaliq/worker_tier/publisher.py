"""Putting messages on queues: one at a time, confirmed, and never waiting for long."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ragaliq.worker_tier.broker import TASK, connection_to

if TYPE_CHECKING:
    from celery import Celery
    from kombu.connection import Connection

__all__ = ["Publisher"]

logger = logging.getLogger(__name__)

_INHERITED: list[object] = []


class Publisher:
    """Publishes on a connection of its own, made anew after a failure; for one thread at a time.

    Args:
        app: Names the broker.
        timeout: Seconds for connecting, for each read and each write.
    """

    def __init__(self, app: Celery, *, timeout: float) -> None:
        self._app, self._timeout = app, timeout
        self._connection: Connection | None = None
        self._pid = os.getpid()

    def publish(self, job: Mapping[str, Any], *, queue: str) -> None:
        """Have a job done.

        Raises:
            Exception: Whatever the client library raises when the broker did not confirm it.
        """
        with self._producing() as producer:
            self._app.send_task(
                TASK,
                args=(dict(job),),
                task_id=uuid4().hex,
                queue=queue,
                producer=producer,
                serializer="json",
                ignore_result=True,
                retry=False,  # whoever calls knows how long to wait
                # Celery would put the arguments, questions and answers, into headers and logs.
                argsrepr="(a job)",
                kwargsrepr="{}",
                delivery_mode="persistent",
            )

    def put(self, data: Mapping[str, Any], *, queue: str) -> None:
        """Put data on a queue that nobody works on; raises as `publish` does."""
        with self._producing() as producer:
            place = self._app.amqp.queues[queue]
            producer.publish(
                dict(data),
                exchange=place.exchange,
                routing_key=place.routing_key,
                declare=[place],
                serializer="json",
                delivery_mode="persistent",
                retry=False,
            )

    def close(self) -> None:
        """Let go of the connection; the next message opens another."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._pid != os.getpid():
            # Closing it would end the parent's, and so would its finaliser.
            _INHERITED.append(connection)
            return
        with suppress(Exception):  # it may be broken already
            connection.release()

    def _producing(self) -> _Producing:
        if self._pid != os.getpid():
            self.close()
            self._pid = os.getpid()
        if self._connection is None:
            self._connection = connection_to(self._app, timeout=self._timeout)
        return _Producing(self, self._app.amqp.Producer(self._connection, auto_declare=False))


class _Producing:
    """A producer for one message; a connection on which something failed is not used again."""

    def __init__(self, publisher: Publisher, producer: Any) -> None:
        self._publisher, self._producer = publisher, producer

    def __enter__(self) -> Any:
        return self._producer

    def __exit__(self, kind: type[BaseException] | None, error: object, _: object) -> None:
        if kind is None:
            return
        from kombu.exceptions import OperationalError

        self._publisher.close()
        if isinstance(error, OperationalError) and isinstance(error.__cause__, Exception):
            raise error.__cause__  # says more: it is a timeout, a password, a certificate
