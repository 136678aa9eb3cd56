"""`Scorer`, the only place where a case is evaluated.

Cases of every origin (a run of an application, a file, a list, a table, a test, a message) pass
here: limits, metrics, the judge in this thread or in a child process, telemetry, sinks. A child
process that builds a run's case may have evaluated it at once.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import MappingProxyType, TracebackType
from typing import Any

from ragaliq.core.checks import require_positive
from ragaliq.core.concurrency import pause_before_retry
from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.results import Evaluation, EvaluationResult, JudgeUsage
from ragaliq.core.run import RunInfo
from ragaliq.core.test_case import ContextChunk, RAGTestCase
from ragaliq.errors import (
    BudgetExceeded,
    CircuitOpenError,
    ConfigurationError,
    RedactionError,
    StoreError,
)
from ragaliq.evaluators.case import evaluate_case
from ragaliq.evaluators.evaluator import Evaluator
from ragaliq.evaluators.registry import EvaluatorSpec, resolve_evaluators
from ragaliq.judges.base import LLMJudge, identity_of
from ragaliq.judges.resolve import JudgeSpec, resolve_judge
from ragaliq.records.record import evaluation_id, run_id_of
from ragaliq.records.sinks import ErrorHook, SinkLimits, SinkSet, SinkSpec
from ragaliq.scoring.execution import Executor, ProcessExecutor, child_processes
from ragaliq.scoring.limits.breaker import NOT_ASKED
from ragaliq.scoring.limits.protection import Limits, Protection
from ragaliq.telemetry import names
from ragaliq.telemetry.content import ContentKind, ContentPolicy, Redactor
from ragaliq.telemetry.emit import Emitter, TelemetryOptions
from ragaliq.telemetry.metrics import MetricsRecorder

logger = logging.getLogger(__name__)

_LONGEST_PAUSE = 60.0
# Seconds to wait for sinks after the last evaluation.
_SINKS_WITHIN = 60.0


@dataclass
class CostCap:
    """Cap on the cost of evaluation, in US dollars.

    Attributes:
        max_cost: Cost at which no further case begins; None for no cap. With 0, free evaluations
            continue.
        spent: Tokens, requests and money so far.
        option: Name of the user's option, for messages.
    """

    max_cost: float | None = None
    spent: JudgeUsage = field(default_factory=JudgeUsage, kw_only=True)
    option: str = field(default="max_cost", kw_only=True)

    def __post_init__(self) -> None:
        cost = self.max_cost
        # NaN would never be reached, and a string would only fail after the first paid case.
        if cost is not None and not (isinstance(cost, int | float) and cost >= 0):
            raise ConfigurationError(f"{self.option} must be US dollars, got {cost!r}")

    def require_price(self, judge: LLMJudge) -> None:
        """Refuse a cap before the first request, if it is known that replies have no price.

        Raises:
            ConfigurationError: There is a cap, but the price of the judge's model is not known.
        """
        if self.max_cost is not None and judge.is_unpriced is True:
            raise self._unpriced(f"model {judge.model}" if judge.model else f"judge {judge.name}")

    def _unpriced(self, what: str) -> ConfigurationError:
        return ConfigurationError(
            f"{self.option} cannot be held: the price of {what} is not known; choose a model that "
            "has a list price, or set no cap"
        )

    @property
    def is_reached(self) -> bool:
        """True if nothing more may begin.

        Raises:
            ConfigurationError: There is a cap, but the judge's price is not known.
        """
        if self.max_cost is None:
            return False
        cost = self.spent.cost_usd
        if cost is None:
            raise self._unpriced("this judge's model")
        return cost > 0 and cost >= self.max_cost

    @property
    def reached(self) -> str:
        """Message for the error once `is_reached`."""
        return f"${self.spent.cost_usd or 0.0:.4f} is spent, of {self.option} {self.max_cost:g}"


class _NoTextError(Exception):
    """`redact_for_judge` did not return a string; the message is the class it returned."""


class Scorer(AbstractAsyncContextManager["Scorer"]):
    """Evaluates cases, one at a time or as a stream, several concurrently.

    It belongs to the event loop that first uses it. As an asynchronous context manager, it flushes
    the sinks and releases everything at the end.

    Args:
        judge: `local`, `claude`, or a judge.
        metrics: Metrics: names, classes or instances; by default the judge's `default_metrics`.
        policy: Policy of metrics without their own.
        deadline: Most seconds for each metric of a case; None for no limit.
        limits: Limits between cases and the judge, or a shared `Protection`; None for none.
        executor: Place of evaluation: `thread`, `process`, a process that is shared, or None for a
            process if it is useful and possible.
        processes: Number of processes.
        niceness: Niceness of such a process, 0 to 19: at 19 on Linux it only uses idle processors.
        telemetry: Shape and providers of the telemetry, or a shared emitter.
        redact_for_judge: Called with each text of a case, and its kind (`question`, `answer`,
            `chunk`), before the judge sees it; results show what it returns, and None empties the
            text. If it raises, nothing is sent.
        content: Whether the application's texts may enter telemetry and sinks; by default from the
            environment, else no. An emitter has its own setting.
        sinks: Stores of results: `sqlite:///path`, sink objects, or a `SinkSet`.
        sink_limits: Queue size, time limit and retries of each sink.
        attempts: Most attempts while no metric gets an answer.
        backoff: Seconds before the second attempt; each later pause is twice as long.
        waits_for_judge: Seconds a case waits for a breaker that is open.
        waits_for_sinks: Whether a case is done only when a sink has stored its record.
        keeps_judge: Whether the judge stays open at the end because it is shared.

    Attributes:
        judge: The judge.
        metrics: The metrics.
        emitter: Emits telemetry.
        sinks: Store results.
        deadline: Seconds for each metric of a case; None for no limit.
        protection: The limits with their state in this process; None without limits.

    Raises:
        ConfigurationError: A setting is wrong, the judge cannot be built, or it cannot decide one
            of the metrics.
    """

    def __init__(
        self,
        judge: JudgeSpec | str,
        metrics: Iterable[EvaluatorSpec] | None = None,
        *,
        policy: ScoringPolicy = ScoringPolicy.RAGALIQ,
        deadline: float | None = None,
        limits: Limits | Protection | None = None,
        executor: str | ProcessExecutor | None = "thread",
        processes: int = 1,
        niceness: int = 0,
        telemetry: TelemetryOptions | Emitter | None = None,
        redact_for_judge: Redactor | None = None,
        content: ContentPolicy | None = None,
        sinks: Iterable[SinkSpec] | SinkSet = (),
        sink_limits: SinkLimits | None = None,
        attempts: int = 1,
        backoff: float = 1.0,
        waits_for_judge: float = 0.0,
        waits_for_sinks: bool = False,
        keeps_judge: bool = False,
    ) -> None:
        if deadline is not None:
            require_positive("Scorer", deadline=deadline)
        self.judge = resolve_judge(judge)
        self.metrics = resolve_evaluators(metrics, judge=self.judge, policy=policy)
        if redact_for_judge is not None and not callable(redact_for_judge):
            raise ConfigurationError(
                "redact_for_judge must be a function of a text and its kind, got "
                f"{type(redact_for_judge).__name__}"
            )
        for evaluator in self.metrics:
            evaluator.require(self.judge)
        if isinstance(telemetry, Emitter):
            self.emitter = telemetry
        else:
            self.emitter = Emitter(content or ContentPolicy.resolve(), telemetry)
        if isinstance(sinks, SinkSet):
            self.sinks = sinks
        else:
            self.sinks = SinkSet(
                sinks,
                content=self.emitter.content,
                limits=sink_limits,
                on_error=sink_failed(self.emitter.metrics),
            )
        self.deadline, self._redact = deadline, redact_for_judge
        self._attempts, self._backoff = attempts, backoff
        self._waits_for_judge, self._waits_for_sinks = waits_for_judge, waits_for_sinks
        self._keeps_judge = keeps_judge
        # A cascade's method; a user's judge may use the name for something else.
        self._agreement: Callable[[], Sequence[Any]] | None = getattr(self.judge, "agreement", None)
        self._agreed: Sequence[Any] = ()
        # A judge's own `fingerprint` may read files, so the first call is made in another thread. A
        # mock's class has no such method.
        own = getattr(type(self.judge), "fingerprint", LLMJudge.fingerprint)
        self._is_fingerprinted = own is LLMJudge.fingerprint
        self.protection = None
        if isinstance(limits, Protection):
            self.protection = limits
        elif limits is not None:
            self.protection = Protection(limits, self.emitter.metrics)
        self._owns_processes = not isinstance(executor, ProcessExecutor)
        if isinstance(executor, ProcessExecutor):
            self._processes = [executor]
        else:
            self._processes = child_processes(
                executor,
                processes,
                judge=self.judge,
                metrics=self.metrics,
                niceness=niceness,
            )
        self._round_robin = itertools.cycle(self._processes)

    # --- one case -----------------------------------------------------------------------------

    async def score(
        self,
        case: RAGTestCase,
        *,
        metrics: Collection[str] = (),
        lag: float = 0.0,
        measured: Mapping[str, EvaluationResult] | None = None,
    ) -> Evaluation:
        """Evaluate a case, emit and store the results.

        Args:
            case: Question, context and answer, and the run that gave it.
            metrics: Names of metrics; by default those that sampling chose for the run, else all.
            lag: Seconds since the end of a live run; 0 for all others.
            measured: Results that a child process measured when it built the case.

        Returns:
            A result for every metric. A failed one has a status of failure and no score.

        Raises:
            BudgetExceeded: The budget is used up; the judge was not asked.
            CircuitOpenError: The breaker is open; the judge was not asked.
            StoreError: With `waits_for_sinks`: no sink stored the record.
        """
        evaluation = await self.evaluate(case, metrics=metrics, lag=lag, measured=measured)
        stored = self.sinks.record(evaluation)
        if self._waits_for_sinks:
            outcomes = await asyncio.gather(*map(asyncio.wrap_future, stored))
            if "written" not in outcomes and {"failed", "dropped"} & set(outcomes):
                raise StoreError("no sink stored the result", kind="unrecorded")
        return evaluation

    async def evaluate(
        self,
        case: RAGTestCase,
        *,
        metrics: Collection[str] = (),
        lag: float = 0.0,
        measured: Mapping[str, EvaluationResult] | None = None,
    ) -> Evaluation:
        """Evaluate a case and emit the results, as in `score`, without storing them."""
        evaluators = self.chosen(metrics or case.evaluated_run.metric_probabilities)
        attempt = waits = 1
        until = time.monotonic() + self._waits_for_judge
        while True:
            is_last = attempt >= self._attempts
            evaluate = partial(self._attempt, case, evaluators, lag, measured, is_last=is_last)
            try:
                if self.protection is None:
                    evaluation = await evaluate()
                else:
                    evaluation = await self.protection.judge(case, evaluate)
            except CircuitOpenError:
                left = until - time.monotonic()
                if left <= 0:
                    raise
                pause = pause_before_retry(waits, first=self._backoff, longest=_LONGEST_PAUSE)
                pause, waits = min(left, pause), waits + 1
            else:
                if is_last or not _failed_for_now(evaluation.results):
                    return evaluation
                self.emitter.metrics.record(names.METRIC_JOBS, 1, {names.JOB_OUTCOME: "retried"})
                pause = pause_before_retry(attempt, first=self._backoff, longest=_LONGEST_PAUSE)
                attempt, measured = attempt + 1, None
            await asyncio.sleep(pause)

    async def _attempt(
        self,
        case: RAGTestCase,
        evaluators: Sequence[Evaluator],
        lag: float,
        results: Mapping[str, EvaluationResult] | None,
        *,
        is_last: bool,
    ) -> Evaluation:
        with self.emitter.evaluation(case, lag=lag) as emission:
            error = None
            if self._redact is not None:
                case, error = _redacted(case, self._redact)
            if error is not None:
                results = {each.name: each.failure_result(error, self.judge) for each in evaluators}
            elif not results and self._processes:
                process = next(self._round_robin)
                results = await process.evaluate(case, evaluators, deadline=self.deadline)
            if not results:
                if not self._is_fingerprinted:
                    # An interpreter that shuts down starts no thread; blocking the loop does not
                    # matter then.
                    with suppress(RuntimeError):
                        await asyncio.to_thread(self.judge.fingerprint)
                    self._is_fingerprinted = True
                results = await evaluate_case(case, evaluators, self.judge, deadline=self.deadline)
            if is_last or not _failed_for_now(results):
                emission.emit(results, case)
            else:
                emission.fail()
        if self._agreement is not None:
            self._record_agreement(self._agreement)
        return Evaluation(case=case, results=results, lag=lag)

    def _record_agreement(self, agreement: Callable[[], Sequence[Any]]) -> None:
        """Record how often the judges of a cascade agree, if that has changed; never raises."""
        try:
            now = agreement()
            if now == self._agreed:
                return
            self._agreed = now
            for pair in now:
                judges = {names.JUDGE_FIRST: pair.first, names.JUDGE_SECOND: pair.second}
                rates = {"accepted": pair.accepted_rate, "escalated": pair.escalated_rate}
                for route, rate in rates.items():
                    if rate is not None:
                        of = judges | {names.CLAIM_ROUTE: route}
                        self.emitter.metrics.record(names.METRIC_AGREEMENT, rate, of)
        except Exception as error:  # noqa: BLE001 - a judge of the user's may mean something else
            logger.debug("a judge's agreement could not be read: %s", type(error).__name__)
            self._agreement = None

    def measured_at_once(self, run: RunInfo) -> Sequence[Evaluator]:
        """Metrics that a child process evaluates right after it built a run's case.

        Empty if the case is redacted first, or if a limit may refuse it.
        """
        is_limited = self.protection is not None and self.protection.may_refuse
        if is_limited or self._redact is not None:
            return ()
        return self.chosen(run.metric_probabilities)

    def chosen(self, metrics: Collection[str]) -> Sequence[Evaluator]:
        """Select the metrics with these names; all of them if there are none."""
        if not metrics:
            return self.metrics
        return [evaluator for evaluator in self.metrics if evaluator.name in metrics]

    def unjudged(self, metrics: Collection[str] = ()) -> dict[str, EvaluationResult]:
        """Results of a case that the open breaker kept from the judge."""
        return {each.name: self._unjudged[each.name] for each in self.chosen(metrics)}

    def redacted(self, case: RAGTestCase) -> RAGTestCase:
        """Apply `redact_for_judge` to a case, as results show it."""
        return case if self._redact is None else _redacted(case, self._redact)[0]

    @cached_property
    def _unjudged(self) -> dict[str, EvaluationResult]:
        error = CircuitOpenError(NOT_ASKED)
        return {each.name: each.failure_result(error, self.judge) for each in self.metrics}

    async def is_recorded(self, case: RAGTestCase, metrics: Collection[str] = ()) -> bool:
        """Check whether a sink has the case's record, so that it was paid for already."""
        return await self.sinks.holds(self.record_id(case, metrics))

    def record_id(self, case: RAGTestCase, metrics: Collection[str] = ()) -> str:
        """Id that the record of a case will have; see `EvaluationRecord`."""
        name, model, *_ = identity_of(self.judge)
        scorers = [(each.name, name, model) for each in self.chosen(metrics)]
        return evaluation_id(case.evaluated_run, scorers)

    # --- many cases ---------------------------------------------------------------------------

    async def stream(
        self,
        cases: Iterable[RAGTestCase],
        *,
        concurrency: int = 8,
        pipeline: str = "",
        ended_at: float = 0.0,
        repeats: int = 1,
        skip: Set[str] = frozenset(),
        lacking: Mapping[str, Collection[str]] = MappingProxyType({}),
        cap: CostCap | None = None,
    ) -> AsyncGenerator[Evaluation]:
        """Evaluate cases and yield each evaluation as soon as it is done, in bounded memory.

        The next case is read only when there is room. When the consumer stops, so does the work.
        Sinks get an evaluation when the consumer asks for the next one, and so has kept it, or
        stops: one that was stored before it was kept would be stored twice after a kill.

        Args:
            cases: Cases, read lazily.
            concurrency: Cases evaluated concurrently in each process.
            pipeline: Pipeline of runs without a span, or without a pipeline of their own.
            ended_at: Unix time in seconds of runs without a span. In stores it separates
                evaluations of one case at several times.
            repeats: Evaluations of each case; see `run_id_of`.
            skip: Ids of runs that were evaluated before.
            lacking: Metrics without a result, by the id of a run that was evaluated before.
            cap: Cap on the total cost, to which a case's cost is added then too.

        Raises:
            BudgetExceeded: The cap is reached. Cases in progress were finished and yielded, since
                they were paid for; no further case was begun.
            ConfigurationError: There is a cap but the judge's price is not known.
        """
        is_cut = False

        def read_jobs() -> Iterator[tuple[int, RAGTestCase, Collection[str]]]:
            nonlocal is_cut
            for position, case in enumerate(cases):
                for repeat in range(repeats):
                    run_id = run_id_of(case.id, repeat)
                    if run_id in skip:
                        continue
                    if cap is not None and cap.is_reached:
                        is_cut = True
                        return
                    in_run = _in_run(case, run_id, pipeline, ended_at)
                    yield position, in_run, lacking.get(run_id, ())

        jobs, running = read_jobs(), dict[asyncio.Task[Evaluation], int]()
        at_once = concurrency * max(1, len(self._processes))
        try:
            while True:
                for position, case, metrics in itertools.islice(jobs, at_once - len(running)):
                    running[asyncio.create_task(self.evaluate(case, metrics=metrics))] = position
                if not running:
                    break
                finished, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in finished:
                    evaluation = replace(task.result(), position=running.pop(task))
                    try:
                        yield evaluation
                    finally:
                        self.sinks.record(evaluation)
                    if cap is not None:
                        cap.spent += evaluation.usage
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        if cap is not None and is_cut:
            raise BudgetExceeded(cap.reached)

    # --- state and end ------------------------------------------------------------------------

    @property
    def executor(self) -> Executor:
        """Executor in use now."""
        in_process = self._processes and not self._processes[0].gave_up
        return "process" if in_process else "thread"

    @property
    def restarts(self) -> int:
        """Number of restarts of the child processes."""
        return sum(process.restarts for process in self._processes)

    async def aclose(self) -> None:
        """Release judge, processes and the storage of limits; sinks are closed separately."""
        if self.protection is not None:
            await self.protection.aclose()
        for process in self._processes if self._owns_processes else ():
            await process.aclose()
        if not self._keeps_judge:
            await self.judge.aclose()

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.sinks.close, _SINKS_WITHIN)
        await self.aclose()


def _in_run(case: RAGTestCase, run_id: str, pipeline: str, ended_at: float) -> RAGTestCase:
    """Copy a case for one of its evaluations, with its run under this id; see `Scorer.stream`."""
    if case.run is None:
        run = RunInfo(run_id=run_id, pipeline=pipeline, ended_at=ended_at)
    else:
        update: dict[str, object] = {"run_id": run_id, "pipeline": case.run.pipeline or pipeline}
        update["metric_probabilities"] = {}  # all metrics are evaluated here
        if case.run.target is None:  # it may be the run of an earlier evaluation
            update["pipeline"] = pipeline or case.run.pipeline
            update["ended_at"] = ended_at or case.run.ended_at
        run = case.run.model_copy(update=update)
    return case.model_copy(update={"run": run})


def _failed_for_now(results: Mapping[str, EvaluationResult]) -> bool:
    """True if no metric got an answer from the judge, which a retry may fix."""
    return bool(results) and all(
        each.status.is_unanswered and each.error_type != RedactionError.__name__
        for each in results.values()
    )


def sink_failed(metrics: MetricsRecorder) -> ErrorHook:
    """Make the `on_error` hook of sinks: it counts failed attempts."""

    def count(sink: str, error_type: str) -> None:
        failure = {names.SINK_NAME: sink, names.ERROR_TYPE: error_type}
        metrics.record(names.METRIC_SINK_ERRORS, 1, failure)

    return count


def _redacted(case: RAGTestCase, redact: Redactor) -> tuple[RAGTestCase, RedactionError | None]:
    """Redact a case for the judge: the same replacements in all its texts.

    So redacted evidence is still found in its chunk. If `redact` raises, the case has no texts and
    the error is returned.
    """

    def of(text: str, kind: ContentKind) -> str:
        allowed: object = redact(text, kind)
        if allowed is None:
            return ""
        if not isinstance(allowed, str):  # a coroutine, or an object that may hold the text
            raise _NoTextError(type(allowed).__name__)
        return allowed

    def chunks(context: list[str | ContextChunk]) -> list[str | ContextChunk]:
        return [
            of(chunk, "chunk")
            if isinstance(chunk, str)
            else chunk.model_copy(update={"text": of(chunk.text, "chunk")})
            for chunk in context
        ]

    try:
        history = [
            turn.model_copy(
                update={
                    "text": of(turn.text, "question" if turn.role == "user" else "answer"),
                    "context": chunks(turn.context),
                }
            )
            for turn in case.history
        ]
        texts = {
            "name": of(case.name, "question"),
            "query": of(case.query, "question"),
            "context": chunks(case.context),
            "prompt_context": of(case.prompt_context, "chunk"),
            "history": history,
            # Offsets follow the lengths of the redacted answer.
            "citations": [
                each.model_copy(
                    update={
                        "start": len(of(case.response[: each.start], "answer")),
                        "end": len(of(case.response[: each.end], "answer")),
                        "quote": of(each.quote, "chunk"),
                        "source": of(each.source, "chunk"),
                    }
                )
                for each in case.citations
            ],
            "response": of(case.response, "answer"),
            "expected_answer": case.expected_answer and of(case.expected_answer, "answer"),
            "expected_facts": [of(fact, "answer") for fact in case.expected_facts],
        }
    except Exception as error:  # noqa: BLE001 - it must never let text through
        what = f"returned a {error}" if isinstance(error, _NoTextError) else ""
        what = what or f"raised {type(error).__name__}"
        blank = {"name": "", "query": "", "context": [], "response": "", "expected_facts": []}
        blank |= {"prompt_context": "", "history": [], "citations": []}
        return (
            case.model_copy(update=blank | {"expected_answer": None}),
            RedactionError(f"redact_for_judge {what}: nothing was sent"),
        )
    return case.model_copy(update=texts), None
