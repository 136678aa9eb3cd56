"""Everything behind the request path in one process: counts, queue, worker and its limits."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ragaliq.core.checks import require_positive
from ragaliq.core.results import Evaluation
from ragaliq.errors import ConfigurationError
from ragaliq.live.enqueueing import Enqueueing
from ragaliq.live.inline import InlineMode
from ragaliq.live.job import Submission
from ragaliq.live.queue import RunQueue
from ragaliq.live.reporting import Reporter, ResultCallback
from ragaliq.live.scoring import LiveScorer
from ragaliq.live.stats import MonitorStats, Tally
from ragaliq.live.sweeps import Sweeps
from ragaliq.live.worker import Refusal, Worker

__all__ = ["Engine", "EngineSettings"]


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """What an engine is made from, in every process anew.

    Attributes:
        scorer: What is done with each run.
        concurrency: Runs evaluated at the same time.
        max_queue: Runs that may wait.
        max_queue_bytes: Bytes their texts may take.
        on_result: Called with each result.
        on_result_timeout: Seconds such a call may take.
        inline: Has each run's caller wait for its result; None for a background monitor.

    Raises:
        ConfigurationError: A limit is not positive, or something is of the wrong kind.
    """

    scorer: LiveScorer | Enqueueing
    concurrency: int
    max_queue: int
    max_queue_bytes: int
    on_result: ResultCallback | None
    on_result_timeout: float
    inline: InlineMode | None = None

    def __post_init__(self) -> None:
        require_positive(
            concurrency=self.concurrency,
            max_queue=self.max_queue,
            max_queue_bytes=self.max_queue_bytes,
            on_result_timeout=self.on_result_timeout,
        )
        if self.on_result is not None and not callable(self.on_result):
            raise ConfigurationError(
                f"Monitor: on_result must be a function, got {type(self.on_result).__name__}"
            )


class Engine:
    """Takes finished runs and has them scored; made anew in a forked child.

    Args:
        settings: See there.
    """

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._scorer = settings.scorer
        self.inline = settings.inline
        self._reporter = (
            Reporter(settings.on_result, timeout=settings.on_result_timeout)
            if settings.on_result is not None
            else None
        )
        self.tally = Tally()
        self.worker = Worker(
            self._score,
            self._drop,
            concurrency=1 if self.enqueues else settings.concurrency,
            queue=RunQueue(max_runs=settings.max_queue, max_bytes=settings.max_queue_bytes),
            is_callback_thread=self._reporter.is_own_thread if self._reporter else lambda: False,
        )
        self.sweeps = Sweeps(self.worker.call_later)

    def submit(self, submission: Submission, *, is_late: bool = False) -> bool:
        """Queue a run whose start was counted; whether it was taken. The reason is counted.

        Args:
            submission: The run.
            is_late: Whether its answer went out long ago, so that nobody waits for its result.

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
        elif awaited is not None and not is_late and not self.worker.is_current_thread:
            awaited.wait(submission)
        return refused is None

    @property
    def enqueues(self) -> bool:
        """Whether runs are judged by somebody else, so that no result comes back here."""
        return isinstance(self._scorer, Enqueueing)

    def stats(self) -> MonitorStats:
        """The counts now, and where queue, breaker and budget stand."""
        stats = replace(
            self.tally.snapshot(),
            executor=self._scorer.executor,
            restarts=self._scorer.restarts,
            queued=self.worker.size,
            queued_bytes=self.worker.queued_bytes,
        )
        limits = self._scorer.scorer.protection if isinstance(self._scorer, LiveScorer) else None
        if limits is None:
            return stats
        return replace(
            stats,
            breaker=limits.breaker,
            budget=limits.budget(),
            limits_storage=limits.storage,
        )

    def close(self, timeout: float) -> bool:
        """Evaluate what is queued, at most for `timeout` seconds, then stop for good."""
        finished = self.worker.close(timeout)
        if self.worker.is_current_thread:
            return False  # what is queued is still to be evaluated; a later close ends the threads
        # A judge that still blocks the thread would only be waited for in vain.
        self.worker.stop(self.aclose, timeout=1.0 if finished else 0.25)
        if self._reporter is not None:
            self._reporter.stop()
        return finished

    def after_fork(self) -> Engine:
        """A new engine for a forked child: the parent's queue, thread and counts stay its own."""
        was_closed = self.worker.is_closed
        self.worker.abandon()
        self.tally.abandon()
        scorer = self._scorer.after_fork()
        inline = None if self.inline is None else self.inline.after_fork()
        child = Engine(replace(self._settings, scorer=scorer, inline=inline))
        if was_closed:
            child.worker.abandon()
        return child

    def score_now(self, submission: Submission) -> None:
        """Score a run past the queue, where it might wait for its caller; not told to `on_result`.

        Raises:
            RuntimeError: The worker cannot be started.
        """
        self.worker.run(self._judge(submission))

    async def aclose(self) -> None:
        """Release the judge, the process it works in, or the broker; the worker's last work."""
        await self._scorer.aclose()

    async def _score(self, submission: Submission) -> None:
        result = await self._judge(submission)
        if result is not None and self._reporter is not None:
            await self._reporter.report(result, self.tally)

    async def _judge(self, submission: Submission) -> Evaluation | None:
        if self._reporter is not None:
            self._reporter.prepare()
        is_awaited = self._reporter is not None or submission.receipt is not None
        try:
            result = await self._scorer.score(submission, self.tally, returns_unjudged=is_awaited)
            if result is not None:
                submission.settle(result)
            return result
        finally:
            # Nothing to whoever has been told already.
            submission.settle("incomplete_run")

    def _drop(self, submission: Submission, reason: Refusal) -> None:
        self.tally.end(reason)
        submission.settle(reason)
