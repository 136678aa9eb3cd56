"""Runs that are judged elsewhere: enqueued there in place of judged here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from itertools import count

from ragaliq.core.concurrency import pause_before_retry
from ragaliq.errors import ConfigurationError
from ragaliq.live.complaints import Complaints
from ragaliq.live.run import Submission
from ragaliq.live.stats import Tally
from ragaliq.worker.executor import BrokerExecutor, JobExecutor, JobRefusedError
from ragaliq.worker.message import Job

__all__ = ["Enqueueing", "executor_at", "leave_to_workers"]

logger = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 10.0
_THE_WORKERS = (
    "judge calibration policy concurrency deadline niceness mode inline_timeout budget "
    "judge_limits breaker on_result sinks capture_content redact"
).split()


class Enqueueing:
    """What the monitor's thread does with a run that is judged elsewhere.

    While the executor takes nothing the run is held and tried again, ever less often; the queue
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

    async def score(self, submission: Submission, tally: Tally) -> None:
        """Enqueue a run and count what became of it; `Engine` counts what is raised."""
        job = submission.job()
        chosen = job.run.metric_probabilities
        metrics = [each for each in self._metrics if each in chosen or not chosen]
        try:
            await self._publish(job, metrics, tally)
        except JobRefusedError as error:
            self._complaints.add(f"a run cannot be enqueued ({error.reason})", error)
            submission.end("incomplete_run", error.reason)
        else:
            submission.end("enqueued")

    async def _publish(self, job: Job, metrics: Sequence[str], tally: Tally) -> None:
        for failures in count(1):
            try:
                await self._executor.publish(job, metrics)
            except JobRefusedError:
                raise
            except Exception as error:  # noqa: BLE001 - client libraries have errors of every class
                self._complaints.add("jobs cannot be enqueued, waiting for the broker", error)
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

    def restart_after_fork(self) -> None:
        """In a forked child: connections of its own."""
        self._executor.after_fork()


def executor_at(given: object) -> JobExecutor | None:
    """The executor that a monitor's `executor` names; None where the monitor judges itself.

    Raises:
        ConfigurationError: The address cannot be used.
    """
    if isinstance(given, JobExecutor):
        return given
    if not isinstance(given, str) or "://" not in given:
        return None
    if given.startswith("sqlite:"):
        from ragaliq.worker.runs_file import FileExecutor

        return FileExecutor(given)
    return BrokerExecutor(given)


def leave_to_workers(given: Mapping[str, object], monitor: type) -> None:
    """Refuse settings of a monitor that are the workers' when runs are judged elsewhere.

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
