"""The broker: its address, the queues on it, and a connection that never waits for long."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ragaliq.errors import ConfigurationError

if TYPE_CHECKING:
    from celery import Celery
    from kombu import Connection

__all__ = ["TASK", "broker_url", "celery_app", "connection_to", "set_aside_queue"]

TASK = "ragaliq.evaluate"
"""The name of the one task."""

ENV_BROKER_URL = "RAGALIQ_BROKER_URL"
_REDIS = ("redis", "rediss", "redis+socket", "sentinel")
_AMQP = ("amqp", "amqps", "pyamqp")


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
        raise ConfigurationError(
            "the broker's address must begin with redis://, rediss://, sentinel://, amqp:// or "
            f"amqps://, not {scheme!r}"
        )
    return url


def celery_app(url: str) -> Celery:
    """A Celery application that speaks JSON only and keeps no results.

    Raises:
        ConfigurationError: Celery is not installed.
    """
    try:
        from celery import Celery
    except ModuleNotFoundError:
        raise ConfigurationError("Celery is not installed: pip install 'ragaliq[celery]'") from None
    # Not the process's current application: there may be one that has nothing to do with us.
    app = Celery("ragaliq", broker=url, set_as_current=False, autofinalize=False)
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        result_serializer="json",
        event_serializer="json",
        task_ignore_result=True,
        task_protocol=2,
    )
    app.finalize()
    return app


def connection_to(app: Celery, *, timeout: float) -> Connection:
    """A connection of its own, on which nothing waits longer than `timeout` seconds.

    Args:
        app: Names the broker.
        timeout: Seconds for connecting, for each read and each write.
    """
    options: dict[str, Any] = dict(app.conf.broker_transport_options or {})
    scheme = app.connection_for_write().transport_cls
    if scheme in _AMQP:
        options |= {"read_timeout": timeout, "write_timeout": timeout, "confirm_publish": True}
    else:
        options |= {"socket_timeout": timeout, "socket_connect_timeout": timeout}
    return app.connection_for_write(connect_timeout=timeout, transport_options=options)
