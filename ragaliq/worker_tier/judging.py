"""One job from the judge to the store: judged, tried again, emitted, and stored for certain."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Literal
from weakref import WeakValueDictionary

from ragaliq.errors import BudgetExceeded, CircuitOpenError, RagaliqError, StoreError
from ragaliq.live.job import Job
from ragaliq.scoring.scorer import Limits, Scorer
from ragaliq.scoring.settings import chosen_judge, read_settings
from ragaliq.telemetry.content import ContentPolicy
from ragaliq.worker_tier.settings import WorkerSettings

__all__ = ["JobJudge", "JobOutcome", "NotDoneError"]

JobOutcome = Literal["evaluated", "already_recorded", "over_budget"]


class NotDoneError(RagaliqError):
    """A job was not done, and trying it again at once would not help.

    Args:
        reason: A word for counting: `judge_unavailable` or `unrecorded`.
        may_pass: Whether it may be tried again later; it was not judged, and cost nothing.
    """

    def __init__(self, reason: str, *, may_pass: bool = False) -> None:
        super().__init__(f"the job was not done: {reason}")
        self.reason, self.may_pass = reason, may_pass


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
        # A lock is gone when nobody holds it or waits for it.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._scorer = Scorer(
            chosen_judge(read_settings(), settings.judge, settings.calibration),
            settings.evaluators,
            policy=settings.policy,
            deadline=settings.deadline,
            limits=Limits(
                budget=settings.budget,
                judge_limits=settings.judge_limits,
                breaker=settings.breaker,
            ),
            telemetry=settings.telemetry,
            content=ContentPolicy.resolve(
                capture_content=settings.capture_content, redact=settings.redact
            ),
            sinks=settings.sinks,
            attempts=settings.attempts,
            backoff=settings.backoff,
            # A job keeps its place while it waits: while the judge is down, the others stay with
            # the broker, and are not loaded into this process one after the other.
            waits_for_judge=settings.time_limit / 2,
            waits_for_sinks=True,
        )
        self.metrics = frozenset(each.name for each in self._scorer.evaluators)
        self.emitter = self._scorer.emitter

    async def is_recorded(self, job: Job, metrics: Iterable[str]) -> bool:
        """Whether a store has the job's record, so that it was judged and paid for already."""
        return await self._scorer.is_recorded(job.run, set(metrics))

    async def judge(self, job: Job, metrics: Iterable[str]) -> JobOutcome:
        """Judge a job and store what comes out; returns when it is stored for certain.

        Raises:
            NotDoneError: It was not judged, or no sink stored it.
        """
        chosen = set(metrics)
        record_id = self._scorer.record_id(job.run, chosen)
        # Of two deliveries of one job at the same time, the second one waits for the record.
        async with self._turns.setdefault(record_id, asyncio.Lock()):
            if await self._scorer.is_recorded(job.run, chosen):
                return "already_recorded"
            lag = max(0.0, time.time() - job.run.ended_at)
            try:
                await self._scorer.score(job.case, job.run, metrics=chosen, lag=lag)
            except BudgetExceeded:
                return "over_budget"
            except CircuitOpenError:
                raise NotDoneError("judge_unavailable", may_pass=True) from None
            except StoreError:
                raise NotDoneError("unrecorded") from None
            return "evaluated"

    def close(self, timeout: float) -> None:
        """Store what is pending and let go of the sinks."""
        self._scorer.sinks.close(timeout)

    async def aclose(self) -> None:
        """Release the judge, and the storage of limits that workers share."""
        await self._scorer.aclose()
