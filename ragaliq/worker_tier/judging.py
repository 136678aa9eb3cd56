"""One job from the judge to the store: judged, tried again, emitted, and stored for certain."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Literal
from weakref import WeakValueDictionary

from ragaliq.core.backoff import pause_before_retry
from ragaliq.core.evaluator import judge_name
from ragaliq.core.results import Evaluation, EvaluationResult
from ragaliq.errors import RagaliqError
from ragaliq.evaluators.registry import resolve_evaluators
from ragaliq.execution import ThreadScorer
from ragaliq.live.job import Job
from ragaliq.live.limits.protection import Protection
from ragaliq.live.scoring import LiveScorer
from ragaliq.live.settings import chosen_judge, read_settings
from ragaliq.records.record import evaluation_id
from ragaliq.records.sinks import SinkSet
from ragaliq.telemetry.content import ContentPolicy
from ragaliq.telemetry.emit import Emitter
from ragaliq.worker_tier.settings import WorkerSettings

__all__ = ["JobJudge", "JobOutcome", "NotDoneError"]

JobOutcome = Literal["evaluated", "already_recorded", "over_budget"]

_LONGEST_PAUSE = 60.0


class NotDoneError(RagaliqError):
    """A job was not done, and trying it again at once would not help.

    Args:
        reason: A word for counting: `judge_unavailable` or `unrecorded`.
        may_pass: Whether it may be tried again later; it was not judged, and cost nothing.
    """

    def __init__(self, reason: str, *, may_pass: bool = False) -> None:
        super().__init__(f"the job was not done: {reason}")
        self.reason, self.may_pass = reason, may_pass


class _FailedForNowError(Exception):
    """Every metric failed, nothing was emitted or stored, and it may pass."""


class _LeftAloneError(Exception):
    """The breaker is open: the judge was not asked."""


class JobJudge:
    """Judges jobs, several at once, on one event loop.

    Args:
        settings: What the worker does.

    Attributes:
        metrics: What can be measured.
        emitter: Where telemetry goes.

    Raises:
        ConfigurationError: The judge cannot be built, or suits a metric not.
    """

    def __init__(self, settings: WorkerSettings) -> None:
        self._attempts, self._backoff = settings.attempts, settings.backoff
        self._patience = settings.time_limit / 2  # for the breaker to close
        # A lock is gone when nobody holds it or waits for it.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._judge = chosen_judge(read_settings(), settings.judge, settings.calibration)
        self._evaluators = {
            each.name: each.with_default_policy(settings.policy)
            for each in resolve_evaluators(settings.evaluators)
        }
        for evaluator in self._evaluators.values():
            evaluator.require(self._judge)
        self.metrics = frozenset(self._evaluators)
        content = ContentPolicy.resolve(
            capture_content=settings.capture_content, redact=settings.redact
        )
        self.emitter = Emitter(content, settings.telemetry)
        self._sinks = SinkSet(
            settings.sinks, content=content, on_error=self.emitter.metrics.sink_failed
        )
        self._scorer = LiveScorer(
            list(self._evaluators.values()),
            ThreadScorer(self._judge),
            judge=self._judge,
            emitter=self.emitter,
            sinks=self._sinks,
            deadline=settings.deadline,
        )
        self._protection = Protection(
            budget=settings.budget,
            judge_limits=settings.judge_limits,
            breaker=settings.breaker,
            on_storage_error=self.emitter.metrics.limits_storage_failed,
            on_budget=self.emitter.metrics.budget_left,
        )

    async def is_recorded(self, job: Job, metrics: Iterable[str]) -> bool:
        """Whether a store has the job's record, so that it was judged and paid for already."""
        return await self._sinks.holds(self._record_id(job, set(metrics)))

    def _record_id(self, job: Job, chosen: set[str]) -> str:
        # In the evaluators' order, in which the results will be.
        name, model = judge_name(self._judge), getattr(self._judge, "model", None)
        model = model if isinstance(model, str) else None
        scorers = [(each, name, model) for each in self._evaluators if each in chosen]
        return evaluation_id(job.run, scorers)

    async def judge(self, job: Job, metrics: Iterable[str]) -> JobOutcome:
        """Judge a job and store what comes out; returns when it is stored for certain.

        Raises:
            NotDoneError: It was not judged, or no sink stored it.
        """
        chosen = set(metrics)
        record_id = self._record_id(job, chosen)
        # Of two deliveries of one job at the same time, the second one waits for the record.
        async with self._turns.setdefault(record_id, asyncio.Lock()):
            if await self._sinks.holds(record_id):
                return "already_recorded"
            return await self._judge_until_done(job, chosen)

    async def _judge_until_done(self, job: Job, chosen: set[str]) -> JobOutcome:
        # A job keeps its place while it waits: while the judge is down, the others stay with the
        # broker, and are not loaded into this process one after the other.
        attempt, waits, until = 1, 0, time.monotonic() + self._patience
        while True:
            try:
                return await self._attempt(job, chosen, is_last=attempt == self._attempts)
            except _FailedForNowError:
                self.emitter.metrics.job("retried")
                await asyncio.sleep(self._pause(attempt))
                attempt += 1
            except _LeftAloneError:
                left = until - time.monotonic()
                if left <= 0:
                    raise NotDoneError("judge_unavailable", may_pass=True) from None
                waits += 1
                await asyncio.sleep(min(left, self._pause(waits)))

    async def _attempt(self, job: Job, chosen: set[str], *, is_last: bool) -> JobOutcome:
        def accept(results: Mapping[str, EvaluationResult]) -> None:
            if not is_last and _all_failed(results):
                raise _FailedForNowError

        async with self._protection.judging(job.case) as judging:
            if judging == "over_budget":
                return "over_budget"
            if judging == "circuit_open":
                raise _LeftAloneError
            result = await self._scorer.evaluate(job, judging, metrics=chosen, accept=accept)
        await self._store(result)
        return "evaluated"

    async def _store(self, result: Evaluation) -> None:
        waiting = self._sinks.store(result)
        outcomes = await asyncio.gather(*map(asyncio.wrap_future, waiting))
        if outcomes and "written" not in outcomes:
            raise NotDoneError("unrecorded")

    def _pause(self, attempt: int) -> float:
        return pause_before_retry(attempt, first=self._backoff, longest=_LONGEST_PAUSE)

    def close(self, timeout: float) -> None:
        """Store what is pending and let go of the sinks."""
        self._sinks.close(timeout)

    async def aclose(self) -> None:
        """Release the judge, and the storage of limits that workers share."""
        await self._protection.aclose()
        await self._scorer.aclose()


def _all_failed(results: Mapping[str, EvaluationResult]) -> bool:
    return bool(results) and all(result.status.is_unanswered for result in results.values())
