"""The broker: its address, the queues on it, and a connection that never waits for long."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ragaliq.errors import ConfigurationError, RagaliqError

if TYPE_CHECKING:
    from celery import Celery
    from kombu.connection import Connection

__all__ = [
    "TASK",
    "BrokerAwayError",
    "broker_url",
    "celery_app",
    "connected",
    "connection_to",
    "set_aside_queue",
]

TASK = "ragaliq.evaluate"
"""The name of the one task."""

ENV_BROKER_URL = "RAGALIQ_BROKER_URL"
_REDIS = ("redis", "rediss")
_AMQP = ("amqp", "amqps")


class BrokerAwayError(RagaliqError):
    """The broker cannot be reached."""


def set_aside_queue(queue: str) -> str:
    """The queue for jobs that were set aside from `queue`."""
    return f"{queue}.set_aside"


def broker_url(given: str | None) -> str:
    """The broker's address: the one given, else `RAGALIQ_BROKER_URL`.

    Raises:
        ConfigurationError: There is none, or it names no broker that is supported. The message
            does not show it: it may hold a password.
    """
    url = given or os.environ.get(ENV_BROKER_URL, "")
    if not url:
        raise ConfigurationError(
            f"no broker: name it, or set {ENV_BROKER_URL}, such as redis://localhost:6379/0"
        )
    try:
        scheme = urlsplit(url).scheme
    except ValueError:
        scheme = ""
    if scheme not in (*_REDIS, *_AMQP):
        # Without a scheme nobody can tell a host's name from a password.
        found = f"this one begins with {scheme}:" if scheme else "this one has no scheme"
        raise ConfigurationError(
            f"{'the broker' if given else ENV_BROKER_URL}: the address must begin with redis://, "
            f"rediss://, amqp:// or amqps://; {found} ({len(url)} characters)"
        )
    return url


def celery_app(
    url: str, *, queue: str = "ragaliq", ssl: Mapping[str, Any] | bool | None = None
) -> Celery:
    """A Celery application that speaks JSON only and keeps no results.

    Nothing of it comes from the process it is in: not the settings of another Celery application,
    and not Celery's own environment variables (`CELERY_BROKER_URL` and the like).

    Args:
        url: The broker's address.
        queue: Where the jobs are.
        ssl: Celery's `broker_use_ssl`.

    Raises:
        ConfigurationError: Celery, or its client for Redis, is not installed.
    """
    try:
        from ragaliq.worker_tier.celery_application import OwnApplication
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("celery", "kombu"):
            raise
        raise ConfigurationError("Celery is not installed: pip install 'ragaliq[celery]'") from None
    if url.startswith(_REDIS) and find_spec("redis") is None:
        # Celery would find out with the first message, and an application would wait for ever.
        raise ConfigurationError(
            "a broker on Redis needs the redis client: pip install 'ragaliq[celery]'"
        )
    app = OwnApplication(url)
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        result_serializer="json",
        event_serializer="json",
        task_ignore_result=True,
        task_protocol=2,
        # Commands to workers, `ping` or `shutdown`, otherwise go to every Celery worker there is
        # on the broker, other applications' too, and theirs to ours.
        control_exchange=f"{queue}.control",
    )
    if ssl:
        app.conf.broker_use_ssl = ssl
    if url.startswith(_REDIS):
        app.conf.broker_transport = "ragaliq.worker_tier.redis_transport:Transport"
        # One list for each queue, and notes of our own: another application on the same Redis has
        # its own idea of how long a message may stay unacknowledged.
        app.conf.broker_transport_options = {
            "priority_steps": [0],
            "unacked_key": f"{queue}.unacked",
            "unacked_index_key": f"{queue}.unacked_index",
            "unacked_mutex_key": f"{queue}.unacked_mutex",
            # Seconds; a worker that dies while it gives jobs on must not keep others from it.
            "unacked_mutex_expire": 10,
        }
    else:
        app.conf.broker_transport_options = {"confirm_publish": True}
    app.finalize()
    return app


def connection_to(app: Celery, *, timeout: float) -> Connection:
    """A connection of its own, on which nothing waits longer than `timeout` seconds.

    Args:
        app: Names the broker.
        timeout: Seconds for connecting, for each read and each write.
    """
    options: dict[str, Any] = dict(app.conf.broker_transport_options or {})
    # One more attempt at once, with the next address where there are several; whoever calls knows
    # how long to wait. By itself kombu sleeps two seconds.
    options |= {"max_retries": 1, "interval_start": 0}
    if app.connection_for_write().transport.driver_type == "redis":
        options |= {"socket_timeout": timeout, "socket_connect_timeout": timeout}
    else:
        options |= {"read_timeout": timeout, "write_timeout": timeout, "confirm_publish": True}
    connection: Connection = app.connection_for_write(
        connect_timeout=timeout, transport_options=options
    )
    return connection


@contextmanager
def connected(app: Celery, *, timeout: float) -> Iterator[Connection]:
    """A connection that stands, for a command that somebody waits for.

    Raises:
        BrokerAwayError: It could not be made. The message does not show the address.
    """
    with connection_to(app, timeout=timeout) as connection:
        try:
            connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0)
        except Exception as error:  # noqa: BLE001 - client libraries have errors of every class
            kind = type(error.__cause__ or error).__name__
            raise BrokerAwayError(
                f"the broker cannot be reached ({kind}): is it running, and is --broker or "
                f"{ENV_BROKER_URL} its address?"
            ) from None
        yield connection
