"""What becomes of one delivery: judged, put back, or set aside; whatever happens, counted."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, wait
from typing import Any, Protocol

from ragaliq.core.sync import LoopThread
from ragaliq.live.complaints import Complaints
from ragaliq.worker_tier.judging import JobJudge, NotDoneError
from ragaliq.worker_tier.message import JobMessage, MessageRefusedError, read_message
from ragaliq.worker_tier.settings import WorkerSettings

__all__ = ["Deliveries", "Mail"]

logger = logging.getLogger(__name__)

_LOOP_ANSWERS_WITHIN = 10.0
_STUCK = 70  # the exit code; EX_SOFTWARE


class _TooSlowError(Exception):
    """The job takes longer than it may."""


class Mail(Protocol):
    """Where messages are put; both raise when the broker did not confirm."""

    def put_back(self, message: dict[str, Any]) -> None:
        """Have a job done later, by any worker."""

    def set_aside(self, message: object, *, reason: str, detail: str) -> None:
        """Keep a message for somebody to look at."""


class Deliveries:
    """Takes what the broker delivers, on many threads at once.

    Args:
        settings: What the worker does.
        mail: Where messages go that are not done here.
        end_process: Ends this process at once, with an exit code.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        mail: Mail,
        *,
        end_process: Callable[[int], object] = os._exit,
    ) -> None:
        self._judge, self._mail = JobJudge(settings), mail
        self._max_deliveries, self._time_limit = settings.max_deliveries, settings.time_limit
        self._thread = LoopThread("ragaliq-jobs")
        self._lock = threading.Lock()
        self._working: set[Future[str]] = set()
        self._gives_back = False
        self._end_process = end_process
        self._complaints = Complaints(logger)
        self._said: set[str] = set()

    def take(self, data: object, *, redelivered: bool) -> None:
        """Do what is to be done with a message; afterwards it can be acknowledged.

        Args:
            data: What the message holds.
            redelivered: Whether the broker gave it to a worker before that did not acknowledge it.

        Raises:
            Exception: The broker cannot be reached; the message must not be acknowledged.
        """
        try:
            message = read_message(data)
        except MessageRefusedError as error:
            self._set_aside(data, error.reason, error.detail)
            return
        if unknown := set(message.metrics) - self._judge.metrics:
            self._set_aside(data, "unknown_metric", f"{len(unknown)} metrics unknown to the worker")
        elif redelivered:
            self._again(message)
        else:
            self._work(message)

    def refused(self) -> None:
        """Count a message that was set aside before it could be read."""
        self._count("set_aside", "malformed")

    def give_back(self) -> None:
        """Stop working: what is being judged goes back to the broker."""
        with self._lock:
            self._gives_back = True
            working = list(self._working)
        for future in working:
            future.cancel()

    def close(self, timeout: float) -> None:
        """Store what is pending and release judge, sinks and telemetry."""
        self._judge.close(timeout)
        self._thread.stop(self._judge.aclose, timeout=1.0)

    def _again(self, message: JobMessage) -> None:
        """A message whose worker died, or was cut off from the broker, while it had it.

        The broker does not count how often that happened; so it is put back as a new message with
        the number in it, before anything is done that might kill this worker as well.
        """
        if self._on_loop(self._judge.is_recorded(message.job(), message.metrics)).result():
            self._count("already_recorded")
        elif message.deliveries >= self._max_deliveries:
            told = f"given to workers {message.deliveries} times, none of which finished it"
            self._set_aside(_data(message), "crashed", told)
        else:
            self._mail.put_back(_data(message, deliveries=message.deliveries + 1))
            self._count("redelivered")

    def _work(self, message: JobMessage) -> None:
        waited = max(0.0, time.time() - message.published_at)
        try:
            outcome = self._judged(message)
        except NotDoneError as error:
            if error.may_pass and message.deliveries < self._max_deliveries:
                self._mail.put_back(_data(message, deliveries=message.deliveries + 1))
                self._count("returned", error.reason)
            else:
                self._set_aside(_data(message), error.reason, "")
        except CancelledError:
            self._mail.put_back(_data(message))
            self._count("returned")
        except _TooSlowError:
            self._set_aside(_data(message), "too_slow", f"longer than {self._time_limit:g} s")
        except Exception as error:  # noqa: BLE001 - no message may end the worker, or come for ever
            self._complaints.add("a job could not be evaluated", error)
            self._set_aside(_data(message), "internal_error", type(error).__name__)
        else:
            self._judge.emitter.metrics.job(outcome, waited=waited)
            if outcome == "over_budget":
                self._say(outcome, "jobs are left unjudged for want of budget; counted, not logged")

    def _judged(self, message: JobMessage) -> str:
        with self._lock:
            if self._gives_back:
                raise CancelledError
            future: Future[str] = self._on_loop(self._judge.judge(message.job(), message.metrics))
            self._working.add(future)
        try:
            if not wait([future], self._time_limit).done:
                self._require_living_loop()
                raise _TooSlowError
            return future.result()
        finally:
            future.cancel()
            with self._lock:
                self._working.discard(future)

    def _require_living_loop(self) -> None:
        """End this process where a job holds up its loop, and with it every other job.

        Which job that is cannot be told from here. Nothing is acknowledged, so that they all come
        back and are counted, and the one that always does it is set aside in the end.
        """
        if not wait([self._on_loop(asyncio.sleep(0))], _LOOP_ANSWERS_WITHIN).done:
            logger.critical(
                "something blocks the loop on which jobs are judged, such as a judge that computes "
                "(use --pool prefork) or never returns; this process ends, others get its jobs"
            )
            self._end_process(_STUCK)

    def _on_loop(self, work: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self._thread.loop())

    def _set_aside(self, data: object, reason: str, detail: str) -> None:
        self._mail.set_aside(data, reason=reason, detail=detail)
        self._count("set_aside", reason)
        told = f"{reason} ({detail})" if detail else reason
        self._say(
            reason,
            f"a job was set aside: {told}; further ones of this reason are counted, not logged; "
            "see `ragaliq worker set-aside list`",
        )

    def _say(self, reason: str, words: str) -> None:
        if reason not in self._said:
            self._said.add(reason)
            logger.warning(words)

    def _count(self, outcome: str, reason: str = "") -> None:
        self._judge.emitter.metrics.job(outcome, reason=reason)


def _data(message: JobMessage, **changed: object) -> dict[str, Any]:
    return message.model_copy(update=changed).model_dump(mode="json")
