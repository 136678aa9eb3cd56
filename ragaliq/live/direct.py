"""Asking a monitor for results and waiting for them."""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, TypedDict, Unpack
from uuid import uuid4

from ragaliq.core.draft import CaseDraft
from ragaliq.core.results import Evaluation
from ragaliq.core.run import SpanTarget
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import ConfigurationError, NotEvaluated, RagaliqError
from ragaliq.live.asgi import settled_at_end
from ragaliq.live.capture import Capture
from ragaliq.live.handle import Handle
from ragaliq.live.job import Framework, Submission
from ragaliq.live.receipt import Receipt
from ragaliq.live.sampling.choice import Choice
from ragaliq.records.sinks import in_turn
from ragaliq.telemetry.emit import current_span_target

if TYPE_CHECKING:
    from ragaliq.live.engine import Engine
    from ragaliq.records.sinks import SinkSet
    from ragaliq.telemetry.emit import Emitter
from ragaliq.telemetry.providers import providers_in_use

__all__ = ["DirectEvaluation", "RunDetails"]

_DEFAULT_TIMEOUT = 30.0
_REQUESTED = Choice(reason="requested")
_AWAITED = 2  # before what a rule chose: somebody waits


class RunDetails(TypedDict, total=False):
    """Where an answer comes from; everything may be left out.

    Attributes:
        target: The span to link to; by default the current one.
        pipeline: The application's name for the chain.
        run_id: The run's id; a new one by default.
        session_id: The conversation, when the application names it.
        framework: The framework that ran it.
    """

    target: SpanTarget | None
    pipeline: str
    run_id: str | None
    session_id: str | None
    framework: Framework


class DirectEvaluation(Handle):
    """The part of a monitor that gives results to whoever asks for them."""

    _enabled: bool
    _exit_timeout: float
    _engine: Engine
    _sinks: SinkSet
    _emitter: Emitter

    @property
    def is_enabled(self) -> bool:
        """Whether the monitor evaluates anything at all."""
        return self._enabled

    def evaluate(
        self,
        case: RAGTestCase | CaseDraft,
        *,
        timeout: float = _DEFAULT_TIMEOUT,
        **run: Unpack[RunDetails],
    ) -> Evaluation:
        """Evaluate an answer now and wait for the result.

        The run takes the way of every other: queue, budgets, judge, telemetry, `on_result`; it is
        counted once. Only sampling is left out.

        Args:
            case: Question, context and answer.
            timeout: Seconds to wait; a run that takes longer is scored and counted all the same.
            **run: Where the answer comes from; see `RunDetails`.

        Raises:
            EvaluationTimeout: There is no result within `timeout` seconds.
            NotEvaluated: There will be none; `reason` says why.
            BudgetExceeded: A budget left no room for it.
            ConfigurationError: The monitor's runs are judged by workers elsewhere.
            RuntimeError: Called on the monitor's own thread, from `on_result` for instance, where
                it would wait for itself; use `await monitor.aevaluate(...)` there.
        """
        if self._engine.worker.is_current_thread:
            raise RuntimeError(
                "monitor.evaluate() was called on the monitor's own thread and would wait for "
                "itself; make on_result a coroutine function and use `await monitor.aevaluate()`"
            )
        submission, receipt = self._submission(case, run)
        self._engine.tally.start()
        _hand_over(submission, self._engine)
        return receipt.wait(timeout)

    async def aevaluate(
        self,
        case: RAGTestCase | CaseDraft,
        *,
        timeout: float = _DEFAULT_TIMEOUT,  # noqa: ASYNC109 - as in evaluate
        **run: Unpack[RunDetails],
    ) -> Evaluation:
        """`evaluate` without blocking the event loop; may also be awaited in `on_result`.

        What is evaluated from inside `on_result` is not reported to it again.
        """
        submission, receipt = self._submission(case, run)
        engine = self._engine
        engine.tally.start()
        if engine.worker.is_current_thread:
            # Every lane may be waiting for a callback like this one: queued, it would never start.
            engine.score_now(submission)
        else:
            _hand_over(submission, engine)
        return await receipt.await_result(timeout)

    async def result(
        self,
        run_id: object = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as in evaluate
    ) -> Evaluation | None:
        """The result of a run of an inline monitor, waiting for it without blocking the loop.

        Args:
            run_id: The framework's id of the run; by default the latest run of this task.
            timeout: Seconds to wait; by default `inline_timeout`.

        Returns:
            The result; None for a run that is unknown (sampled out, or one of more than 1,000 runs
            or 64 MiB of text ago), could not be evaluated, or takes too long.
        """
        inline = self._engine.inline
        receipt = None if inline is None else inline.find(None if run_id is None else str(run_id))
        if inline is None or receipt is None:
            return None
        try:
            return await receipt.await_result(inline.timeout if timeout is None else timeout)
        except RagaliqError:
            return None

    @property
    def last_result(self) -> Evaluation | None:
        """The result of this thread's or task's latest run, if it is there; inline mode only."""
        inline = self._engine.inline
        receipt = None if inline is None else inline.find(None)
        return None if receipt is None else receipt.result

    def capture(self, *, timeout: float = 10.0) -> Capture:
        """A block, `with` or `async with`, for handlers that are frozen when they return.

        Leaving it waits up to `timeout` seconds until every run is evaluated, then has
        OpenTelemetry's providers send what they hold. It never raises.
        """
        return Capture(self, timeout=timeout, providers=providers_in_use(self._emitter.options))

    def lifespan(
        self,
        app: object = None,  # noqa: ARG002 - what an ASGI framework passes
        *,
        timeout: float | None = None,
    ) -> AbstractAsyncContextManager[None]:
        """For `FastAPI(lifespan=monitor.lifespan)`: evaluates and sends everything at the end.

        Servers end by the signal that stopped them, which runs no exit code: the end of the
        lifespan, after the last request, is the last moment at which anything can be done. The
        event loop is not blocked meanwhile. For an application with a lifespan of its own there
        is `ragaliq.lifespan`.

        Args:
            app: The application; not looked at.
            timeout: Seconds to wait for the evaluations; by default the monitor's `exit_timeout`.
                What is left then is counted `shutdown`, and the monitor is closed.
        """
        return settled_at_end(self, timeout=self._exit_timeout if timeout is None else timeout)

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until every run accepted so far is evaluated; later ones are not waited for.

        Returns:
            False when `timeout` seconds were not enough, or when called from `on_result`.
        """
        self._engine.sweeps.hand_over()
        return in_turn(timeout, self._engine.worker.flush, self._sinks.flush)

    async def aflush(self, timeout: float = 30.0) -> bool:  # noqa: ASYNC109 - as in flush
        """`flush` without blocking the event loop."""
        return await asyncio.to_thread(self.flush, timeout)

    def _submission(
        self, case: RAGTestCase | CaseDraft, run: RunDetails
    ) -> tuple[Submission, Receipt]:
        if not self._enabled:
            raise NotEvaluated("disabled")
        if self._engine.enqueues:
            raise ConfigurationError(
                "this monitor's runs are judged by workers elsewhere: results do not come back to "
                "be waited for; use a monitor with executor='thread' or 'process'"
            )
        receipt = Receipt()
        submission = Submission(
            case=case,
            run_id=run.get("run_id") or uuid4().hex,
            pipeline=run.get("pipeline", ""),
            framework=run.get("framework", ""),
            target=run.get("target") or current_span_target(),
            session_id=run.get("session_id"),
            response_id=None,
            ended_at=time.time(),
            choice=_REQUESTED,
            receipt=receipt,
            priority=_AWAITED,
        )
        return submission, receipt


def _hand_over(submission: Submission, engine: Engine) -> None:
    try:
        engine.submit(submission)
    except RuntimeError:  # no thread can be started
        engine.tally.end("incomplete_run", "internal_error")
        submission.settle("incomplete_run")
