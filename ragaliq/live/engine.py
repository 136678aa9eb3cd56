"""Everything behind the request path in one process: counts, queue and worker."""

from __future__ import annotations

from dataclasses import replace

from ragaliq.live.job import Submission
from ragaliq.live.scoring import LiveScorer
from ragaliq.live.stats import MonitorStats, Tally
from ragaliq.live.worker import Worker

__all__ = ["Engine"]


class Engine:
    """Takes finished runs and has them scored; made anew in a forked child.

    Args:
        scorer: What is done with each run.
        concurrency: Runs evaluated at the same time.
        max_queue: Runs that may wait.
    """

    def __init__(self, scorer: LiveScorer, *, concurrency: int, max_queue: int) -> None:
        self._scorer = scorer
        self._concurrency, self._max_queue = concurrency, max_queue
        self.tally = Tally()
        self.worker = Worker(self._score, self._drop, concurrency=concurrency, max_queue=max_queue)

    def submit(self, submission: Submission) -> bool:
        """Queue a run whose start was counted; whether it was taken. The reason is counted.

        Raises:
            RuntimeError: The worker cannot be started; nothing is counted.
        """
        refused = self.worker.submit(submission)
        if refused is not None:
            self.tally.end(refused)
        return refused is None

    def stats(self) -> MonitorStats:
        """The counts now."""
        cases = self._scorer.cases
        return replace(self.tally.snapshot(), executor=cases.executor, restarts=cases.restarts)

    def after_fork(self) -> Engine:
        """A new engine for a forked child: the parent's queue, thread and counts stay its own."""
        self.worker.abandon()
        self.tally.abandon()
        self._scorer.cases = self._scorer.cases.after_fork()
        return Engine(self._scorer, concurrency=self._concurrency, max_queue=self._max_queue)

    async def aclose(self) -> None:
        """Release the judge, and the process it works in; the last thing the worker does."""
        await self._scorer.cases.aclose()

    async def _score(self, submission: Submission) -> None:
        await self._scorer.score(submission, self.tally)

    def _drop(self, _: Submission) -> None:
        self.tally.end("shutdown")
