"""Handles of runs: begun, finished, evaluated; and the result that a caller waits for."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, Protocol

from ragaliq._private import is_loop_running
from ragaliq.capture import RunLog
from ragaliq.core.interrupts import is_from_signal
from ragaliq.core.log_once import LogOnce
from ragaliq.core.results import Evaluation
from ragaliq.core.run import RunInfo, SpanTarget
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import BudgetExceeded, EvaluationTimeout, NotEvaluated, RagaliqError
from ragaliq.live.sampling import SamplingDraw, SamplingResult
from ragaliq.live.stats import RunCounters
from ragaliq.telemetry.emit import Emitter
from ragaliq.telemetry.names import Outcome
from ragaliq.telemetry.providers import service_version

logger = logging.getLogger(__name__)

_LOG_ONCE = LogOnce(logger)

Framework = Literal["", "langchain", "llama_index"]
Answered = RAGTestCase | RunLog
"""A question with its answer: as a case, or as the log that the worker builds the case from."""

# The plain class first: `isinstance` of a pydantic class takes longer than the rest of `submit`.
_ANSWERED = (RunLog, RAGTestCase)
# Results that inline mode caches.
_KEPT = 1000
_KEPT_BYTES = 64 * 2**20


class SettlesRuns(Protocol):
    """A sampler, as a run sees it."""

    def settle(self, run: RunHandle) -> SamplingResult | None:
        """Decide about a finished run."""


class Monitoring(Protocol):
    """A monitor, as its runs see it."""

    counters: RunCounters
    emitter: Emitter
    inline: InlineMode | None
    concurrency: int
    max_queue: int
    max_queue_bytes: int

    @property
    def sampler(self) -> SettlesRuns:
        """Decides about finished runs."""

    @property
    def is_own_thread(self) -> bool:
        """True if called on a thread that evaluates or reports."""

    def enqueue(self, run: RunHandle, result: SamplingResult) -> bool:
        """Queue a submitted run."""

    async def judge_run(self, run: RunHandle) -> None:
        """Evaluate a run."""


@dataclass(eq=False, repr=False, slots=True, weakref_slot=True)
class RunHandle:
    """Handle of one run of the application, from its start to its outcome.

    An adapter ends the run with `submit` or `discard`; only the first such call counts. A run whose
    handle is garbage-collected before that, because its handler was made for one request or
    `submit` was interrupted, is counted `abandoned`.

    Attributes:
        monitor: The monitor that counts the run.
        run_id: The run's id as text.
        draw: The run's sampling number.
        pipeline: The name that it was begun under.
        framework: The framework that ran it.
        awaited: The result that a caller waits for; None if nobody waits.
        counters: The counters of the process that began it: a forked child does not count its
            parent's runs.
        is_pending: Whether it was counted and has no outcome yet.
        release: The application's release; empty for this process' own.
        answered, target, size, sampling, priority: Of a submitted run: its case, or the log that it
            is built from; its span, the bytes of its texts, why it is evaluated, and its place in
            the queue.
        is_done: Whether the worker will not touch it any more.
    """

    monitor: Monitoring
    run_id: str
    draw: SamplingDraw
    _: KW_ONLY
    pipeline: str = ""
    framework: Framework = ""
    awaited: PendingResult | None = None
    counters: RunCounters = field(init=False)
    is_pending: bool = field(init=False, default=False)
    is_done: bool = field(init=False, default=False)
    release: str = field(init=False, default="")
    answered: Answered = field(init=False)
    target: SpanTarget | None = field(init=False)
    session_id: str | None = field(init=False)
    response_id: str | None = field(init=False)
    model: str | None = field(init=False)
    ended_at: float = field(init=False)
    size: int = field(init=False)
    sampling: SamplingResult = field(init=False)
    priority: int = field(init=False)
    # A lock whose only acquisition is the end: atomic, and cheaper than a guarded flag.
    _ended: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.counters = self.monitor.counters
        self.counters.begin(self)

    def __del__(self) -> None:
        # A run that a forked child drops goes on in its parent, one of whose threads may have held
        # the lock at the fork.
        try:
            if self.is_pending and self.counters.process == os.getpid():
                self.counters.end(self, "incomplete_run", "abandoned")
        except Exception:  # noqa: BLE001, S110 - the interpreter may be half gone
            pass

    def submit(
        self,
        case: Answered,
        *,
        target: SpanTarget | None = None,
        session_id: str | None = None,
        response_id: str | None = None,
        model: str | None = None,
        ended_at: float | None = None,
        release: str = "",
    ) -> bool:
        """Offer the finished run for evaluation; never raises.

        Blocks only if the monitor is `inline`. A faulty log is found later, by the worker, and
        counted `internal_error`.

        Args:
            case: Question, context and answer, or the log of a run that holds them.
            target: The span to link to.
            session_id: The conversation, when the application names it.
            response_id: The model's id of the response, when known.
            model: Name of the application's model that answered, when known.
            ended_at: Unix time in seconds when the run ended, if not now.
            release: The application's release, if it ran in another process.

        Returns:
            Whether it was accepted. If not, the reason is counted, at once or, for a run held for
            feedback, later.
        """
        if not self._ended.acquire(blocking=False):
            return False
        try:
            is_answered = isinstance(case, _ANSWERED)
        except Exception:  # noqa: BLE001 - an object may raise for its __class__
            is_answered = False
        if not is_answered:
            kind = type(case).__name__
            _LOG_ONCE.message(
                kind,
                f"a run is not evaluated: submit takes a RAGTestCase or a RunLog, not {kind}; "
                "further ones are counted internal_error, not logged",
            )
            self.end("incomplete_run", "internal_error")
            return False
        monitor = self.monitor
        # Asked before the run is enqueued, which sets `awaited` in inline mode.
        inline = monitor.inline if self.awaited is None else None
        try:
            self.answered, self.size, self.target = case, case.size, target
            self.session_id, self.response_id, self.model = session_id, response_id, model
            self.ended_at = time.time() if ended_at is None else ended_at
            self.release = release
            result = self.draw.result or monitor.sampler.settle(self)
            is_queued = result is not None and monitor.enqueue(self, result)
        except Exception as error:
            logger.debug("a run could not be enqueued: %s", type(error).__name__)
            if is_from_signal(error):
                self.end("incomplete_run", "interrupted")
                raise
            self.end("incomplete_run", "internal_error")
            return False
        if is_queued and inline is not None and not monitor.is_own_thread:
            # Outside: an exception that interrupts the waiting, such as a time limit, is the
            # application's.
            inline.wait(self)
        return is_queued

    def withdraw(self) -> None:
        """Undo the begin of the run: a guard has scored its answer already."""
        if self._ended.acquire(blocking=False):
            self.counters.withdraw(self)

    def discard(self, reason: str) -> None:
        """End a run that cannot be evaluated, counted as `incomplete_run` under `reason`.

        `not_rag` is counted separately: a single model call or search is not incomplete.
        """
        if not self._ended.acquire(blocking=False):
            return
        # Counted under a text that is small and can be compared.
        reason = reason[:100] if isinstance(reason, str) else "internal_error"
        if reason == "not_rag":
            self.counters.end(self, "not_rag")
        else:
            self.counters.end(self, "incomplete_run", reason)

    def end(self, outcome: Outcome, reason: str = "") -> None:
        """Count the run, and tell a waiting caller that there will be no result."""
        self.counters.end(self, outcome, reason)
        if self.awaited is not None:
            self.awaited.settle(outcome)

    def info(self) -> RunInfo:
        """Details of the run and its sampling, validated.

        Raises:
            pydantic.ValidationError: Something is of the wrong type; nothing is quoted.
        """
        return RunInfo(
            run_id=self.run_id,
            pipeline=self.pipeline,
            framework=self.framework,
            target=self.target,
            sampling_probability=self.sampling.probability,
            sampling_reason=self.sampling.reason,
            sampling_rules=self.sampling.rules,
            metric_probabilities=dict(self.sampling.metrics),
            represents_traffic=self.sampling.represents_traffic,
            session_id=self.session_id,
            response_id=self.response_id,
            model=self.model,
            ended_at=self.ended_at,
            release=self.release or service_version(self.monitor.emitter.options),
        )


class PendingResult:
    """Future of one run's result, for any thread and any event loop.

    A caller that stops waiting does not cancel the run.

    Attributes:
        stored: With a result: a future of its outcome in each sink, as `SinkSet.record` returns.
    """

    __slots__ = ("_future", "stored")

    def __init__(self) -> None:
        # Either the result or the reason why there is none.
        self._future: concurrent.futures.Future[Evaluation | str] = concurrent.futures.Future()
        # A running future cannot be cancelled: a caller that stops waiting leaves the others alone.
        self._future.set_running_or_notify_cancel()
        self.stored: Sequence[concurrent.futures.Future[str]] = ()

    def settle(
        self, outcome: Evaluation | str, stored: Sequence[concurrent.futures.Future[str]] = ()
    ) -> None:
        """Set the result, or the reason why there is none; only the first call counts."""
        if not self._future.done():
            self.stored = stored
        with contextlib.suppress(concurrent.futures.InvalidStateError):
            self._future.set_result(outcome)

    def then(self, callback: Callable[[Evaluation | str], object]) -> None:
        """Call `callback` with the result or the reason once it is set, on any thread."""
        self._future.add_done_callback(lambda future: callback(future.result()))

    @property
    def result(self) -> Evaluation | None:
        """The result; None before it is set, or if there is none."""
        outcome = self._future.result() if self._future.done() else None
        return None if isinstance(outcome, str) else outcome

    def wait(self, timeout: float) -> Evaluation:
        """Wait for the result, blocking this thread.

        Raises:
            EvaluationTimeout: It is not there within `timeout` seconds.
            NotEvaluated: There will be none.
            BudgetExceeded: A budget left no room for it.
        """
        if not concurrent.futures.wait([self._future], timeout).done:
            raise EvaluationTimeout("timeout")
        return _result(self._future.result())

    async def await_result(self, timeout: float) -> Evaluation:  # noqa: ASYNC109 - as in wait
        """`wait` without blocking the event loop."""
        waiting = asyncio.wrap_future(self._future)
        if not (await asyncio.wait([waiting], timeout=timeout))[0]:
            waiting.cancel()
            raise EvaluationTimeout("timeout")
        return _result(waiting.result())


def _result(outcome: Evaluation | str) -> Evaluation:
    if outcome == "over_budget":
        raise BudgetExceeded("the run was not evaluated: over_budget")
    if isinstance(outcome, str):
        raise NotEvaluated(outcome)
    return outcome


class InlineMode:
    """Makes the caller that ends a run wait for its result, and caches results by run.

    Args:
        timeout: Seconds to wait; after that the answer goes out and the run is scored in the
            background.
    """

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        # Re-entrant: a stream that is dropped may end its run from the garbage collector.
        self._lock = threading.RLock()
        self._results: OrderedDict[str, tuple[PendingResult, int]] = OrderedDict()
        self._size = 0
        # Each task and thread has its own context, so a request finds its own latest run.
        self._latest: ContextVar[str | None] = ContextVar("ragaliq_latest_run", default=None)

    def began(self, run_id: str) -> None:
        """Remember the run as this context's latest; LangChain may end it in another context."""
        self._latest.set(run_id)

    def expect(self, run: RunHandle) -> None:
        """Cache the result of a run; the oldest ones are evicted by number and size."""
        run.awaited = awaited = PendingResult()
        with self._lock:
            _, before = self._results.pop(run.run_id, (None, 0))
            self._results[run.run_id] = awaited, run.size  # the result will hold the texts
            self._size += run.size - before
            while len(self._results) > _KEPT or (
                self._size > _KEPT_BYTES and len(self._results) > 1
            ):
                self._size -= self._results.popitem(last=False)[1][1]

    def wait(self, run: RunHandle) -> None:
        """Wait for a run's result, unless an event loop runs in this thread; does not raise.

        A loop must not be blocked: the judge may even need it. There the result is awaited with
        `Monitor.result`.
        """
        if run.awaited is None or is_loop_running():
            return
        with contextlib.suppress(RagaliqError):  # too late or none: counted
            run.awaited.wait(self.timeout)

    def find(self, run_id: str | None) -> PendingResult | None:
        """The awaited result of a run, by default of the latest one in this context."""
        run_id = self._latest.get() if run_id is None else run_id
        with self._lock:
            kept = None if run_id is None else self._results.get(run_id)
        return None if kept is None else kept[0]
