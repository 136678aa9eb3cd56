"""Everything behind the request path in one process: counts, queue and worker."""

from __future__ import annotations

from dataclasses import replace

from ragaliq.live.inline import InlineMode
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
        inline: Has each run's caller wait for its result; None for a background monitor.
    """

    def __init__(
        self,
        scorer: LiveScorer,
        *,
        concurrency: int,
        max_queue: int,
        inline: InlineMode | None = None,
    ) -> None:
        self._scorer = scorer
        self.inline = inline
        self._concurrency, self._max_queue = concurrency, max_queue
        self.tally = Tally()
        self.worker = Worker(self._score, self._drop, concurrency=concurrency, max_queue=max_queue)

    def submit(self, submission: Submission) -> bool:
        """Queue a run whose start was counted; whether it was taken. The reason is counted.

        Raises:
            RuntimeError: The worker cannot be started; nothing is counted.
        """
        awaited = self.inline if submission.receipt is None else None
        if awaited is not None:
            awaited.expect(submission)
        refused = self.worker.submit(submission)
        if refused is not None:
            self.tally.end(refused)
            submission.settle(refused)
        elif awaited is not None and not self.worker.is_current_thread:
            awaited.wait(submission)
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
        return Engine(
            self._scorer,
            concurrency=self._concurrency,
            max_queue=self._max_queue,
            inline=None if self.inline is None else self.inline.after_fork(),
        )

    async def score_here(self, submission: Submission) -> None:
        """Score a run at once, on the worker's own loop: queued it might wait for its caller."""
        await self._score(submission)

    async def aclose(self) -> None:
        """Release the judge, and the process it works in; the last thing the worker does."""
        await self._scorer.cases.aclose()

    async def _score(self, submission: Submission) -> None:
        try:
            await self._scorer.score(submission, self.tally)
        finally:
            # Nothing to whoever has been given the result.
            submission.settle("incomplete_run")

    def _drop(self, submission: Submission) -> None:
        self.tally.end("shutdown")
        submission.settle("shutdown")
