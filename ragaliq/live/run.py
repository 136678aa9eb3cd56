"""A run on its way: begun, finished, judged; and where somebody waits for its result."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import threading
import time
from collections import OrderedDict
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ragaliq._private import is_loop_running
from ragaliq.core.draft import CaseDraft
from ragaliq.core.results import Evaluation
from ragaliq.core.run import RunInfo, SpanTarget
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import BudgetExceeded, EvaluationTimeout, NotEvaluated, RagaliqError
from ragaliq.live.sampling.rules import Choice
from ragaliq.live.stats import Entry, Outcome
from ragaliq.worker.message import Job

if TYPE_CHECKING:
    from ragaliq.live.engine import Engine
    from ragaliq.live.sampling.sampler import SamplingDecision

__all__ = ["Framework", "InlineMode", "OpenRun", "Receipt", "Submission"]

logger = logging.getLogger(__name__)

Framework = Literal["", "langchain", "llama_index"]
_UNSAMPLED = Choice()
# The plain class first: asking a pydantic one takes longer than making the submission.
_CASES = (CaseDraft, RAGTestCase)
# Results that inline mode remembers.
_KEPT = 1000
_KEPT_BYTES = 64 * 2**20


class OpenRun:
    """What an adapter holds between a run's start and its end.

    End it with `submit` or `discard`; whatever comes after the first of them does nothing. One that
    is let go without either is counted `abandoned`.

    Attributes:
        run_id: The run's id as text.
    """

    __slots__ = ("_decision", "_ended", "_engine", "_entry", "_framework", "_pipeline", "run_id")

    def __init__(
        self,
        run_id: str,
        *,
        pipeline: str,
        framework: Framework,
        decision: SamplingDecision,
        engine: Engine,
    ) -> None:
        self._decision = decision
        self.run_id = run_id
        self._pipeline = pipeline
        self._framework: Framework = framework
        self._engine = engine
        # A lock whose only acquisition is the end: atomic, and cheaper than a guarded flag.
        self._ended = threading.Lock()
        self._entry = engine.tally.start()

    @property
    def pipeline(self) -> str:
        """The name that the run was begun under."""
        return self._pipeline

    def submit(
        self,
        case: RAGTestCase | CaseDraft,
        *,
        target: SpanTarget | None = None,
        session_id: str | None = None,
        response_id: str | None = None,
        ended_at: float | None = None,
    ) -> bool:
        """Offer the finished run for evaluation; never raises.

        Never blocks either, unless the monitor is `inline`.

        What is wrong with a draft comes out on the worker, counted as `internal_error`.

        Args:
            case: Question, context and answer.
            target: The span to link to.
            session_id: The conversation, when the application names it.
            response_id: The model's id of the response, when known.
            ended_at: Unix time in seconds when the run ended, if not now.

        Returns:
            Whether it was accepted. If not, the reason is counted, at once or, for a run held for
            feedback, later.
        """
        if not self._ended.acquire(blocking=False):
            return False
        engine = self._engine
        try:
            submission = Submission(
                case=case,
                run_id=self.run_id,
                pipeline=self._pipeline,
                framework=self._framework,
                entry=self._entry,
                target=target,
                session_id=session_id,
                response_id=response_id,
                ended_at=time.time() if ended_at is None else ended_at,
            )
            is_queued = self._decision.settle(submission, engine)
        except Exception as error:  # noqa: BLE001 - the application's request must not notice
            logger.debug("a run could not be enqueued: %s", type(error).__name__)
            self._entry.end("incomplete_run", "internal_error")
            return False
        if is_queued and engine.inline is not None and not engine.worker.is_current_thread:
            # Outside: what interrupts the waiting, such as a time limit, is the application's.
            engine.inline.wait(submission)
        return is_queued

    def withdraw(self) -> None:
        """Take the run back, as though it had never begun: its answer was scored by a guard."""
        if self._ended.acquire(blocking=False):
            self._entry.withdraw()

    def discard(self, reason: str) -> None:
        """End a run that cannot be evaluated, counted as `incomplete_run` under `reason`.

        `not_rag` is counted apart: a lone call of a model, or a lone search, lacks nothing.
        """
        if self._ended.acquire(blocking=False):
            if reason == "not_rag":
                self._entry.end("not_rag")
            else:
                self._entry.end("incomplete_run", reason)


@dataclass(slots=True, kw_only=True, eq=False)
class Submission:
    """A finished run on its way to the worker, which makes a job of it.

    Attributes:
        case: Question, context and answer.
        run_id: The framework's id of the run.
        pipeline: The application's name for the chain.
        framework: The framework that ran it.
        entry: Its place in the books.
        target: The span the evaluation will speak about.
        session_id: The conversation, when the application names it.
        response_id: The model's id of the response, when known.
        ended_at: Unix time in seconds.
        choice: Why the run is evaluated, and with which metrics.
        receipt: Where somebody waits for the result.
        priority: Higher ones are judged first, and keep their place in a full queue.
    """

    case: RAGTestCase | CaseDraft
    run_id: str
    pipeline: str
    framework: Framework
    entry: Entry
    target: SpanTarget | None
    session_id: str | None
    response_id: str | None
    ended_at: float
    choice: Choice = _UNSAMPLED
    receipt: Receipt | None = None
    priority: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.case, _CASES):
            raise TypeError(
                f"a case is a RAGTestCase or a CaseDraft, not {type(self.case).__name__}"
            )

    def settle(self, outcome: Evaluation | str) -> None:
        """Tell whoever waits what came of the run: its result, or why there is none."""
        if self.receipt is not None:
            self.receipt.settle(outcome)

    def end(self, outcome: Outcome, reason: str = "") -> None:
        """Count the run, and tell whoever waits that there will be no result."""
        self.entry.end(outcome, reason)
        self.settle(outcome)

    def chosen(self, choice: Choice) -> None:
        """Note why the run is evaluated; what a rule chose goes before what the rate chose."""
        self.choice = choice
        self.priority = int(choice.reason != "rate")

    @property
    def size(self) -> int:
        """Bytes its texts take while it waits."""
        return self.case.size

    def job(self) -> Job:
        """The job, checked.

        Raises:
            pydantic.ValidationError: Something is of the wrong type; nothing is quoted.
        """
        return Job(case=self.built(), run=self.run())

    def built(self) -> RAGTestCase:
        """The case, checked; raises as `job` does."""
        return self.case.build() if isinstance(self.case, CaseDraft) else self.case

    def run(self) -> RunInfo:
        """Where the answer came from and how it was chosen, checked; raises as `job` does."""
        return RunInfo(
            run_id=self.run_id,
            pipeline=self.pipeline,
            framework=self.framework,
            target=self.target,
            sampling_probability=self.choice.probability,
            sampling_reason=self.choice.reason,
            sampling_rules=self.choice.rules,
            metric_probabilities=dict(self.choice.metrics),
            represents_traffic=self.choice.represents_traffic,
            session_id=self.session_id,
            response_id=self.response_id,
            ended_at=self.ended_at,
        )


class Receipt:
    """The result of one run, once there is one.

    It may be waited for from any thread and any event loop; giving up waiting changes nothing for
    the run.
    """

    __slots__ = ("_future",)

    def __init__(self) -> None:
        # Either the result or the reason why there is none.
        self._future: concurrent.futures.Future[Evaluation | str] = concurrent.futures.Future()
        # A future that runs cannot be cancelled: whoever stops waiting does so for himself only.
        self._future.set_running_or_notify_cancel()

    def settle(self, outcome: Evaluation | str) -> None:
        """There is a result, or a reason why there is none; only the first call counts."""
        with contextlib.suppress(concurrent.futures.InvalidStateError):
            self._future.set_result(outcome)

    @property
    def result(self) -> Evaluation | None:
        """The result, if it is there."""
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
    """Has whoever ends a run wait for its result, and remembers results by run.

    Args:
        timeout: Seconds to wait; after that the answer goes out and the run is scored in the
            background, as it would be anyway.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        # Re-entrant: a stream that is dropped may end its run from the garbage collector.
        self._lock = threading.RLock()
        self._receipts: OrderedDict[str, tuple[Receipt, int]] = OrderedDict()
        self._size = 0
        # What a request looks for is its own run: tasks and threads have a context each.
        self._latest: ContextVar[str | None] = ContextVar("ragaliq_latest_run", default=None)

    @property
    def timeout(self) -> float:
        """Seconds to wait for a result."""
        return self._timeout

    def began(self, run_id: str) -> None:
        """A run has begun in this context; LangChain may end it in another one."""
        self._latest.set(run_id)

    def expect(self, submission: Submission) -> None:
        """Have the result of a run kept; the oldest of many, or of large ones, are forgotten."""
        receipt, size = Receipt(), submission.size  # the result will hold the texts
        submission.receipt = receipt
        with self._lock:
            _, before = self._receipts.pop(submission.run_id, (None, 0))
            self._receipts[submission.run_id] = receipt, size
            self._size += size - before
            while len(self._receipts) > _KEPT or (
                self._size > _KEPT_BYTES and len(self._receipts) > 1
            ):
                self._size -= self._receipts.popitem(last=False)[1][1]

    def wait(self, submission: Submission) -> None:
        """Wait for a run's result, unless an event loop runs in this thread; does not raise.

        A loop must not be blocked: the judge may even need it. There the result is awaited with
        `Monitor.result`.
        """
        if submission.receipt is None or is_loop_running():
            return
        try:
            submission.receipt.wait(self._timeout)
        except RagaliqError:
            # Too late or not to be had: counted already, or about to be.
            return

    def find(self, run_id: str | None) -> Receipt | None:
        """The receipt of a run, by default of the latest one in this context."""
        run_id = self._latest.get() if run_id is None else run_id
        with self._lock:
            kept = None if run_id is None else self._receipts.get(run_id)
        return None if kept is None else kept[0]

    def after_fork(self) -> InlineMode:
        """A new one for a forked child, where nobody will deliver the parent's results."""
        return InlineMode(self._timeout)
