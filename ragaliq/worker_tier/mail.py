"""The worker's own messages: jobs that go back, and those that are set aside."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from ragaliq.worker_tier.broker import set_aside_queue
from ragaliq.worker_tier.publisher import Publisher

if TYPE_CHECKING:
    from celery import Celery

__all__ = ["BrokerMail"]


class BrokerMail:
    """Puts messages back and aside; see `Mail`. Safe for threads.

    Args:
        app: Names the broker.
        queue: Where the jobs are.
        timeout: Seconds to wait for the broker.
    """

    def __init__(self, app: Celery, *, queue: str, timeout: float) -> None:
        self._publisher, self._queue = Publisher(app, timeout=timeout), queue
        self._lock = threading.Lock()

    def put_back(self, message: dict[str, Any]) -> None:
        """Have a job done later, by any worker."""
        with self._lock:
            self._publisher.publish(message, queue=self._queue)

    def set_aside(self, message: object, *, reason: str, detail: str) -> None:
        """Keep a message for somebody to look at."""
        kept = {
            "reason": reason,
            "detail": detail,
            "set_aside_at": time.time(),
            "message": message,
        }
        with self._lock:
            self._publisher.put(kept, queue=set_aside_queue(self._queue))
