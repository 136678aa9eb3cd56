"""Runs that are judged elsewhere: enqueued there in place of judged here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from inspect import signature
from itertools import count

from ragaliq.core.complaints import Complaints
from ragaliq.core.concurrency import pause_before_retry
from ragaliq.core.run import RunInfo
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import ConfigurationError, JobRefusedError
from ragaliq.evaluators.evaluator import Evaluator
from ragaliq.live.stats import Tally
from ragaliq.records.sinks import SinkSet
from ragaliq.telemetry import names
from ragaliq.telemetry.emit import Emitter
from ragaliq.worker.executor import BrokerExecutor, JobExecutor
from ragaliq.worker.message import JobMessage

_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 10.0
_THE_WORKERS = (
    "judge calibration policy concurrency deadline niceness mode inline_timeout budget "
    "judge_limits breaker on_result sinks capture_content redact "
    "redact_for_judge"
).split()


class Enqueueing:
    """What stands in the scorer's place where runs are judged elsewhere.

    Args:
        target: Takes the jobs.
        metrics: What the monitor measures; none for what the workers measure.
        emitter: Counts failed attempts.

    Attributes:
        executor: Where runs go.
        metrics, emitter: See above.
        judge, protection, sinks: Nothing: those are the workers'.
    """

    restarts = 0
    judge = protection = None

    def __init__(self, target: JobExecutor, metrics: Sequence[Evaluator], emitter: Emitter) -> None:
        self.executor = target.name
        self.metrics, self.emitter, self.sinks = tuple(metrics), emitter, SinkSet(())
        self._target = target
        self._complaints = Complaints(logging.getLogger(__name__))

    async def publish(self, case: RAGTestCase, run: RunInfo, tally: Tally) -> None:
        """Enqueue a run. While nothing is taken it is held and tried again, ever less often.

        The queue behind it fills meanwhile, and further runs are dropped there and counted.

        Raises:
            JobRefusedError: It never can be.
        """
        chosen, largest = run.metric_probabilities, self._target.max_job_bytes
        known = [evaluator.name for evaluator in self.metrics]
        metrics = [each for each in known if each in chosen or not chosen]
        # Before time is spent on writing it as JSON. Characters take up to four bytes here.
        if largest is not None and case.size > 4 * largest:
            raise JobRefusedError("too_large")
        try:
            message = JobMessage.of(case, run, metrics)
            body = message.encoded()
        except ValueError:
            raise JobRefusedError("not_plain_data") from None
        if largest is not None and len(body) > largest:
            raise JobRefusedError("too_large")
        for failures in count(1):
            try:
                await self._target.publish(message.job_id, body)
            except Exception as error:  # noqa: BLE001 - client libraries have errors of every class
                self._complaints.add("jobs cannot be enqueued, waiting for the broker", error)
                tally.publish_errors += 1
                failure = {names.ERROR_TYPE: type(error).__name__}
                self.emitter.metrics.record(names.METRIC_PUBLISH_ERRORS, 1, failure)
            else:
                return
            pause = pause_before_retry(failures, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)
            await asyncio.sleep(pause)

    async def aclose(self) -> None:
        """Let go of the connection."""
        await self._target.aclose()

    def restart_after_fork(self) -> None:
        """In a forked child: connections of its own."""
        self._target.after_fork()


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
        from ragaliq.worker.runs_file import RunsFile

        return RunsFile(given)
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
    metrics = given["metrics"]
    names = () if metrics is None else metrics
    if not isinstance(names, list | tuple) or not all(isinstance(each, str) for each in names):
        raise ConfigurationError(
            "Monitor: with this executor metrics must be a list of names; thresholds and the "
            "like are settings of the workers"
        )
