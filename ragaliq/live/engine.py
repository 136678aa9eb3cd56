"""What is behind the request path in one process: queue, worker, judging, `on_result`, counts."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from ragaliq.core.checks import require_positive
from ragaliq.core.concurrency import is_being_cancelled
from ragaliq.core.results import Evaluation, Status
from ragaliq.core.suppression import suppress
from ragaliq.core.sync import LoopThread, WorkThread
from ragaliq.errors import BudgetExceeded, CircuitOpenError, ConfigurationError
from ragaliq.live.complaints import Complaints
from ragaliq.live.enqueueing import Enqueueing
from ragaliq.live.lifecycle import Sweeps
from ragaliq.live.run import InlineMode, Submission
from ragaliq.live.stats import MonitorStats, Tally
from ragaliq.live.worker import Refusal, RunQueue, Worker
from ragaliq.scoring.scorer import Scorer

__all__ = ["Engine", "EngineSettings", "ResultCallback"]

logger = logging.getLogger(__name__)

ResultCallback = Callable[[Evaluation], object | Awaitable[object]]


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """What an engine is made from, once in every process.

    Attributes:
        scorer: Judges runs, or enqueues them for workers elsewhere.
        concurrency: Runs evaluated at the same time.
        max_queue: Runs that may wait.
        max_queue_bytes: Bytes their texts may take.
        on_result: Called with each result.
        on_result_timeout: Seconds such a call may take.
        inline: Has each run's caller wait for its result; None for a background monitor.

    Raises:
        ConfigurationError: A limit is not positive, or something is of the wrong kind.
    """

    scorer: Scorer | Enqueueing
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
    """Takes finished runs and has them judged; made again in a forked child.

    Args:
        settings: See there.
    """

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._scorer = settings.scorer
        self.inline = settings.inline
        self._complaints = Complaints(logger)
        self._reporter = (
            _Reporter(settings.on_result, timeout=settings.on_result_timeout)
            if settings.on_result is not None
            else None
        )
        self.tally = Tally()
        self.worker = Worker(
            self._work,
            self._drop,
            concurrency=1 if self.enqueues else settings.concurrency,
            queue=RunQueue(max_runs=settings.max_queue, max_bytes=settings.max_queue_bytes),
            is_callback_thread=self._reporter.is_own_thread if self._reporter else lambda: False,
        )
        self.sweeps = Sweeps(self.worker.call_later)

    def submit(self, submission: Submission) -> bool:
        """Queue a run whose start was counted; whether it was taken. The reason is counted.

        Raises:
            RuntimeError: The worker cannot be started; nothing is counted.
        """
        if self.inline is not None and submission.receipt is None:
            self.inline.expect(submission)
        refused = self.worker.submit(submission)
        if refused is not None:
            submission.end(refused)
        return refused is None

    def score_now(self, submission: Submission) -> None:
        """Judge a run past the queue, where it might wait for its caller; not for `on_result`.

        Raises:
            RuntimeError: The worker cannot be started.
        """
        self.worker.run(self._judge(submission))

    @property
    def enqueues(self) -> bool:
        """Whether runs are judged by workers elsewhere, so that no result comes back here."""
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
        limits = self._scorer.protection if isinstance(self._scorer, Scorer) else None
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
        self.worker.stop(self._scorer.aclose, timeout=1.0 if finished else 0.25)
        if self._reporter is not None:
            self._reporter.stop()
        return finished

    def after_fork(self) -> Engine:
        """A new engine for a forked child: the parent's queue, thread and counts stay its own."""
        was_closed = self.worker.is_closed
        self.worker.abandon()
        self.tally.abandon()
        self._scorer.restart_after_fork()
        inline = None if self.inline is None else self.inline.after_fork()
        child = Engine(replace(self._settings, inline=inline))
        if was_closed:
            child.worker.abandon()
        return child

    # --- on the worker's thread ---------------------------------------------------------------

    async def _work(self, submission: Submission) -> None:
        evaluation = await self._judge(submission)
        if evaluation is not None and self._reporter is not None:
            await self._reporter.report(evaluation, self.tally)

    async def _judge(self, submission: Submission) -> Evaluation | None:
        """Have a run judged and count what became of it; returns what the application is told."""
        if self._reporter is not None:
            self._reporter.prepare()
        try:
            if not isinstance(self._scorer, Scorer):
                await self._scorer.score(submission, self.tally)
                return None
            evaluation = await self._score(submission, self._scorer)
        except BaseException as error:
            if is_being_cancelled():
                submission.end("shutdown")
                raise
            # A judge may even raise SystemExit, which would end the worker's loop.
            self._complaints.add("a run could not be evaluated", error)
            submission.end("incomplete_run", "internal_error")
            return None
        if evaluation is not None:
            submission.settle(evaluation)
        return evaluation

    async def _score(self, submission: Submission, scorer: Scorer) -> Evaluation | None:
        run = submission.run()
        lag = max(0.0, time.time() - run.ended_at)
        try:
            evaluation = await scorer.score(submission.case, run, lag=lag)
        except BudgetExceeded:
            submission.end("over_budget")
            return None
        except CircuitOpenError:
            # There may be thousands of these a second: they make no spans or events.
            is_awaited = self._reporter is not None or submission.receipt is not None
            case = submission.built() if is_awaited else None
            results = scorer.unjudged(run.metric_probabilities)
            self.tally.evaluated(submission.entry, results, "evaluated", unjudged=True)
            scorer.emitter.unjudged(run.pipeline, results)
            if case is None:
                return None
            return Evaluation(case=case, results=results, run=run, lag=lag)
        statuses = {result.status for result in evaluation.results.values()}
        self.tally.evaluated(
            submission.entry,
            evaluation.results,
            "no_context" if statuses == {Status.NO_CONTEXT} else "evaluated",
            no_context=evaluation.case.sources.no_context,
        )
        return evaluation

    def _drop(self, submission: Submission, reason: Refusal) -> None:
        submission.end(reason)


class _Reporter:
    """Calls the user's function with each result.

    A function that blocks cannot be stopped. On a thread of its own, where no event loop runs, it
    blocks nothing but later calls, and those are given up, and counted, until it returns. What a
    coroutine function awaits runs on a loop of its own.

    Args:
        on_result: The user's function; may be a coroutine function.
        timeout: Seconds a call may take.
    """

    def __init__(self, on_result: ResultCallback, *, timeout: float) -> None:
        self._on_result = on_result
        self._timeout = timeout
        self._calls = WorkThread("ragaliq-on-result")
        self._coroutines = LoopThread("ragaliq-on-result-loop")
        self._blocked_since: float | None = None
        self._complaints = Complaints(logger)

    def prepare(self) -> None:
        """Start the thread while threads can still be started."""
        with contextlib.suppress(RuntimeError):  # counted once there is something to report
            self._calls.start()

    def is_own_thread(self) -> bool:
        """Whether the caller is the user's function."""
        return threading.get_ident() in (self._calls.ident, self._coroutines.ident)

    async def report(self, result: Evaluation, tally: Tally) -> None:
        """Call the function and wait for its end; counts what goes wrong."""
        since = self._blocked_since
        if since is not None and time.monotonic() - since > self._timeout:
            tally.callback_timed_out()
            return
        limit = None
        try:
            async with asyncio.timeout(self._timeout) as limit:
                # Given up while another call blocks the thread, this one is never made.
                outcome = await self._calls.run(self._call, result)
                if inspect.isawaitable(outcome):
                    loop = self._coroutines.loop()
                    finishing = asyncio.run_coroutine_threadsafe(_finish(outcome), loop)
                    await asyncio.wrap_future(finishing)
        except BaseException as error:
            if is_being_cancelled():
                raise
            if limit is not None and limit.expired():
                tally.callback_timed_out()
                self._complaints.add(f"on_result took longer than {self._timeout:g} s", error)
            else:
                tally.callback_failed()
                self._complaints.add("on_result raised", error)

    def stop(self) -> None:
        """End the threads; a function that blocks one is left behind."""
        self._coroutines.stop(_nothing, timeout=0.25)
        self._calls.stop(timeout=0.25)

    def _call(self, result: Evaluation) -> object:
        self._blocked_since = time.monotonic()
        try:
            with suppress():
                return self._on_result(result)
        finally:
            self._blocked_since = None


async def _finish(outcome: Awaitable[object]) -> None:
    with suppress():
        await outcome


async def _nothing() -> None:
    """The last piece of work of a thread that has none."""
