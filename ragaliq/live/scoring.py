"""What the worker does with one run: judge it, emit it, count it, and tell the application."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar

from ragaliq.core.concurrency import is_being_cancelled
from ragaliq.core.evaluator import Evaluator
from ragaliq.core.guard import suppress
from ragaliq.core.results import Status
from ragaliq.core.run import EvaluatedRun
from ragaliq.execution import CaseScorer
from ragaliq.live.job import LiveResult, Submission
from ragaliq.live.stats import Outcome, Tally
from ragaliq.sinks.sink_set import SinkSet
from ragaliq.telemetry.emitter import Emitter

__all__ = ["LiveScorer", "ResultCallback"]

logger = logging.getLogger(__name__)

_REPORTING: ContextVar[bool] = ContextVar("ragaliq_reporting", default=False)

ResultCallback = Callable[[LiveResult], object | Awaitable[object]]


class LiveScorer:
    """Scores runs one at a time; may be called for several at once.

    Args:
        evaluators: What is measured.
        cases: What evaluates a case, here or elsewhere.
        emitter: Where telemetry goes.
        sinks: Where results go besides.
        deadline: Seconds each metric of a run may take.
        on_result: Called with each result; may be a coroutine function.
    """

    def __init__(
        self,
        evaluators: Sequence[Evaluator],
        cases: CaseScorer,
        *,
        emitter: Emitter,
        sinks: SinkSet,
        deadline: float,
        on_result: ResultCallback | None,
    ) -> None:
        self._evaluators = evaluators
        self.cases = cases
        self._emitter = emitter
        self._sinks = sinks
        self._deadline = deadline
        self._on_result = on_result
        self._complaints: set[tuple[str, type[BaseException]]] = set()

    async def score(self, submission: Submission, tally: Tally) -> None:
        """Judge a run, count what became of it and tell the application; does not raise."""
        try:
            result = await self._evaluate(submission)
        except BaseException as error:
            if is_being_cancelled():
                tally.end("shutdown")
                submission.settle("shutdown")
                raise
            # A judge may even raise SystemExit, which would end the worker's loop. The message may
            # quote the application's text: only the type is logged.
            self._complain("a run could not be evaluated", error)
            tally.end("incomplete_run", "internal_error")
            return
        tally.evaluated(result.results, _outcome(result))
        submission.settle(result)
        await self._report(result, tally)

    async def _evaluate(self, submission: Submission) -> LiveResult:
        job = submission.job()
        lag = max(0.0, time.time() - job.run.ended_at)
        with self._emitter.evaluation(job.run, lag=lag) as emission:
            results = await self.cases.score(
                job.case, self._chosen(job.run), deadline=self._deadline
            )
            emission.record(results)
        self._sinks.record(job.case, results, job.run, lag=lag)
        return LiveResult(case=job.case, results=results, run=job.run, lag=lag)

    def _chosen(self, run: EvaluatedRun) -> Sequence[Evaluator]:
        chosen = run.metric_probabilities
        if not chosen:
            return self._evaluators
        return [evaluator for evaluator in self._evaluators if evaluator.name in chosen]

    async def _report(self, result: LiveResult, tally: Tally) -> None:
        # A callback may itself have answers evaluated; of those it is not told, or it might go on
        # for ever.
        if self._on_result is None or _REPORTING.get():
            return
        token = _REPORTING.set(True)
        try:
            with suppress():
                outcome = self._on_result(result)
                if inspect.isawaitable(outcome):
                    await outcome
        except BaseException as error:
            if is_being_cancelled():
                raise
            tally.callback_failed()
            self._complain("on_result raised", error)
        finally:
            _REPORTING.reset(token)

    def _complain(self, what: str, error: BaseException) -> None:
        # Once for each kind: what fails for one run mostly fails for all, and is counted anyway.
        complaint = (what, type(error))
        if complaint not in self._complaints:
            self._complaints.add(complaint)
            logger.warning(
                "%s: %s; further ones are counted, not logged", what, type(error).__name__
            )


def _outcome(result: LiveResult) -> Outcome:
    statuses = {metric.status for metric in result.results.values()}
    return "no_context" if statuses == {Status.NO_CONTEXT} else "evaluated"
