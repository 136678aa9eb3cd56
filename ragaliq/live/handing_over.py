"""Handing runs over to whoever judges them elsewhere, in place of judging them here."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from itertools import count

from ragaliq.core.backoff import pause_before_retry
from ragaliq.core.concurrency import is_being_cancelled
from ragaliq.errors import ConfigurationError, RagaliqError
from ragaliq.live.complaints import Complaints
from ragaliq.live.job import Job, Submission
from ragaliq.live.stats import Tally

__all__ = ["HandingOver", "JobExecutor", "JobRefusedError", "leave_to_workers"]

logger = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 10.0
_THE_WORKERS = (
    "judge calibration policy concurrency deadline niceness mode inline_timeout budget "
    "judge_limits breaker on_result sinks capture_content redact"
).split()


class JobRefusedError(RagaliqError):
    """A job can never be handed over.

    Args:
        reason: A word for counting, such as `too_large`.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"the job cannot be handed over: {reason}")
        self.reason = reason


class JobExecutor(ABC):
    """Takes whole jobs: plain data that somebody else judges, emits and stores.

    Attributes:
        name: Names it in `MonitorStats.executor`.
    """

    name: str

    @abstractmethod
    async def publish(self, job: Job, metrics: Sequence[str]) -> None:
        """Hand a job over; it is safe with the other side when this returns.

        Called on the monitor's loop, which must not be blocked, for one job after the other.

        Args:
            job: The run.
            metrics: What is to be measured.

        Raises:
            JobRefusedError: It never can be. After any other exception it is tried again.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Let go of connections; it may be used again afterwards."""

    @abstractmethod
    def after_fork(self) -> None:
        """In a forked child: leave the parent's connections alone."""


class HandingOver:
    """What the monitor's thread does with a run where somebody else judges it.

    While the other side takes nothing the run is held and tried again, ever less often; the queue
    behind it fills, and further runs are dropped there and counted.

    Args:
        executor: Takes the jobs.
        metrics: What the monitor measures.
        failed: Told of each failed attempt, with the error's class.
    """

    restarts = 0

    def __init__(
        self, executor: JobExecutor, metrics: Sequence[str], *, failed: Callable[[str], object]
    ) -> None:
        self._executor, self._metrics, self._failed = executor, metrics, failed
        self._complaints = Complaints(logger)

    @property
    def executor(self) -> str:
        """Where runs go."""
        return self._executor.name

    async def score(
        self,
        submission: Submission,
        tally: Tally,
        *,
        returns_unjudged: bool = False,  # noqa: ARG002 - likewise
    ) -> None:
        """Hand a run over and count what became of it; raises nothing but a cancellation."""
        try:
            job = submission.job()
            chosen = job.run.metric_probabilities
            metrics = [each for each in self._metrics if each in chosen or not chosen]
            await self._publish(job, metrics, tally)
        except JobRefusedError as error:
            self._complaints.add(f"a run cannot be handed over ({error.reason})", error)
            tally.end("incomplete_run", error.reason)
        except BaseException as error:
            if is_being_cancelled():
                tally.end("shutdown")
                submission.settle("shutdown")
                raise
            self._complaints.add("a run could not be handed over", error)
            tally.end("incomplete_run", "internal_error")
        else:
            tally.end("handed_over")
            submission.settle("handed_over")

    async def _publish(self, job: Job, metrics: Sequence[str], tally: Tally) -> None:
        for failures in count(1):
            try:
                await self._executor.publish(job, metrics)
            except JobRefusedError:
                raise
            except Exception as error:  # noqa: BLE001 - client libraries have errors of every class
                self._complaints.add("jobs cannot be handed over, waiting for the broker", error)
                tally.publish_failed()
                self._failed(type(error).__name__)
            else:
                return
            await asyncio.sleep(
                pause_before_retry(failures, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)
            )

    async def aclose(self) -> None:
        """Let go of the connection."""
        await self._executor.aclose()

    def after_fork(self) -> HandingOver:
        """The same, with connections of its own."""
        self._executor.after_fork()
        return self


def leave_to_workers(given: Mapping[str, object], monitor: type) -> None:
    """Refuse settings of a monitor that are the workers' when runs are handed over.

    Args:
        given: The arguments by name.
        monitor: Whose signature has their defaults.

    Raises:
        ConfigurationError: Some are given, or a metric is given as more than its name.
    """
    defaults = signature(monitor).parameters
    if wrong := [name for name in _THE_WORKERS if given[name] != defaults[name].default]:
        raise ConfigurationError(
            f"Monitor: {', '.join(wrong)} cannot be set here: with this executor runs are judged "
            "by workers elsewhere, whose settings they are (`ragaliq worker`, WorkerSettings)"
        )
    evaluators = given["evaluators"]
    if not isinstance(evaluators, list | tuple) or not all(isinstance(e, str) for e in evaluators):
        raise ConfigurationError(
            "Monitor: with this executor evaluators must be a list of names; thresholds and the "
            "like are settings of the workers"
        )
