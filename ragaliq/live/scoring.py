"""What the worker does with one run: have it judged, and count what became of it."""

from __future__ import annotations

import logging
import time

from ragaliq.core.concurrency import is_being_cancelled
from ragaliq.core.results import Evaluation, Status
from ragaliq.errors import BudgetExceeded, CircuitOpenError
from ragaliq.live.complaints import Complaints
from ragaliq.live.job import Submission
from ragaliq.live.stats import Outcome, Tally
from ragaliq.scoring.scorer import Scorer

__all__ = ["LiveScorer"]

logger = logging.getLogger(__name__)


class LiveScorer:
    """Scores runs one at a time; may be called for several at once.

    Args:
        scorer: Judges, emits and stores.
    """

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer
        self._complaints = Complaints(logger)

    async def score(
        self, submission: Submission, tally: Tally, *, returns_unjudged: bool = False
    ) -> Evaluation | None:
        """Judge a run and count what became of it; does not raise.

        Args:
            submission: The run.
            tally: Where it is counted.
            returns_unjudged: Whether a run that was kept from the judge is returned as well.

        Returns:
            What to tell the application, if anything.
        """
        try:
            run = submission.run()
            lag = max(0.0, time.time() - run.ended_at)
            try:
                evaluation = await self.scorer.score(submission.case, run, lag=lag)
            except BudgetExceeded:
                tally.end("over_budget")
                submission.settle("over_budget")
                return None
            except CircuitOpenError:
                # There may be thousands of these a second: they make no spans or events.
                results = self.scorer.unjudged(run.metric_probabilities)
                case = submission.built() if returns_unjudged else None
                tally.evaluated(results, "evaluated", unjudged=True)
                self.scorer.emitter.unjudged(run.pipeline, results)
                if case is None:
                    return None
                return Evaluation(case=case, results=results, run=run, lag=lag)
        except BaseException as error:
            if is_being_cancelled():
                tally.end("shutdown")
                submission.settle("shutdown")
                raise
            # A judge may even raise SystemExit, which would end the worker's loop.
            self._complaints.add("a run could not be evaluated", error)
            tally.end("incomplete_run", "internal_error")
            return None
        no_context = evaluation.case.sources.no_context
        tally.evaluated(evaluation.results, _outcome(evaluation), no_context=no_context)
        return evaluation

    @property
    def executor(self) -> str:
        """Where cases are evaluated now."""
        return self.scorer.executor

    @property
    def restarts(self) -> int:
        """How often the process that judges had to be started again."""
        return self.scorer.restarts

    async def aclose(self) -> None:
        """Release the judge, and the process it works in."""
        await self.scorer.aclose()

    def after_fork(self) -> LiveScorer:
        """In a forked child: the same, with processes, limits and sinks of its own."""
        self.scorer.restart_after_fork()
        return self


def _outcome(result: Evaluation) -> Outcome:
    statuses = {metric.status for metric in result.results.values()}
    return "no_context" if statuses == {Status.NO_CONTEXT} else "evaluated"
