"""The monitor: takes finished runs, has a sample of them judged, and reports."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Literal
from uuid import UUID

from ragaliq.core.checks import require_choice, require_positive
from ragaliq.core.draft import CaseDraft
from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.run import SpanTarget
from ragaliq.core.suppression import is_suppressed
from ragaliq.core.test_case import RAGTestCase
from ragaliq.evaluators.registry import EvaluatorSpec, resolve_evaluators
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.resolve import CalibrationSpec, JudgeSpec
from ragaliq.live.ending import EndingMonitor
from ragaliq.live.engine import Engine, EngineSettings
from ragaliq.live.enqueueing import Enqueueing, executor_at, leave_to_workers
from ragaliq.live.inline import InlineMode
from ragaliq.live.job import Framework
from ragaliq.live.lifecycle import watch_process
from ragaliq.live.open_run import OpenRun
from ragaliq.live.reporting import ResultCallback
from ragaliq.live.sampling import Sampler, Sampling
from ragaliq.live.scoring import LiveScorer
from ragaliq.records.sinks import SinkSet, SinkSpec
from ragaliq.scoring.execution import Executor
from ragaliq.scoring.limits.breaker import CircuitBreaker
from ragaliq.scoring.limits.budget import Budget
from ragaliq.scoring.limits.rate_limits import RateLimits
from ragaliq.scoring.scorer import Limits, Scorer
from ragaliq.scoring.settings import chosen_judge, read_settings
from ragaliq.telemetry.content import ContentPolicy, Redactor
from ragaliq.telemetry.emit import Emitter, TelemetryOptions, current_span_target
from ragaliq.worker.executor import JobExecutor

__all__ = ["Monitor"]

logger = logging.getLogger(__name__)


class Monitor(EndingMonitor):
    """Scores a sample of live answers off the request path.

    Everything a request touches (`begin`, `submit`, a ticket's end) takes microseconds, never
    blocks and never raises. Judging happens on one daemon thread with its own event loop, which
    starts with the first run and starts anew in forked children. At exit the monitor waits up to
    `exit_timeout` seconds for what is queued.

    Args:
        judge: `local` (embedded, without a key), `claude`, `local>claude` or a judge; by default
            from `RAGALIQ_JUDGE`, else `local`.
        calibration: What makes the judge's confidence a probability, or the file it is in; by
            default from `RAGALIQ_CALIBRATION`, else none.
        evaluators: What is measured: names, classes or evaluators.
        sample_rate: Share of runs to evaluate, 0 to 1; by default from `RAGALIQ_SAMPLE_RATE`,
            else 1.0. Decided by the trace id, or the run id outside any trace.
        sampling: What `sample_rate` cannot say: rates per pipeline and metric, rules, a cap.
        policy: What to do in awkward cases, for evaluators without a policy of their own.
        concurrency: Runs evaluated at the same time.
        max_queue: Runs that may wait; further ones are counted `queue_full`.
        max_queue_bytes: Bytes the texts of the waiting runs may take.
        deadline: Seconds each metric of a run may take.
        executor: Where judging happens: `thread`, or `process` for a child process, which leaves
            the application its interpreter. By default from `RAGALIQ_EXECUTOR`, else `process` for
            the embedded judge with ragaliq's own evaluators where it is possible, else `thread`.
            With a broker's address (`redis://`, `amqp://`, `nats://`, `kafka://`) runs are judged
            by `ragaliq worker` processes, with `sqlite:///runs.db` later by
            `ragaliq evaluate --pending`; judge, limits, breaker, sinks and content are then
            theirs to choose and must not be given here.
        niceness: How far the child process steps back for others, 0 (not at all) to 19.
        mode: `background`, or `inline` to have whoever ends a run wait for its result: then it is
            there when the chain's call returns. In a thread where an event loop runs nobody
            waits; use `await monitor.result()` there.
        inline_timeout: Seconds to wait in inline mode; after that the answer goes out, and the run
            is scored and counted in the background.
        budget: What judging may cost in an hour and a day; no limit by default.
        judge_limits: How often the judge may be asked in a minute; no limit by default.
        breaker: When to leave a failing judge alone; None never to.
        on_result: Called with each `Evaluation`, on a thread of its own; may be a coroutine
            function.
        on_result_timeout: Seconds a call of it may take.
        sinks: Where results are stored besides telemetry: `sqlite:///path`, or sink objects.
        capture_content: Whether the application's texts and the judge's words may enter telemetry
            and sinks; by default from the environment, else no.
        redact: Called with each text, and its kind, before it enters telemetry or a sink.
        exit_timeout: Seconds to wait for queued runs when the process ends.
        enabled: False turns the monitor into a no-op; by default from `RAGALIQ_ENABLED`.
        telemetry: The shape of what is emitted, and the providers; see `TelemetryOptions`.

    Raises:
        ConfigurationError: A setting is wrong, or the judge cannot be built.
    """

    def __init__(
        self,
        *,
        judge: JudgeSpec | str | None = None,
        calibration: CalibrationSpec | None = None,
        evaluators: Iterable[EvaluatorSpec] = ("faithfulness", "relevance"),
        sample_rate: float | None = None,
        sampling: Sampling | None = None,
        policy: ScoringPolicy = ScoringPolicy.LIVE,
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
        exit_timeout: float = 10.0,
        enabled: bool | None = None,
        telemetry: TelemetryOptions | None = None,
    ) -> None:
        given = dict(locals())  # the arguments, and nothing else yet
        settings = read_settings()
        require_positive(deadline=deadline, inline_timeout=inline_timeout)
        require_choice(mode, "background", "inline", name="mode")
        self.evaluators = tuple(
            evaluator.with_default_policy(policy) for evaluator in resolve_evaluators(evaluators)
        )
        metrics = [evaluator.name for evaluator in self.evaluators]
        self._sampler = Sampler.of(
            sampling, sample_rate, general=settings.sample_rate, metrics=metrics
        )
        self._enabled = settings.enabled if enabled is None else enabled
        content = ContentPolicy.resolve(capture_content=capture_content, redact=redact)
        self._emitter = emitter = Emitter(content, telemetry)
        self._exit_timeout = exit_timeout
        self.judge: LLMJudge | None = None  # workers elsewhere have one of their own
        scorer: LiveScorer | Enqueueing
        if (elsewhere := executor_at(executor)) is not None:
            leave_to_workers(given, Monitor)
            scorer = Enqueueing(elsewhere, metrics, failed=emitter.metrics.publish_failed)
            self._sinks = SinkSet(())
        else:
            self.judge = chosen_judge(settings, judge, calibration)
            judging = Scorer(
                self.judge,
                self.evaluators,
                deadline=deadline,
                limits=Limits(budget=budget, judge_limits=judge_limits, breaker=breaker),
                executor=settings.executor if executor is None else str(executor),
                niceness=niceness,
                telemetry=emitter,
                sinks=sinks,
            )
            self._sinks = judging.sinks
            scorer = LiveScorer(judging)
        self._engine = Engine(
            EngineSettings(
                scorer=scorer,
                concurrency=concurrency,
                max_queue=max_queue,
                max_queue_bytes=max_queue_bytes,
                on_result=on_result,
                on_result_timeout=on_result_timeout,
                inline=InlineMode(inline_timeout) if mode == "inline" else None,
            )
        )
        self._emitter.watch(self._engine.worker, self._engine.tally)
        watch_process(self)

    def __repr__(self) -> str:
        names = ", ".join(evaluator.name for evaluator in self.evaluators)
        judge = self.judge.name if self.judge else None
        return f"Monitor(judge={judge!r}, evaluators=({names}))"

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
        if not self._enabled or is_suppressed():
            return None
        if self._engine.inline is not None:
            self._engine.inline.began(str(run_id))
        tally = self._engine.tally
        try:
            decision = self._sampler.begin(run_id, pipeline)
        except Exception as error:  # noqa: BLE001 - the application's request must not notice
            logger.debug("a run could not be begun: %s", type(error).__name__)
            tally.start()
            tally.end("incomplete_run", "internal_error")
            return None
        if decision is None:
            tally.sampled_out()
            return None
        tally.start()
        return OpenRun(
            str(run_id),
            pipeline=pipeline,
            framework=framework,
            decision=decision,
            engine=self._engine,
        )

    def submit(
        self,
        case: RAGTestCase | CaseDraft,
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
        ticket = self.begin(run_id or str(getattr(case, "id", "")), pipeline=pipeline)
        return ticket is not None and ticket.submit(case, target=target or current_span_target())

    def feedback(self, run_id: object, value: float) -> bool:
        """Tell what a user thought of an answer; never raises. Needs an `OnFeedback` rule.

        Args:
            run_id: The run's id, or the id of the trace it was in (32 hex digits).
            value: Such as True or False for a thumb up or down; the rule says what is bad.

        Returns:
            Whether a run will be evaluated for it, which nothing had chosen so far.
        """
        return self._enabled and self._sampler.feedback(str(run_id), value)
