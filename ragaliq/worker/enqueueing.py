"""Enqueueing of a monitor's runs for workers of a broker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from itertools import count

from ragaliq.core.concurrency import pause_before_retry
from ragaliq.core.log_once import LogOnce
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import ConfigurationError, JobRefusedError
from ragaliq.worker.executor import BrokerExecutor, JobExecutor
from ragaliq.worker.message import JobMessage

_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 10.0
_THE_WORKERS = (
    "judge calibration policy declines concurrency deadline niceness mode inline_timeout budget "
    "judge_limits breaker on_result sinks capture_content redact "
    "redact_for_judge"
).split()


class Enqueueing:
    """Enqueues a monitor's runs for workers.

    Args:
        executor: The executor that takes the jobs, or its address.

    Attributes:
        executor: Name of the executor.

    Raises:
        ConfigurationError: The address cannot be used.
    """

    def __init__(self, executor: JobExecutor | str) -> None:
        self._target = executor_at(executor)
        self.executor = self._target.name
        self._log_once = LogOnce(logging.getLogger(__name__))

    async def publish(
        self,
        case: RAGTestCase,
        metrics: Sequence[str],
        failed: Callable[[str], object],
    ) -> None:
        """Enqueue a run; while the broker is unavailable, retry with back-off.

        The monitor's queue fills meanwhile; further runs are dropped there and counted.

        Args:
            case: The case, with its run.
            metrics: Names of metrics; empty for those of the workers.
            failed: Called with the class of each failed attempt.

        Raises:
            JobRefusedError: The run can never be enqueued.
        """
        largest = self._target.max_job_bytes
        # Before it is serialised, which takes time. Characters take up to four bytes here.
        if largest is not None and case.size > 4 * largest:
            raise JobRefusedError("too_large")
        try:
            message = JobMessage.of(case, metrics)
            body = message.encoded()
        except ValueError:
            raise JobRefusedError("not_plain_data") from None
        if largest is not None and len(body) > largest:
            raise JobRefusedError("too_large")
        for failures in count(1):
            try:
                await self._target.publish(message.job_id, body)
            except Exception as error:  # noqa: BLE001 - client libraries have errors of every class
                self._log_once.failure("jobs cannot be enqueued, waiting for the broker", error)
                failed(type(error).__name__)
            else:
                return
            pause = pause_before_retry(failures, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)
            await asyncio.sleep(pause)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._target.aclose()

    def after_fork(self) -> None:
        """Drop the parent's connection in a forked child, without touching it."""
        self._target.after_fork()


def executor_at(given: JobExecutor | str) -> JobExecutor:
    """Executor from a monitor's `executor`, an object or an address.

    Raises:
        ConfigurationError: The address cannot be used.
    """
    if not isinstance(given, str):
        return given
    if given.startswith("sqlite:"):
        from ragaliq.worker.runs_file import RunsFile

        return RunsFile(given)
    return BrokerExecutor(given)


def leave_to_workers(given: Mapping[str, object], monitor: type) -> None:
    """Refuse settings of a monitor that belong to the workers.

    Args:
        given: The arguments by name.
        monitor: The class whose signature has their defaults.

    Raises:
        ConfigurationError: Some are set, or a metric is not given by name.
    """
    defaults = signature(monitor).parameters
    if wrong := [name for name in _THE_WORKERS if given[name] != defaults[name].default]:
        raise ConfigurationError(
            f"Monitor: {', '.join(wrong)} cannot be set here: with this executor runs are judged "
            "by workers elsewhere, whose settings they are (`ragaliq worker`, WorkerSettings)"
        )
    metrics = given["metrics"]
    names = () if metrics is None else metrics
    if not isinstance(names, list | tuple) or not all(isinstance(each, str) for each in names):
        raise ConfigurationError(
            "Monitor: with this executor metrics must be a list of names; thresholds and the "
            "like are settings of the workers"
        )
