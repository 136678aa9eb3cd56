"""The monitor: takes finished runs, has a sample of them judged, and reports."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, Literal, NoReturn, Self, TypedDict, Unpack, overload
from uuid import UUID, uuid4

from ragaliq.capture import RunLog
from ragaliq.core.checks import require_choice, require_positive, takes_only
from ragaliq.core.complaints import Complaints
from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.results import Evaluation
from ragaliq.core.run import SpanTarget
from ragaliq.core.suppression import is_suppressed
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import ConfigurationError, NotEvaluated, RagaliqError
from ragaliq.evaluators.registry import EvaluatorSpec, resolve_evaluators
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.resolve import CalibrationSpec, JudgeSpec
from ragaliq.live.engine import Engine, ResultCallback, living_engine
from ragaliq.live.enqueueing import Enqueueing, executor_at, leave_to_workers
from ragaliq.live.lifecycle import Sweepable
from ragaliq.live.lifespan import Capture
from ragaliq.live.run import Framework, OpenRun, Receipt
from ragaliq.live.sampler import Decision, Sampler
from ragaliq.live.sampling import Choice, Sampling
from ragaliq.live.stats import MonitorStats, Tally
from ragaliq.live.tracing import F, Retrieved, add_context, traced
from ragaliq.records.sinks import SinkSpec
from ragaliq.scoring.execution import Executor
from ragaliq.scoring.limits.breaker import CircuitBreaker
from ragaliq.scoring.limits.budget import Budget
from ragaliq.scoring.limits.protection import Limits
from ragaliq.scoring.limits.rate_limits import RateLimits
from ragaliq.scoring.scorer import Scorer
from ragaliq.scoring.settings import chosen_judge, read_settings
from ragaliq.telemetry.content import ContentPolicy, Redactor
from ragaliq.telemetry.emit import Emitter, TelemetryOptions, current_span_target
from ragaliq.telemetry.providers import providers_in_use
from ragaliq.worker.executor import JobExecutor

logger = logging.getLogger(__name__)

_COMPLAINTS = Complaints(logger)

_DEFAULT_TIMEOUT = 30.0
_VARIABLES = ("RAGALIQ_", "OTEL_", "ANTHROPIC_", "OPENAI_")
_REQUESTED = Choice(reason="requested")
_UNDECIDED = Decision(0.0, None)


class RunDetails(TypedDict, total=False):
    """Where an answer comes from; every field is optional.

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

    What a request touches (`begin`, `submit`, a ticket's end) takes microseconds, never blocks and
    never raises. Evaluation runs on one daemon thread with its own event loop, which starts with
    the first run, and once more in forked children. At exit the monitor waits up to `exit_timeout`
    seconds for queued runs.

    Monitors with equal arguments (the same judge object, the same functions) share thread, child
    process, queue, limits and sinks, so that one may be made for each request; each has its own
    counts. What they share ends with the last of them. Make other monitors once.

    Args:
        judge: `local` (embedded, without a key), `claude`, `local>claude` or a judge object; by
            default from `RAGALIQ_JUDGE`, else `local`.
        calibration: A calibration of the judge's confidence, or its file; by default from
            `RAGALIQ_CALIBRATION`, else none.
        metrics: What is measured: names, classes or evaluators; by default faithfulness, and
            relevance where the judge is a language model; with a broker, what its workers measure.
        sample_rate: Share of runs to evaluate, 0 to 1; by default from `RAGALIQ_SAMPLE_RATE`, else
            1.0.
        sampling: Rates per pipeline and metric, rules, a cap; instead of `sample_rate`.
        policy: Scoring policy of evaluators without their own.
        declines: The application's own ways to decline: texts, or regular expressions between
            slashes. Such an answer has the status `answer_refused` and no score.
        concurrency: Runs evaluated at the same time.
        max_queue: Runs that may wait; further ones are counted `queue_full`.
        max_queue_bytes: Bytes of text that the waiting runs may hold.
        deadline: Seconds for each metric of a run.
        executor: Where evaluations run: `thread`, or `process` for a child process. By default from
            `RAGALIQ_EXECUTOR`, else `process` for the embedded judge or a local small one with
            ragaliq's own evaluators, else `thread`. With a broker's address (`redis://`, `amqp://`,
            `nats://`, `kafka://`) `ragaliq worker` processes evaluate; with `sqlite:///runs.db`
            `ragaliq evaluate --pending` does later. Judge, limits, breaker, sinks and content are
            then set there, not here.
        niceness: Priority that the child process gives to others, 0 (none) to 19: on Linux it
            judges then only while a processor has nothing else to do.
        mode: `background`, or `inline`: the call that ends a run waits for its result. In a thread
            with a running event loop it does not wait; use `await monitor.result()`.
        inline_timeout: Seconds to wait in inline mode; after that the run is scored and counted in
            the background.
        budget: Limits on cost by hour and day; none by default.
        judge_limits: Limits on the judge's calls by minute; none by default.
        breaker: When to pause a failing judge; None never does.
        on_result: Called with each `Evaluation`, on its own thread; may be a coroutine function.
        on_result_timeout: Seconds for each such call.
        sinks: Where results are stored besides telemetry: `sqlite:///path`, or sink objects.
        capture_content: Whether texts may enter telemetry and sinks; by default from the
            environment, else no.
        redact: Called with each text, and its kind, before it enters telemetry or a sink.
        redact_for_judge: Called with each text of a case, and its kind (`question`, `answer`,
            `chunk`), before the judge sees it; results show what it returns.
        exit_timeout: Seconds to wait for queued runs when the process ends.
        enabled: False turns the monitor off; by default from `RAGALIQ_ENABLED`.
        telemetry: What is emitted, and the providers; see `TelemetryOptions`.

    Raises:
        ConfigurationError: A setting is wrong, or the judge cannot be built.
    """

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
        executor: Executor | JobExecutor | str | None = None,
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
        given = {name: value for name, value in locals().items() if name != "self"}
        given["metrics"] = metrics = _listed(metrics)
        given["declines"] = declines = (declines,) if isinstance(declines, str) else tuple(declines)
        given["sinks"] = sinks = _listed(sinks)
        given["environment"] = {
            name: value for name, value in os.environ.items() if name.startswith(_VARIABLES)
        }
        settings = read_settings()
        self._is_enabled = settings.enabled if enabled is None else enabled
        self.tally = Tally()
        engine = living_engine(given)
        if engine is None or not engine.add(self):
            require_positive(deadline=deadline, inline_timeout=inline_timeout)
            require_choice(mode, "background", "inline", name="mode")
            policy = policy.with_declines(declines)
            content = ContentPolicy.resolve(capture_content=capture_content, redact=redact)
            emitter = Emitter(content, telemetry)
            scorer: Scorer | Enqueueing
            if (elsewhere := executor_at(executor)) is not None:
                leave_to_workers(given, Monitor)
                # What is not named is what the workers measure.
                named = () if metrics is None else resolve_evaluators(metrics, policy=policy)
                scorer = Enqueueing(elsewhere, named, emitter)
            else:
                scorer = Scorer(
                    chosen_judge(settings, judge, calibration),
                    metrics,
                    policy=policy,
                    deadline=deadline,
                    limits=Limits(budget=budget, judge_limits=judge_limits, breaker=breaker),
                    executor=settings.executor if executor is None else str(executor),
                    niceness=niceness,
                    redact_for_judge=redact_for_judge,
                    telemetry=emitter,
                    sinks=sinks,
                )
                rate = settings.sample_rate if sample_rate is None else sample_rate
                if budget is None and sampling is None and rate == 1.0:
                    _say_what_it_costs(scorer.judge)
            measured = [evaluator.name for evaluator in scorer.metrics]
            engine = Engine(
                scorer,
                Sampler(sampling, sample_rate, general=settings.sample_rate, metrics=measured),
                given,
                concurrency=concurrency,
                max_queue=max_queue,
                max_queue_bytes=max_queue_bytes,
                on_result=on_result,
                on_result_timeout=on_result_timeout,
                inline_timeout=inline_timeout if mode == "inline" else None,
                exit_timeout=exit_timeout,
            )
            engine.add(self)
        self._engine = engine
        self.metrics, self.judge = engine.metrics, engine.judge

    def __repr__(self) -> str:
        names = ", ".join(evaluator.name for evaluator in self.metrics)
        judge = self.judge.name if self.judge else None
        return f"Monitor(judge={judge!r}, metrics=({names}))"

    # --- the request path ---------------------------------------------------------------------

    def begin(
        self, run_id: str | UUID, *, pipeline: str = "", framework: Framework = ""
    ) -> OpenRun | None:
        """Announce a run that has just started.

        Args:
            run_id: Unique id of the run; decides sampling outside a trace.
            pipeline: The application's name for the chain.
            framework: The framework that runs it.

        Returns:
            A ticket to end the run with, or None when it cannot be evaluated any more: sampled out
            (counted), inside `suppress()`, or the monitor is off. With rules, what becomes of a run
            is decided when its ticket ends.
        """
        if not self._is_enabled or is_suppressed():
            return None
        engine = self._engine
        try:
            decision = engine.sampler.begin(run_id, pipeline)
            # Of most runs of most applications nothing is asked but this decision.
            name = "" if decision is None and engine.inline is None else str(run_id)
        except Exception as error:  # noqa: BLE001 - the application's request must not notice
            logger.debug("a run could not be begun: %s", type(error).__name__)
            OpenRun(engine, self.tally, "", _UNDECIDED).discard("internal_error")
            return None
        if engine.inline is not None:
            engine.inline.began(name)
        if decision is None:
            self.tally.sampled_out()
            return None
        return OpenRun(engine, self.tally, name, decision, pipeline=pipeline, framework=framework)

    def can_sample(self, trace_id: str) -> bool:
        """Whether a run in this trace may be evaluated; a collector need not keep others.

        Args:
            trace_id: 32 lower-case hex digits.
        """
        return self._is_enabled and self._engine.sampler.can_choose(trace_id)

    def submit(
        self,
        case: RAGTestCase | RunLog,
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
        run = self.begin(run_id or str(getattr(case, "id", "")), pipeline=pipeline)
        return run is not None and run.submit(case, target=target or current_span_target())

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
        """Follow each call of a function that answers: for applications without a framework.

        What `add_context` is given inside the call is the answer's context. Errors of the function
        are the application's, and counted `errored`.

        Args:
            function: A function or coroutine function; `@monitor.trace` and
                `@monitor.trace(pipeline=...)` both work.
            pipeline: The application's name for it; by default the function's.
            question: The parameter that holds the question; by default the first text given.
            answer: Makes the answer's text from what the function returns; by default that is it.

        Raises:
            ConfigurationError: The function yields its answer in parts, or has no such parameter.
        """
        if function is None:
            return lambda given: traced(
                self, given, pipeline=pipeline, question=question, answer=answer
            )
        return traced(self, function, pipeline=pipeline, question=question, answer=answer)

    @staticmethod
    def add_context(*chunks: Retrieved) -> None:
        """Note what was retrieved, in rank order, inside a call that `trace` follows.

        Outside any it does nothing.

        Args:
            *chunks: Texts, or `ContextChunk` and `Passage` with ids, scores and metadata.
        """
        add_context(*chunks)

    def feedback(self, run_id: object, value: float) -> bool:
        """Tell what a user thought of an answer; never raises. Needs an `OnFeedback` rule.

        Args:
            run_id: The run's id, or the id of the trace it was in (32 hex digits).
            value: Such as True or False for a thumb up or down; the rule says what is bad.

        Returns:
            Whether a run will be evaluated for it, which nothing had chosen so far.
        """
        if not self._is_enabled:
            return False
        is_chosen = False
        try:
            for run, choice in self._engine.sampler.feedback(str(run_id), value):
                is_chosen |= self._engine.submit(run, choice)
        except Exception as error:  # noqa: BLE001 - the application's request must not notice
            logger.debug("feedback could not be taken: %s", type(error).__name__)
        return is_chosen

    # --- results that somebody waits for -------------------------------------------------------

    @property
    def is_enabled(self) -> bool:
        """Whether the monitor evaluates anything at all."""
        return self._is_enabled

    def evaluate(
        self,
        case: RAGTestCase | RunLog,
        *,
        timeout: float = _DEFAULT_TIMEOUT,
        **run: Unpack[RunDetails],
    ) -> Evaluation:
        """Evaluate an answer now and wait for the result.

        The run takes the way of every other: queue, budgets, judge, telemetry, `on_result`; it is
        counted once. Only sampling is skipped.

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
        if self._engine.is_own_thread:
            raise RuntimeError(
                "monitor.evaluate() was called on the monitor's own thread and would wait for "
                "itself; make on_result a coroutine function and use `await monitor.aevaluate()`"
            )
        return self._requested(case, run).wait(timeout)

    async def aevaluate(
        self,
        case: RAGTestCase | RunLog,
        *,
        timeout: float = _DEFAULT_TIMEOUT,  # noqa: ASYNC109 - as in evaluate
        **run: Unpack[RunDetails],
    ) -> Evaluation:
        """`evaluate` without blocking the event loop; may also be awaited in `on_result`.

        What is evaluated from inside `on_result` is not reported to it again.
        """
        return await self._requested(case, run).await_result(timeout)

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
        return Capture(
            self, timeout=timeout, providers=providers_in_use(self._engine.emitter.options)
        )

    @asynccontextmanager
    async def lifespan(
        self,
        app: object = None,  # noqa: ARG002 - what an ASGI framework passes
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - threads are waited for
    ) -> AsyncIterator[None]:
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
        try:
            yield
        finally:
            # Made only now, when the application has set its telemetry up.
            within = self._engine.exit_timeout if timeout is None else timeout
            async with self.capture(timeout=within) as capture:
                pass
            if not capture.complete:
                await asyncio.to_thread(self.close, 0.0)

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until every run accepted so far is evaluated; later ones are not waited for.

        Returns:
            False when `timeout` seconds were not enough, or when called from `on_result`.
        """
        return self._engine.flush(timeout, self.tally)

    async def aflush(self, timeout: float = 30.0) -> bool:  # noqa: ASYNC109 - as in flush
        """`flush` without blocking the event loop."""
        return await asyncio.to_thread(self.flush, timeout)

    def _requested(self, case: RAGTestCase | RunLog, details: RunDetails) -> Receipt:
        """Have a run judged that somebody waits for."""
        if not self._is_enabled:
            raise NotEvaluated("disabled")
        if self.judge is None:
            raise ConfigurationError(
                "this monitor's runs are judged by workers elsewhere: results do not come back to "
                "be waited for; use a monitor with executor='thread' or 'process'"
            )
        if not isinstance(case, RAGTestCase | RunLog):
            raise TypeError(f"evaluate takes a RAGTestCase or a RunLog, not {type(case).__name__}")
        receipt = Receipt()
        run = OpenRun(
            self._engine,
            self.tally,
            details.get("run_id") or uuid4().hex,
            Decision(0.0, _REQUESTED),
            pipeline=details.get("pipeline", ""),
            framework=details.get("framework", ""),
            receipt=receipt,
        )
        target = details.get("target") or current_span_target()
        run.submit(case, target=target, session_id=details.get("session_id"))
        return receipt

    # --- the ends -----------------------------------------------------------------------------

    def close(self, timeout: float = 30.0) -> bool:
        """Evaluate what is queued, at most for `timeout` seconds, then stop for good.

        Runs left over are counted `shutdown`. Called from `on_result` it cannot wait: no more runs
        are accepted, and those in the queue are still evaluated.

        Returns:
            Whether everything was evaluated.
        """
        return self._engine.close(timeout, self.tally)

    def sweep_later(self, delay: float, sweepable: Sweepable) -> bool:
        """Sweep something on the worker's thread, in `delay` seconds or sooner; for adapters.

        Returns:
            False when it will not be done: the monitor is off or closed.
        """
        is_open = self._is_enabled and not self.tally.is_closed
        return is_open and self._engine.sweep_later(delay, sweepable)

    def stats(self) -> MonitorStats:
        """What became of every run so far."""
        return self._engine.stats(self.tally)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Monitors are handed around inside chains, which frameworks copy: a copy is the same monitor.
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
        _COMPLAINTS.once(
            name,
            f"every run is judged by {name}, which is paid by the call, and no budget is set: "
            "give sample_rate= or budget=Budget(usd_per_day=...)",
        )


def _listed(given: Iterable[Any] | None) -> Any:
    """What may be read more than once, and stays as it was given.

    A name alone is refused or read where it is used.
    """
    return given if given is None or isinstance(given, str) else tuple(given)
