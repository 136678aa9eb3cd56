"""The monitor: samples finished runs, has them evaluated, and reports."""

from __future__ import annotations

import asyncio
import logging
import math
import shlex
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import (
    Any,
    Literal,
    NoReturn,
    Protocol,
    Self,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
    runtime_checkable,
)
from uuid import UUID, uuid4

from ragaliq.capture import RunLog, add_context
from ragaliq.core.annexes import annex
from ragaliq.core.checks import require_choice, require_positive, takes_only
from ragaliq.core.concurrency import is_being_cancelled
from ragaliq.core.interrupts import is_from_signal
from ragaliq.core.log_once import LogOnce
from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.results import Evaluation, EvaluationResult
from ragaliq.core.run import SpanTarget
from ragaliq.core.suppression import is_suppressed
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import (
    BudgetExceeded,
    CircuitOpenError,
    ConfigurationError,
    JobRefusedError,
    NotEvaluated,
    RagaliqError,
)
from ragaliq.evaluators.case import RAISED
from ragaliq.evaluators.evaluator import Evaluator
from ragaliq.evaluators.registry import EvaluatorSpec, resolve_evaluators
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.resolve import CalibrationSpec, JudgeSpec
from ragaliq.live.flushing import Capture
from ragaliq.live.judge_calls import JUDGE_CALLS
from ragaliq.live.queue import JudgeQueue
from ragaliq.live.reporting import Reporter, ResultCallback, is_reporting
from ragaliq.live.run import Answered, Framework, InlineMode, PendingResult, RunHandle
from ragaliq.live.runtime import LINGER, RUNTIME, Part, Sweepable, described_as
from ragaliq.live.sampler import Sampler
from ragaliq.live.sampling import Sampling, SamplingDraw, SamplingResult
from ragaliq.live.stats import MonitorStats, RunCounters
from ragaliq.live.tracing import CallTracer
from ragaliq.records.sinks import SinkSet, SinkSpec, SinkWorker, resolve_sink
from ragaliq.scoring.execution import Executor, ProcessExecutor, takes_process
from ragaliq.scoring.limits.breaker import CircuitBreaker
from ragaliq.scoring.limits.budget import Budget, BudgetLedger
from ragaliq.scoring.limits.protection import Limits, Protection
from ragaliq.scoring.limits.rate_limits import RateLimiter, RateLimits
from ragaliq.scoring.scorer import Scorer, sink_failed
from ragaliq.scoring.settings import LiveSettings, chosen_judge, read_settings
from ragaliq.telemetry import names
from ragaliq.telemetry.content import ContentPolicy, Redactor
from ragaliq.telemetry.emit import Emitter, TelemetryOptions, current_span_target
from ragaliq.telemetry.providers import providers_in_use

logger = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])

_LOG_ONCE = LogOnce(logger)

# Support of the first claims of each pipeline, of all monitors: one may be made for each request.
_LEVELS: dict[tuple[str, float], list[float] | None] = {}
_MOST_LEVELS = 100  # pipelines
_CLOSE = 0.02  # of support; a threshold as near as this changes hardly a verdict

_DEFAULT_TIMEOUT = 30.0
_REQUESTED = SamplingResult(reason="requested")
_UNDECIDED = SamplingDraw(0.0, None)
# Queue priority: awaited runs, then rule-selected runs, then rate-sampled runs.
_PRIORITIES = {"rate": 0, "requested": 2}


@runtime_checkable
class HoldsRuns(Protocol):
    """An adapter that keeps runs back for a while after their end."""

    def hand_over_ended(self) -> bool:
        """Submit every run that has ended, now; False if some could not be submitted in time."""


@runtime_checkable
class Elsewhere(Protocol):
    """Receives runs that other processes evaluate, such as a `BrokerExecutor`."""

    name: str
    max_job_bytes: int | None

    async def publish(self, job_id: str, message: bytes) -> None:
        """Enqueue a job."""

    async def aclose(self) -> None:
        """Close connections; they may be opened again afterwards."""


class Publisher(Protocol):
    """Enqueues runs for workers of a broker."""

    executor: str

    async def publish(
        self,
        case: RAGTestCase,
        metrics: Iterable[str],
        failed: Callable[[str], object],
    ) -> None:
        """Enqueue a run; `failed` is called with the class of each failed attempt.

        Raises:
            JobRefusedError: The run can never be enqueued.
        """

    async def aclose(self) -> None:
        """Close the connection."""

    def after_fork(self) -> None:
        """Drop the parent's connection in a forked child, without touching it."""


class RunDetails(TypedDict, total=False):
    """Details of the run that gave an answer; every field is optional.

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


class Monitor:
    """Evaluates a sample of live answers off the request path.

    The calls of a request (`begin`, `submit`, a handle's end) take microseconds, never block and
    never raise. Evaluation runs on one daemon thread with its own event loop, which starts with the
    first run, and again in forked children. At exit the monitor waits up to `exit_timeout` seconds
    for queued runs.

    One thread of the process serves all monitors, so that you may make one for each request.
    Monitors share what is expensive: those of one judge (its name, or the same object) share its
    process, breaker and queue; equal budgets, equal rate limits, the same sinks, the same
    `Sampling` object and the same `on_result` function are shared too. Each monitor has its own
    counts. A shared part ends when its last monitor is closed, or a minute after it was
    garbage-collected.

    Args:
        judge: `local` (embedded, without a key), `claude`, `local>claude` or a judge object; by
            default from `RAGALIQ_JUDGE`, else `local`.
        calibration: A calibration of the judge's confidence, or its file; by default from
            `RAGALIQ_CALIBRATION`, else none.
        metrics: Metrics: names, classes or instances; by default faithfulness, and relevance if the
            judge is a language model; with a broker, those of its workers.
        sample_rate: Share of runs to evaluate, 0 to 1; by default from `RAGALIQ_SAMPLE_RATE`, else
            1.0.
        sampling: Rates per pipeline and metric, rules, a cap; instead of `sample_rate`.
        policy: Scoring policy of metrics without their own.
        declines: The application's own ways to decline: texts, or regular expressions between
            slashes. Such an answer has the status `answer_refused` and no score.
        concurrency: Runs evaluated concurrently.
        max_queue: Most queued runs; further ones are counted `queue_full`.
        max_queue_bytes: Most bytes of text of the queued runs.
        deadline: Most seconds for each metric of a run.
        executor: Where evaluations run: `thread`, or `process` for a child process. By default from
            `RAGALIQ_EXECUTOR`, else `process` for the embedded judge or a local small one with
            ragaliq's own metrics, else `thread`. With a broker's address (`redis://`, `amqp://`,
            `nats://`, `kafka://`) `ragaliq worker` processes evaluate; with `sqlite:///runs.db`
            `ragaliq evaluate --pending` does later. Judge, limits, breaker, sinks and content are
            then set there, not here.
        niceness: Niceness of the child process, 0 to 19: at 19 on Linux it only uses idle
            processors.
        mode: `background`, or `inline`: the call that ends a run waits for its result. In a thread
            with a running event loop it does not wait; use `await monitor.result()`.
        inline_timeout: Seconds to wait in inline mode; after that the run is scored and counted in
            the background.
        budget: Limits on cost by hour and day; none by default.
        judge_limits: Limits on the judge's calls by minute; none by default.
        breaker: Circuit breaker that pauses a failing judge; None for none.
        on_result: Called with each `Evaluation`, on its own thread; may be a coroutine function.
        on_result_timeout: Most seconds for each call of `on_result`.
        sinks: Stores of results in addition to telemetry: `sqlite:///path`, or sink objects.
        capture_content: Whether texts may enter telemetry and sinks; by default from the
            environment, else no.
        redact: Called with each text, and its kind, before it enters telemetry or a sink.
        redact_for_judge: Called with each text of a case, and its kind (`question`, `answer`,
            `chunk`), before the judge sees it; results show what it returns.
        exit_timeout: Seconds to wait for queued runs when the process ends.
        enabled: False turns the monitor off; by default from `RAGALIQ_ENABLED`.
        telemetry: Shape and providers of the telemetry; see `TelemetryOptions`.

    Raises:
        ConfigurationError: A setting is wrong, or the judge cannot be built.
    """

    judge: LLMJudge | None = None
    metrics: Sequence[Evaluator]
    sinks: SinkSet
    sampler: Sampler
    inline: InlineMode | None
    queue: JudgeQueue
    _scorer: Scorer | None = None
    _publisher: Publisher | None = None
    _process: ProcessExecutor | None = None
    _reporter: Reporter | None = None
    _keeps_turns: bool

    @takes_only()
    def __init__(
        self,
        *,
        judge: JudgeSpec | str | None = None,
        calibration: CalibrationSpec | None = None,
        metrics: Iterable[EvaluatorSpec] | None = None,
        sample_rate: float | None = None,
        sampling: Sampling | None = None,
        policy: ScoringPolicy = ScoringPolicy.LIVE,
        declines: Iterable[str] = (),
        concurrency: int = 8,
        max_queue: int = 1000,
        max_queue_bytes: int = 64 * 2**20,
        deadline: float = 60.0,
        executor: Executor | Elsewhere | str | None = None,
        niceness: int = 10,
        mode: Literal["background", "inline"] = "background",
        inline_timeout: float = 10.0,
        budget: Budget | None = None,
        judge_limits: RateLimits | None = None,
        breaker: CircuitBreaker | None = CircuitBreaker(),
        on_result: ResultCallback | None = None,
        on_result_timeout: float = 10.0,
        sinks: Iterable[SinkSpec] = (),
        capture_content: bool | None = None,
        redact: Redactor | None = None,
        redact_for_judge: Redactor | None = None,
        exit_timeout: float = 10.0,
        enabled: bool | None = None,
        telemetry: TelemetryOptions | None = None,
    ) -> None:
        declines = (declines,) if isinstance(declines, str) else tuple(declines)
        require_positive(
            deadline=deadline,
            inline_timeout=inline_timeout,
            concurrency=concurrency,
            max_queue=max_queue,
            max_queue_bytes=max_queue_bytes,
            on_result_timeout=on_result_timeout,
        )
        require_choice(mode, "background", "inline", name="mode")
        if on_result is not None and not callable(on_result):
            raise ConfigurationError(
                f"Monitor: on_result must be a function, got {type(on_result).__name__}"
            )
        settings = read_settings()
        self._is_enabled = settings.enabled if enabled is None else enabled
        self.counters = RunCounters()
        self.max_queue, self.max_queue_bytes = max_queue, max_queue_bytes
        self.exit_timeout = exit_timeout
        self._inline_timeout = inline_timeout if mode == "inline" else None
        self._log_once = LogOnce(logger)
        self._holding: weakref.WeakSet[HoldsRuns] = weakref.WeakSet()
        self._uses: list[Part] = []
        content = ContentPolicy.resolve(capture_content=capture_content, redact=redact)
        self.emitter = Emitter(content, telemetry)
        executor = settings.executor if executor is None else executor
        is_elsewhere = isinstance(executor, Elsewhere) or "://" in str(executor)
        if is_elsewhere:
            annex("worker.enqueueing").leave_to_workers(locals(), Monitor)
        self.concurrency = 1 if is_elsewhere else concurrency
        # Called again in a forked child, which shares nothing with its parent.
        self._acquire = partial(
            self._acquire_publisher if is_elsewhere else self._acquire_scorer,
            executor=executor,
            judge=judge,
            calibration=calibration,
            metrics=metrics if metrics is None or isinstance(metrics, str) else tuple(metrics),
            policy=policy.with_declines(declines),
            deadline=deadline,
            niceness=niceness,
            limits=Limits(budget=budget, judge_limits=judge_limits, breaker=breaker),
            on_result=on_result,
            on_result_timeout=on_result_timeout,
            sinks=sinks if isinstance(sinks, str) else tuple(sinks),
            redact_for_judge=redact_for_judge,
            sampling=sampling,
            sample_rate=sample_rate,
            settings=settings,
        )
        weakref.finalize(self, RUNTIME.drop, self._uses).atexit = False
        self._attach()
        RUNTIME.monitors.add(self)
        rate = settings.sample_rate if sample_rate is None else sample_rate
        if self.judge is not None and budget is None and sampling is None and rate == 1.0:
            _say_what_it_costs(self.judge)

    # --- what it shares with other monitors -----------------------------------------------------

    def _acquire_scorer(
        self,
        *,
        executor: Any,
        judge: JudgeSpec | str | None,
        calibration: CalibrationSpec | None,
        metrics: Iterable[EvaluatorSpec] | None,
        policy: ScoringPolicy,
        deadline: float,
        niceness: int,
        limits: Limits,
        on_result: ResultCallback | None,
        on_result_timeout: float,
        sinks: Iterable[SinkSpec],
        redact_for_judge: Redactor | None,
        sampling: Sampling | None,
        sample_rate: float | None,
        settings: LiveSettings,
    ) -> None:
        """Acquire the parts for evaluating in this process."""
        share = partial(RUNTIME.share, self._uses)
        spec = settings.judge or "local" if judge is None else judge
        curve = settings.calibration if calibration is None else calibration
        # Named ones are equal by name, objects by identity.
        described = described_as(spec), settings.model, described_as(curve)
        decider = share(
            ("judge", described),
            lambda: chosen_judge(settings, judge, calibration),
            close=lambda value, timeout: RUNTIME.run(value.aclose, timeout),
            linger=LINGER,
        )
        self.queue = share(("queue", described), JudgeQueue, linger=LINGER)
        self.metrics = resolve_evaluators(metrics, judge=decider, policy=policy)
        if takes_process(executor, judge=decider, metrics=self.metrics, niceness=niceness):
            self._process = share(
                ("process", ProcessExecutor.key_of(decider, niceness)),
                lambda: ProcessExecutor(decider, niceness=niceness),
                close=lambda value, timeout: RUNTIME.run(value.aclose, timeout),
                disown=ProcessExecutor.disown,
                linger=LINGER,
            )

        def state_of(setting: object, make: Callable[[], Any]) -> Any:
            if isinstance(setting, CircuitBreaker):
                return share(("breaker", described, setting), make, linger=LINGER)
            # Other limits outlive a monitor: what was spent counts for an hour or a day.
            return share(("limit", setting), make, close=_release, linger=math.inf)

        protection = Protection(limits, self.emitter.metrics, share=state_of)
        count = sink_failed(self.emitter.metrics)

        def worker_of(sink: SinkSpec) -> SinkWorker:
            return share(
                ("sink", described_as(sink)),
                lambda: SinkWorker(resolve_sink(sink), on_error=count),
                close=SinkWorker.close,
                linger=LINGER,
            )

        self._scorer = Scorer(
            decider,
            self.metrics,
            deadline=deadline,
            limits=protection,
            executor=self._process or "thread",
            redact_for_judge=redact_for_judge,
            telemetry=self.emitter,
            sinks=SinkSet(sinks, content=self.emitter.content, worker_of=worker_of),
            keeps_judge=True,
        )
        self.judge, self.sinks = self._scorer.judge, self._scorer.sinks
        self._keeps_turns = any(evaluator.policy.history_turns for evaluator in self.metrics)
        self._reporter = on_result and share(
            ("on_result", described_as(on_result), on_result_timeout),
            lambda: Reporter(on_result, on_result_timeout, self._log_once),
            close=lambda value, _: value.stop(),
        )
        self._acquire_sampler(sampling, sample_rate, settings)

    def _acquire_publisher(
        self,
        *,
        executor: Any,
        metrics: Iterable[EvaluatorSpec] | None,
        policy: ScoringPolicy,
        sampling: Sampling | None,
        sample_rate: float | None,
        settings: LiveSettings,
        **_: Any,
    ) -> None:
        """Acquire the parts for enqueueing runs to workers."""
        share = partial(RUNTIME.share, self._uses)
        described = described_as(executor)
        self._publisher = share(
            ("elsewhere", described),
            lambda: annex("worker.enqueueing").Enqueueing(executor),
            close=lambda value, timeout: RUNTIME.run(value.aclose, timeout),
            disown=lambda value: value.after_fork(),
            linger=LINGER,
        )
        self.queue = share(("queue", described), JudgeQueue, linger=LINGER)
        # Without names, the workers choose the metrics.
        self.metrics = () if metrics is None else resolve_evaluators(metrics, policy=policy)
        self._keeps_turns = True  # the workers may look at them
        self.sinks = SinkSet(())
        self._acquire_sampler(sampling, sample_rate, settings)

    def _acquire_sampler(
        self, sampling: Sampling | None, rate: float | None, settings: LiveSettings
    ) -> None:
        measured = tuple(evaluator.name for evaluator in self.metrics)

        def make() -> Sampler:
            return Sampler(sampling, rate, general=settings.sample_rate, metrics=measured)

        if sampling is None:
            self.sampler = make()
        else:
            # Runs held for feedback, and a cap on runs, belong to the process.
            self.sampler = RUNTIME.share(
                self._uses,
                ("sampling", described_as(sampling), measured, rate),
                make,
                close=lambda value, _: value.close(),
                linger=math.inf,
            )

    def _attach(self) -> None:
        """Acquire the parts, and begin what belongs to this process alone."""
        self._acquire()
        self.inline = None if self._inline_timeout is None else InlineMode(self._inline_timeout)
        self.emitter.watch(self.queue, self.counters, owner=self)

    def restart_after_fork(self) -> None:
        """Replace the parent's counts, queue and threads in a forked child; for the runtime."""
        before, self.counters = self.counters, RunCounters()
        is_closed = self.counters.is_closed = before.is_closed
        before.abandon()
        self._uses.clear()
        if not is_closed:
            self._attach()

    def __repr__(self) -> str:
        names = ", ".join(evaluator.name for evaluator in self.metrics)
        judge = self.judge.name if self.judge else None
        return f"Monitor(judge={judge!r}, metrics=({names}))"

    # --- the request path ---------------------------------------------------------------------

    def begin(
        self, run_id: str | UUID, *, pipeline: str = "", framework: Framework = ""
    ) -> RunHandle | None:
        """Announce a run that has just started.

        Args:
            run_id: Unique id of the run; decides sampling outside a trace.
            pipeline: The application's name for the chain.
            framework: The framework that runs it.

        Returns:
            A handle to end the run with; None if it cannot be evaluated: sampled out (counted),
            inside `suppress()`, or the monitor is off. With rules, sampling is decided when the
            handle ends.
        """
        # What begins on ragaliq's own thread is a judge's, also in a context without `suppress()`.
        if not self._is_enabled or is_suppressed() or RUNTIME.thread.is_current:
            return None
        try:
            draw = self.sampler.begin(run_id, pipeline)
            # For most runs this draw is all that happens.
            text_id = "" if draw is None and self.inline is None else str(run_id)
        except Exception as error:
            logger.debug("a run could not be begun: %s", type(error).__name__)
            RunHandle(self, "", _UNDECIDED).discard("internal_error")
            if is_from_signal(error):
                raise
            return None
        if self.inline is not None:
            self.inline.began(text_id)
        if draw is None:
            self.counters.sampled_out()
            return None
        return RunHandle(self, text_id, draw, pipeline=pipeline, framework=framework)

    def can_sample(self, trace_id: str) -> bool:
        """Check whether a run in this trace may be evaluated; a collector can drop the others.

        Args:
            trace_id: 32 lower-case hex digits.
        """
        return self._is_enabled and self.sampler.can_choose(trace_id)

    def submit(
        self,
        case: Answered,
        *,
        target: SpanTarget | None = None,
        pipeline: str = "",
        run_id: str | None = None,
    ) -> bool:
        """Offer a finished run for evaluation; never blocks and never raises.

        Args:
            case: Question, context and answer.
            target: The span to link to; by default the current one.
            pipeline: The application's name for the chain.
            run_id: The run's id; by default the case's.

        Returns:
            Whether the run will be evaluated. If not, the reason is counted in `stats()`.
        """
        try:
            run_id = run_id or str(getattr(case, "id", ""))
        except Exception as error:
            if is_from_signal(error):
                raise
            run_id = ""  # something else than a case: counted below
        run = self.begin(run_id, pipeline=pipeline)
        if run is None:
            return False
        return run.submit(case, target=current_span_target() if target is None else target)

    @overload
    def trace(self, function: F) -> F: ...

    @overload
    def trace(
        self,
        *,
        pipeline: str = "",
        question: str | None = None,
        answer: Callable[[Any], str] | None = None,
    ) -> Callable[[F], F]: ...

    def trace(
        self,
        function: F | None = None,
        *,
        pipeline: str = "",
        question: str | None = None,
        answer: Callable[[Any], str] | None = None,
    ) -> F | Callable[[F], F]:
        """Capture each call of a function that answers, for applications without a framework.

        The chunks passed to `add_context` inside the call are the answer's context. Errors of the
        function reach the application, and are counted `errored`. The answer of a generator is the
        texts it yields. A traced function inside another one is a part of its run.

        Args:
            function: Any function, a coroutine's or a generator's too; `@monitor.trace` and
                `@monitor.trace(pipeline=...)` both work.
            pipeline: The application's name for it; by default the function's.
            question: The parameter that holds the question; by default the first text given.
            answer: Converts the function's return value to the answer's text; by default it is the
                text.

        Raises:
            ConfigurationError: The function has no such parameter.
        """
        traced: F | Callable[[F], F]
        traced = CallTracer(self.begin, answer).trace(
            function, pipeline=pipeline, question=question
        )
        return traced

    @staticmethod
    def add_context(*documents: Any, replace: bool = False) -> None:
        """Name what the answer of the current run is made from; never raises.

        Call it inside a chain, a graph's node, an engine, a workflow's step, a tool, or a function
        under `trace`. The documents are added to those that were found. Outside any run it does
        nothing.

        Args:
            *documents: Texts, documents or nodes of the framework, dictionaries with a text under
                `page_content`, `text` or `content`, `ContextChunk` and `Passage`, in rank order;
                lists of them too.
            replace: Take them in place of those that were found, or named before.
        """
        add_context(*documents, replace=replace)

    def feedback(self, run_id: object, value: float) -> bool:
        """Report a user's feedback on an answer; never raises. Needs an `OnFeedback` rule.

        Args:
            run_id: The run's id, or the id of the trace it was in (32 hex digits).
            value: Such as True or False for a thumb up or down; the rule decides which are bad.

        Returns:
            Whether a run that was not sampled before will be evaluated now.
        """
        if not self._is_enabled:
            return False
        is_chosen = False
        try:
            for run, result in self.sampler.feedback(str(run_id), value):
                is_chosen |= run.monitor.enqueue(run, result)
        except Exception as error:  # noqa: BLE001 - the application's request must not notice
            logger.debug("feedback could not be taken: %s", type(error).__name__)
        return is_chosen

    # --- results that somebody waits for -------------------------------------------------------

    @property
    def is_enabled(self) -> bool:
        """False if the monitor is off."""
        return self._is_enabled

    def evaluate(
        self,
        case: Answered,
        *,
        timeout: float = _DEFAULT_TIMEOUT,
        **run: Unpack[RunDetails],
    ) -> Evaluation:
        """Evaluate an answer now and wait for the result.

        The run passes the same steps as every other: queue, budgets, judge, telemetry, `on_result`;
        it is counted once. Only sampling is skipped.

        Args:
            case: Question, context and answer.
            timeout: Seconds to wait; a run that takes longer is still scored and counted.
            **run: Details of the run; see `RunDetails`.

        Raises:
            EvaluationTimeout: There is no result within `timeout` seconds.
            NotEvaluated: There will be no result; `reason` says why.
            BudgetExceeded: A budget is used up.
            ConfigurationError: Workers of a broker evaluate the monitor's runs.
            RuntimeError: Called on the monitor's own thread, from `on_result` for instance, where
                it would wait for itself; use `await monitor.aevaluate(...)` there.
        """
        if self.is_own_thread:
            raise RuntimeError(
                "monitor.evaluate() was called on the monitor's own thread and would wait for "
                "itself; make on_result a coroutine function and use `await monitor.aevaluate()`"
            )
        return self._requested(case, run).wait(timeout)

    async def aevaluate(
        self,
        case: Answered,
        *,
        timeout: float = _DEFAULT_TIMEOUT,  # noqa: ASYNC109 - as in evaluate
        **run: Unpack[RunDetails],
    ) -> Evaluation:
        """`evaluate` without blocking the event loop; may also be awaited in `on_result`.

        Evaluations from inside `on_result` are not reported to it again.
        """
        return await self._requested(case, run).await_result(timeout)

    async def result(
        self,
        run_id: object = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as in evaluate
    ) -> Evaluation | None:
        """Wait for the result of a run of an inline monitor, without blocking the loop.

        Args:
            run_id: The framework's id of the run; by default the latest run of this task.
            timeout: Seconds to wait; by default `inline_timeout`.

        Returns:
            The result; None for a run that is unknown (sampled out, or one of more than 1,000 runs
            or 64 MiB of text ago), could not be evaluated, or takes too long.
        """
        inline = self.inline
        awaited = None if inline is None else inline.find(None if run_id is None else str(run_id))
        if inline is None or awaited is None:
            return None
        try:
            return await awaited.await_result(inline.timeout if timeout is None else timeout)
        except RagaliqError:
            return None

    @property
    def last_result(self) -> Evaluation | None:
        """Result of this thread's or task's latest run, if available; inline mode only."""
        inline = self.inline
        awaited = None if inline is None else inline.find(None)
        return None if awaited is None else awaited.result

    def capture(self, *, timeout: float = 10.0) -> Capture:
        """Block (`with` or `async with`) for handlers that are frozen when they return.

        At its end it waits up to `timeout` seconds until every run is evaluated, then flushes
        OpenTelemetry's providers. It never raises.
        """
        return Capture(
            self.flush, timeout=timeout, providers=providers_in_use(self.emitter.options)
        )

    @asynccontextmanager
    async def lifespan(
        self,
        app: object = None,  # noqa: ARG002 - what an ASGI framework passes
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - threads are waited for
    ) -> AsyncIterator[None]:
        """Lifespan for `FastAPI(lifespan=monitor.lifespan)`: evaluates and sends all at the end.

        A server ends by the signal that stopped it, without exit hooks: the end of the lifespan,
        after the last request, is the last opportunity. The event loop is not blocked meanwhile.
        For an application with its own lifespan use `ragaliq.lifespan`.

        Args:
            app: The application; ignored.
            timeout: Seconds to wait for the evaluations; by default the monitor's `exit_timeout`.
                What is left then is counted `shutdown`, and the monitor is closed.
        """
        try:
            yield
        finally:
            # Created only now, when the application has set up its telemetry.
            within = self.exit_timeout if timeout is None else timeout
            async with self.capture(timeout=within) as capture:
                pass
            if not capture.complete:
                await asyncio.to_thread(self.close, 0.0)

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until every run accepted so far is evaluated; ignore later ones.

        Returns:
            False when `timeout` seconds were not enough, or when called from `on_result`.
        """
        deadline = time.monotonic() + timeout
        finished = self._hand_over_ended()  # somebody waits for these runs' scores
        finished = not self.is_own_thread and self.queue.wait(self.counters, timeout) and finished
        return self.sinks.flush(max(0.0, deadline - time.monotonic())) and finished

    async def aflush(self, timeout: float = 30.0) -> bool:  # noqa: ASYNC109 - as in flush
        """`flush` without blocking the event loop."""
        return await asyncio.to_thread(self.flush, timeout)

    def _requested(self, case: Answered, details: RunDetails) -> PendingResult:
        """Evaluate a run that the caller waits for."""
        if not self._is_enabled:
            raise NotEvaluated("disabled")
        if self.judge is None:
            raise ConfigurationError(
                "this monitor's runs are judged by workers elsewhere: results do not come back to "
                "be waited for; use a monitor with executor='thread' or 'process'"
            )
        if not isinstance(case, RAGTestCase | RunLog):
            raise TypeError(f"evaluate takes a RAGTestCase or a RunLog, not {type(case).__name__}")
        awaited = PendingResult()
        run = RunHandle(
            self,
            details.get("run_id") or uuid4().hex,
            SamplingDraw(0.0, _REQUESTED),
            pipeline=details.get("pipeline", ""),
            framework=details.get("framework", ""),
            awaited=awaited,
        )
        target = details.get("target") or current_span_target()
        run.submit(case, target=target, session_id=details.get("session_id"))
        return awaited

    # --- judging ------------------------------------------------------------------------------

    @property
    def is_own_thread(self) -> bool:
        """True if called on a thread that evaluates or reports, which would wait for itself."""
        if RUNTIME.thread.is_current:
            return True
        return self._reporter is not None and self._reporter.is_own_thread

    def enqueue(self, run: RunHandle, result: SamplingResult) -> bool:
        """Queue a submitted run without blocking; return False, and count the reason, if refused.

        Raises:
            RuntimeError: The thread cannot be started; nothing is counted.
        """
        run.sampling, run.priority = result, _PRIORITIES.get(result.reason, 1)
        if run.awaited is None and self.inline is not None:
            self.inline.expect(run)
        if result.reason == "requested" and (RUNTIME.thread.is_current or is_reporting()):
            # All running evaluations may wait for such callbacks: a queued run would never start.
            work = self.judge_run(run, reports=False)
            asyncio.run_coroutine_threadsafe(work, RUNTIME.thread.loop())
            return True
        if self._reporter is not None and not run.counters.is_closed:
            self._reporter.prepare()
        return self.queue.put(run)

    async def judge_run(self, run: RunHandle, *, reports: bool = True) -> None:
        """Evaluate a run, count its outcome and report it; called by the queue."""
        evaluation: Evaluation | None = None
        stored: Sequence[Future[str]] = ()
        try:
            if _is_judge_call(run):
                run.end("incomplete_run", "judge_call")
                return
            lag = max(0.0, time.time() - run.ended_at)
            case, measured = await self._case_of(run)
            if self._publisher is not None:
                await self._publish(self._publisher, run, case)
            elif self._scorer is not None:
                try:
                    with nullcontext() if self._process else JUDGE_CALLS.asking(case):
                        evaluation = await self._scorer.evaluate(case, lag=lag, measured=measured)
                except CircuitOpenError:
                    evaluation = self._count_unjudged(self._scorer, run, case)
                else:
                    stored = self.sinks.record(evaluation)
                    self._count_evaluated(run, evaluation)
        except BudgetExceeded:
            run.end("over_budget")
        except BaseException as error:
            if is_being_cancelled():
                run.end("shutdown")
                raise
            # A judge may even raise SystemExit, which would end the worker's loop.
            self._log_once.failure("a run could not be evaluated", error)
            run.end("incomplete_run", "internal_error")
            self._say_if_none_scored(run.counters)
        if evaluation is not None:
            if run.awaited is not None:
                run.awaited.settle(evaluation, stored)
            if reports and self._reporter is not None:
                await self._reporter.report(evaluation, run.counters)

    async def _case_of(
        self, run: RunHandle
    ) -> tuple[RAGTestCase, Mapping[str, EvaluationResult] | None]:
        """Case of the run, with the earlier turns of its conversation.

        With its results, if a child process measured them right after it built the case.
        """
        info, measured = run.info(), None
        case, conversation = run.answered, run.session_id
        conversations = self.queue.conversations if self._keeps_turns else None
        is_given = not isinstance(case, RunLog)
        if isinstance(case, RunLog):
            conversation = conversation or case.conversation_key
            if conversation and conversations is not None:
                key = f"{run.pipeline}\n{conversation}"
                case.said_before = conversations.add_replies(key, case.other_replies())
                case.remembered = conversations.turns(key) if run.session_id is not None else ()
            built = None
            if self._process is not None and self._scorer is not None and not case.is_context_found:
                # Earlier turns are added to the case before it is evaluated.
                changes = bool(conversation) and conversations is not None
                evaluators = () if changes else self._scorer.measured_at_once(info)
                built = await self._process.evaluate_run(
                    case.to_plain(), evaluators, deadline=self._scorer.deadline
                )
            case, measured = (case.to_case(), None) if built is None else built
        if conversation and conversations is not None:
            # Before the limits: a run that is not evaluated is still a turn of the conversation.
            case = conversations.joined(case, f"{run.pipeline}\n{conversation}", fills=is_given)
        return case.model_copy(update={"run": info}), measured

    def _count_evaluated(self, run: RunHandle, evaluation: Evaluation) -> None:
        """Count an evaluated run, and log once what keeps runs from being scored."""
        missing = evaluation.case.sources.no_context
        run.counters.evaluated(run, evaluation.results, no_context=missing)
        self._say_why_unanswered(evaluation.results)
        if self.judge is not None and self.judge.min_support is not None:
            _note_level(self.judge.min_support, run.pipeline, evaluation.results)
        if missing:
            self._say_if_none_scored(run.counters)

    def _count_unjudged(
        self, scorer: Scorer, run: RunHandle, case: RAGTestCase
    ) -> Evaluation | None:
        """Count a run that the breaker kept from the judge; return the evaluation if awaited."""
        # There may be thousands a second: they emit no spans or events.
        results = scorer.unjudged(case.evaluated_run.metric_probabilities)
        run.counters.evaluated(run, results, unjudged=True)
        self.emitter.metrics.evaluated(run.pipeline, results)
        if self._reporter is None and run.awaited is None:
            return None
        lag = max(0.0, time.time() - run.ended_at)
        return Evaluation(case=scorer.redacted(case), results=results, lag=lag)

    async def _publish(self, elsewhere: Publisher, run: RunHandle, case: RAGTestCase) -> None:
        chosen = case.evaluated_run.metric_probabilities
        metrics = [e.name for e in self.metrics if e.name in chosen or not chosen]
        try:
            await elsewhere.publish(case, metrics, partial(self._publish_failed, run.counters))
        except JobRefusedError as error:
            self._log_once.failure(f"a run cannot be enqueued ({error.reason})", error)
            run.end("incomplete_run", error.reason)
        else:
            run.end("enqueued")

    def _publish_failed(self, counters: RunCounters, kind: str) -> None:
        counters.publish_errors += 1
        self.emitter.metrics.record(names.METRIC_PUBLISH_ERRORS, 1, {names.ERROR_TYPE: kind})

    def _say_if_none_scored(self, counters: RunCounters) -> None:
        found = counters.none_scored()
        if found:
            self._log_once.message(
                "none scored",
                f"of the first runs none was scored ({found}): monitor.stats() says why, and the "
                "handler's explain(run_id) what was found of a run",
            )

    def _say_why_unanswered(self, results: Mapping[str, EvaluationResult]) -> None:
        for result in results.values():
            is_logged = (result.error or "").startswith(RAISED)
            if result.status.is_unanswered and not is_logged:
                kind = result.error_type or result.status.value
                # Its message may come from a user's judge and quote anything.
                self._log_once.message(
                    kind,
                    f"the judge gave no answer: {kind}; further ones are counted, not logged; the "
                    "result's `error` says more, and `ragaliq doctor` tries the judge",
                    key="unanswered",
                )

    # --- the ends -----------------------------------------------------------------------------

    def close(self, timeout: float = 30.0) -> bool:
        """Evaluate what is queued, for at most `timeout` seconds, then stop for good.

        Remaining runs are counted `shutdown`. A call from `on_result` cannot wait: no more runs are
        accepted, and those in the queue are still evaluated.

        Returns:
            Whether everything was evaluated.
        """
        deadline = time.monotonic() + timeout
        self._hand_over_ended()
        self.counters.is_closed = True
        if self.is_own_thread:
            return False  # the next close from elsewhere, or the exit's, waits for what is queued
        finished = self.queue.wait(self.counters, timeout)
        is_first, self.counters.is_given_up = not self.counters.is_given_up, True
        self.queue.give_up(self.counters)
        if not finished and is_first:
            RUNTIME.call(self.queue.cancel, self.counters)
            # Give cancelled evaluations a moment to count themselves and release their connections.
            left = max(0.5, deadline - time.monotonic())
            if not self.queue.wait(self.counters, left, whatever=True):
                self.queue.count_stuck(self.counters)
        finished = self.sinks.flush(max(0.25, deadline - time.monotonic())) and finished
        return RUNTIME.let_go(self._uses, max(0.25, deadline - time.monotonic())) and finished

    def _hand_over_ended(self) -> bool:
        in_time = [each.hand_over_ended() for each in list(self._holding)]
        return all(in_time)

    def sweep_later(self, delay: float, sweepable: Sweepable) -> bool:
        """Schedule a sweep on the worker's thread, in `delay` seconds or sooner; for adapters.

        Returns:
            False if the monitor is off or closed, so that there will be no sweep.
        """
        if not self._is_enabled or self.counters.is_closed:
            return False
        if self._reporter is not None:
            self._reporter.prepare()  # a run may end only after the main thread has
        if isinstance(sweepable, HoldsRuns):
            self._holding.add(sweepable)
        return RUNTIME.sweep_later(delay, sweepable)

    def stats(self) -> MonitorStats:
        """Counts of all runs by outcome, and of everything around them."""
        stats = replace(
            self.counters.snapshot(),
            queued=self.queue.size,
            queued_bytes=self.queue.bytes,
            sampling=self.sampler.counts(),
            sinks=self.sinks.stats(),
        )
        if self._publisher is not None:
            return replace(stats, executor=self._publisher.executor)
        if self._scorer is None:
            return stats
        stats = replace(stats, executor=self._scorer.executor, restarts=self._scorer.restarts)
        limits = self._scorer.protection
        if limits is None:
            return stats
        return replace(
            stats, breaker=limits.breaker, budget=limits.budget(), limits_storage=limits.storage
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Monitors are parts of chains, which frameworks copy: a copy is the same monitor.
    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        kind = type(self).__name__
        raise TypeError(
            f"a {kind} has a thread and a queue and cannot be pickled or sent to another process; "
            f"build one there, for instance in the worker's initializer"
        )


def _say_what_it_costs(judge: LLMJudge) -> None:
    if judge.costs_money is True:  # a mock answers any attribute with another
        name = f"{judge.name} ({judge.model})" if judge.model else judge.name
        _LOG_ONCE.message(
            name,
            f"every run is judged by {name}, which is paid by the call, and no budget is set: "
            "give sample_rate= or budget=Budget(usd_per_day=...)",
        )


def _note_level(threshold: float, pipeline: str, results: Mapping[str, EvaluationResult]) -> None:
    """Say once, after the first claims of a pipeline, how far its level is from the threshold."""
    if (pipeline, threshold) not in _LEVELS and len(_LEVELS) >= _MOST_LEVELS:
        return
    supports = _LEVELS.setdefault((pipeline, threshold), [])
    if supports is None:  # said already
        return
    # Loads the embedded judge, which a monitor with its own process does without until now.
    from ragaliq.judges.calibration import raw_support
    from ragaliq.judges.local.verdict import LEAST_UNLABELLED, threshold_of

    claims = next((each.claims for each in results.values() if each.claims), ())
    supports += [raw_support(claim) for claim in claims if claim.verdict]
    if len(supports) < LEAST_UNLABELLED:
        return
    _LEVELS[pipeline, threshold] = None
    found = threshold_of(supports)
    if abs(found - threshold) >= _CLOSE:
        of_it = ["--pipeline", pipeline] if pipeline else []
        logger.warning(
            "the claims of pipeline %r call for a threshold of %.2f; in force is %.2f: "
            "`%s -o level.json`, then calibration='level.json'",
            pipeline,
            found,
            threshold,
            shlex.join(["ragaliq", "calibrate", "--unlabelled", "STORE", *of_it]),
        )


def _is_judge_call(run: RunHandle) -> bool:
    """True if a judge's own call started a run that an adapter captured."""
    if run.awaited is not None or not isinstance(run.answered, RunLog):
        return False
    return JUDGE_CALLS.started(run.answered.query, run.ended_at)


def _release(limit: BudgetLedger | RateLimiter, timeout: float) -> None:
    RUNTIME.run(limit.aclose, timeout)
