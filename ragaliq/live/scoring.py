"""What the worker does with one run: judge it, emit it and count it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property

from ragaliq.core.concurrency import is_being_cancelled
from ragaliq.core.evaluator import Evaluator
from ragaliq.core.results import Evaluation, EvaluationResult, Status
from ragaliq.errors import CircuitOpenError
from ragaliq.execution import CaseScorer
from ragaliq.judges.base import LLMJudge
from ragaliq.live.agreement import AgreementWatch
from ragaliq.live.complaints import Complaints
from ragaliq.live.job import Job, Submission
from ragaliq.live.limits.protection import Judging, Protection
from ragaliq.live.stats import Outcome, Tally
from ragaliq.records.sinks import SinkSet
from ragaliq.telemetry.emit import Emitter

__all__ = ["LiveScorer"]

logger = logging.getLogger(__name__)


class LiveScorer:
    """Scores runs one at a time; may be called for several at once.

    Args:
        evaluators: What is measured.
        cases: What evaluates a case, here or elsewhere.
        judge: Who decides; named in the results of runs that are kept from it.
        emitter: Where telemetry goes.
        sinks: Where results go besides.
        deadline: Seconds each metric of a run may take.
    """

    def __init__(
        self,
        evaluators: Sequence[Evaluator],
        cases: CaseScorer,
        *,
        judge: LLMJudge,
        emitter: Emitter,
        sinks: SinkSet,
        deadline: float,
    ) -> None:
        self._evaluators = evaluators
        self.cases = cases
        self._judged_by = judge
        self._emitter = emitter
        self._sinks = sinks
        self._agreement = AgreementWatch(judge, emitter.metrics)
        self._deadline = deadline
        self._complaints = Complaints(logger)

    async def score(
        self,
        submission: Submission,
        tally: Tally,
        protection: Protection,
        *,
        returns_unjudged: bool = False,
    ) -> Evaluation | None:
        """Judge a run and count what became of it; does not raise.

        Args:
            submission: The run.
            tally: Where it is counted.
            protection: What stands between it and the judge.
            returns_unjudged: Whether a run that was kept from the judge is returned as well.

        Returns:
            What to tell the application, if anything.
        """
        try:
            async with protection.judging(submission) as judging:
                if judging == "over_budget":
                    tally.end("over_budget")
                    submission.settle("over_budget")
                    return None
                if judging == "circuit_open":
                    job = submission.job() if returns_unjudged else None
                    return self._leave_alone(submission, job, tally)
                result = await self._evaluate(submission, judging)
        except BaseException as error:
            if is_being_cancelled():
                tally.end("shutdown")
                submission.settle("shutdown")
                raise
            # A judge may even raise SystemExit, which would end the worker's loop.
            self._complaints.add("a run could not be evaluated", error)
            tally.end("incomplete_run", "internal_error")
            return None
        tally.evaluated(result.results, _outcome(result))
        return result

    async def _evaluate(self, submission: Submission, judging: Judging) -> Evaluation:
        job = submission.job()
        result = await self.evaluate(job, judging)
        self._sinks.record(result)
        return result

    async def evaluate(
        self,
        job: Job,
        judging: Judging,
        *,
        metrics: Collection[str] | None = None,
        accept: Callable[[Mapping[str, EvaluationResult]], None] = lambda _: None,
    ) -> Evaluation:
        """Judge a job and emit the results; stores nothing.

        Args:
            job: The run.
            judging: Told the results, for what the judge's limits make of them.
            metrics: What is measured; by default what the job's sampling chose.
            accept: Raises where the results are not to be emitted, which ends it there.
        """
        lag = _lag(job)
        with self._emitter.evaluation(job.run, lag=lag) as emission:
            judging.results = results = await self._judge(job, metrics)
            accept(results)
            emission.record(results)
        self._agreement.record()
        return Evaluation(case=job.case, results=results, run=job.run, lag=lag)

    @property
    def executor(self) -> str:
        """Where cases are evaluated now."""
        return self.cases.executor

    @property
    def restarts(self) -> int:
        """How often the process that judges had to be started again."""
        return self.cases.restarts

    async def aclose(self) -> None:
        """Release the judge, and the process it works in."""
        await self.cases.aclose()

    def after_fork(self) -> LiveScorer:
        """In a forked child: the scorer to go on with."""
        self.cases = self.cases.after_fork()
        return self

    async def _judge(
        self, job: Job, metrics: Collection[str] | None
    ) -> Mapping[str, EvaluationResult]:
        chosen = self._chosen(job.run.metric_probabilities if metrics is None else metrics)
        return await self.cases.score(job.case, chosen, deadline=self._deadline)

    def _chosen(self, metrics: Collection[str]) -> Sequence[Evaluator]:
        if not metrics:
            return self._evaluators
        return [evaluator for evaluator in self._evaluators if evaluator.name in metrics]

    def _leave_alone(
        self, submission: Submission, job: Job | None, tally: Tally
    ) -> Evaluation | None:
        # There may be thousands of these a second: they are counted, and make no spans or events.
        chosen = self._chosen(dict(submission.choice.metrics))
        results = {evaluator.name: self._unjudged[evaluator.name] for evaluator in chosen}
        tally.evaluated(results, "evaluated", unjudged=True)
        self._emitter.unjudged(submission.pipeline, results)
        if job is None:
            return None
        return Evaluation(case=job.case, results=results, run=job.run, lag=_lag(job))

    @cached_property
    def _unjudged(self) -> Mapping[str, EvaluationResult]:
        error = CircuitOpenError("the judge was not asked: it failed too often in a row")
        return {
            evaluator.name: evaluator.failure_result(error, self._judged_by)
            for evaluator in self._evaluators
        }


def _lag(job: Job) -> float:
    return max(0.0, time.time() - job.run.ended_at)


def _outcome(result: Evaluation) -> Outcome:
    statuses = {metric.status for metric in result.results.values()}
    return "no_context" if statuses == {Status.NO_CONTEXT} else "evaluated"
