"""Celery's consumer, which refuses what is no job without writing it into the log."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from typing import Any

from celery.worker.consumer import Consumer
from celery.worker.request import Request

from ragaliq.worker_tier.broker import TASK

__all__ = ["JobConsumer", "JobRequest"]

logger = logging.getLogger(__name__)


class JobConsumer(Consumer):  # type: ignore[misc]  # Celery carries no type hints
    """Sets messages aside that Celery would log, text included, and throw away.

    Anything in a format other than JSON is among them: it is never decoded.
    """

    def create_task_handler(self, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        """Celery's own handler, for messages that it can handle."""
        handle = super().create_task_handler(*args, **kwargs)

        def on_message(message: Any) -> Any:
            if problem := _problem(message):
                return self._refuse(message, problem)
            return handle(message)

        return on_message

    def on_decode_error(self, message: Any, exc: Exception) -> None:  # noqa: ARG002 - Celery's
        """The message is no JSON."""
        self._refuse(message, "no JSON")

    def on_unknown_message(self, body: Any, message: Any) -> None:  # noqa: ARG002
        """The message is none of Celery's."""
        self._refuse(message, "no task")

    def on_unknown_task(self, body: Any, message: Any, exc: Exception) -> None:  # noqa: ARG002
        """The message asks for another task."""
        self._refuse(message, "another task")

    def on_invalid_task(self, body: Any, message: Any, exc: Exception) -> None:  # noqa: ARG002
        """The message's headers are wrong."""
        self._refuse(message, "wrong headers")

    def _refuse(self, message: Any, problem: str) -> None:
        body = message.body if isinstance(message.body, bytes) else str(message.body).encode()
        kept = {"base64": base64.b64encode(body).decode(), "content_type": message.content_type}
        try:
            self.app.ragaliq_hands.refuse(kept, detail=problem)
        except Exception as error:  # noqa: BLE001 - client libraries have errors of every class
            logger.warning("a message could not be set aside: %s", type(error).__name__)
            message.reject_log_error(logger, self.connection_errors, requeue=True)
        else:
            message.ack_log_error(logger, self.connection_errors)


class JobRequest(Request):  # type: ignore[misc]  # likewise
    """A task at hand, which does not show its arguments: questions and answers."""

    def info(self, safe: object = None) -> Any:  # noqa: ARG002 - Celery's
        """What `celery inspect` and the like are told."""
        return super().info(safe=True)


def _problem(message: Any) -> str | None:
    if message.content_type != "application/json":
        return "no JSON"
    headers = message.headers
    if not isinstance(headers, dict) or not isinstance(headers.get("id"), str):
        return "no task"
    if headers.get("task") != TASK:
        return "another task"
    try:
        payload = message.payload
    except Exception:  # noqa: BLE001 - whatever a decoder raises
        return "no JSON"
    is_call = (
        isinstance(payload, list)
        and [type(part) for part in payload[:2]] == [list, dict]
        and len(payload) == 3
    )
    return None if is_call else "no call of a task"
