"""Whether workers answer."""

from __future__ import annotations

from ragaliq.worker_tier.broker import BrokerAwayError, broker_url, celery_app, connected

__all__ = ["answering"]


def answering(
    broker: str | None, *, name: str | None, timeout: float, queue: str = "ragaliq"
) -> list[str]:
    """The name of a worker that answers within `timeout` seconds; empty where none does.

    Args:
        broker: Its address; by default from `RAGALIQ_BROKER_URL`.
        name: Only this worker is asked; `%h` stands for this machine, as in the worker's own name.
        timeout: Seconds to wait.
        queue: Where its jobs are.

    Raises:
        ConfigurationError: The broker's address is wrong.
        BrokerAwayError: It cannot be reached; its workers get no jobs either.
    """
    app = celery_app(broker_url(broker), queue=queue)
    from celery.utils.nodenames import host_format

    try:
        with connected(app, timeout=timeout) as connection:
            replies = app.control.ping(
                destination=[host_format(name)] if name else None,
                timeout=timeout,
                connection=connection,
                limit=1,  # the first answer is enough
            )
    except BrokerAwayError:
        raise
    except Exception:  # noqa: BLE001 - client libraries have errors of every class
        return []  # the broker went away meanwhile
    return sorted(worker for reply in replies or [] for worker in reply)
