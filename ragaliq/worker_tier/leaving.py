"""The worker's end after a signal: nothing new, time for what it has, and the rest goes back."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragaliq.worker_tier.application import Hands

__all__ = ["Leaving"]

logger = logging.getLogger(__name__)

_LOOK_EVERY = 0.1
_TO_GIVE_BACK = 5.0


class Leaving:
    """Ends a worker while its event loop still runs, so that what is done is acknowledged too.

    Celery's own warm shutdown waits for the pool with the loop at rest, and without a limit.

    Args:
        consumer: Celery's, once it is ready.
        hands: What works on jobs in this process.
        pool: `threads` or `prefork`.
        queue: Where the jobs are.
        grace: Seconds for finishing jobs.
    """

    def __init__(self, consumer: Any, hands: Hands, pool: str, *, queue: str, grace: float) -> None:
        self._consumer, self._hands, self._pool = consumer, hands, pool
        self._queue, self._grace = queue, grace
        self._deadline = 0.0
        self._has_begun = self._gave_back = False

    def heed_signals(self) -> None:
        """Leave at the next SIGTERM or Ctrl-C; a second Ctrl-C leaves jobs no more time."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._asked)

    def _asked(self, number: int, _: object) -> None:
        if self._deadline:
            if number == signal.SIGINT:
                self._deadline = time.monotonic()
            return
        self._deadline = time.monotonic() + self._grace
        self._consumer.hub.call_soon(self._begin)
        self._call_in(self._grace + 1.0, self._out_of_time)

    def _out_of_time(self) -> None:
        # While the broker is away the loop does not run: nothing has begun, nothing can go back.
        if self._has_begun:
            self._call_in(_TO_GIVE_BACK, self._end)
        else:
            self._end()

    @staticmethod
    def _call_in(delay: float, callback: Callable[[], None]) -> None:
        timer = threading.Timer(delay, callback)
        timer.daemon = True
        timer.start()

    def _begin(self) -> None:
        self._has_begun = True
        logger.info("leaving: no new jobs, up to %g s for those at hand", self._grace)
        self._consumer.cancel_task_queue(self._queue)
        self._look()

    def _look(self) -> None:
        from celery.worker import state

        late = time.monotonic() - self._deadline
        if not state.reserved_requests or late > _TO_GIVE_BACK:
            self._end()
        elif late > 0 and not self._gave_back:
            self._gave_back = True
            if self._pool == "threads":
                self._hands.deliveries().give_back()
            else:
                # Its processes cannot be told: they end, and the broker has the jobs again.
                signal.raise_signal(signal.SIGQUIT)
                return
        self._consumer.hub.call_later(_LOOK_EVERY, self._look)

    def _end(self) -> None:
        from celery.worker import state

        if self._pool == "threads":
            self._hands.deliveries().give_back()  # Celery waits for every thread of its pool
        state.should_stop = 0  # the exit code
