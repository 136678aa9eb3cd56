"""Many cases: bounded concurrency, progress, and a summary that leaves failures out of means."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from os import PathLike

from ragaliq.core.evaluator import Evaluator
from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.results import Evaluation, EvaluationResult, JudgeUsage
from ragaliq.core.sync import run_sync
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import ConfigurationError
from ragaliq.evaluators.case import evaluate_case
from ragaliq.evaluators.registry import EvaluatorSpec, resolve_evaluators
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.resolve import JudgeSpec, resolve_judge
from ragaliq.records.sinks import SinkSpec, SinkStats, offline_sinks
from ragaliq.records.summary import MetricSummary, Summary
from ragaliq.streaming import score_stream
from ragaliq.telemetry.content import Redactor
from ragaliq.traces.cases import run_of

__all__ = ["EvaluationRun", "MetricSummary", "evaluate", "evaluate_async"]

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], object]


@dataclass(frozen=True, kw_only=True)
class EvaluationRun(Sequence[Evaluation]):
    """Results in the order of the cases, with a summary.

    Attributes:
        cases: The results.
        metrics: Summary of each metric, by name.
        usage: Tokens, requests and money of the whole run.
        sinks: What became of the results in each sink, by name.
    """

    cases: tuple[Evaluation, ...]
    metrics: Mapping[str, MetricSummary]
    usage: JudgeUsage
    sinks: Mapping[str, SinkStats] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.cases)

    def __getitem__(self, index: int) -> Evaluation:  # type: ignore[override]
        return self.cases[index]

    def __iter__(self) -> Iterator[Evaluation]:
        return iter(self.cases)


def evaluate(
    cases: Iterable[RAGTestCase],
    *,
    evaluators: Iterable[EvaluatorSpec] = ("faithfulness", "relevance"),
    judge: JudgeSpec | str = "local",
    concurrency: int = 8,
    policy: ScoringPolicy = ScoringPolicy.RAGALIQ,
    on_progress: Progress | None = None,
    sinks: Iterable[SinkSpec] = (),
    pipeline: str = "",
    capture_content: bool | None = None,
    redact: Redactor | None = None,
) -> EvaluationRun:
    """`evaluate_async` for scripts and notebooks; works inside a running event loop too."""
    return run_sync(
        evaluate_async(
            cases,
            evaluators=evaluators,
            judge=judge,
            concurrency=concurrency,
            policy=policy,
            on_progress=on_progress,
            sinks=sinks,
            pipeline=pipeline,
            capture_content=capture_content,
            redact=redact,
        )
    )


async def evaluate_async(
    cases: Iterable[RAGTestCase],
    *,
    evaluators: Iterable[EvaluatorSpec] = ("faithfulness", "relevance"),
    judge: JudgeSpec | str = "local",
    concurrency: int = 8,
    policy: ScoringPolicy = ScoringPolicy.RAGALIQ,
    on_progress: Progress | None = None,
    sinks: Iterable[SinkSpec] = (),
    pipeline: str = "",
    capture_content: bool | None = None,
    redact: Redactor | None = None,
) -> EvaluationRun:
    """Score many cases.

    A case whose evaluation fails gets results with the status of the failure and no score, also
    under policies that raise for a single case: the other cases' results are never lost.

    Args:
        cases: What to evaluate.
        evaluators: What is measured: names, classes or evaluators.
        judge: `local`, `claude`, or a judge. `RAGALIQ_JUDGE` has no say here: what a script
            costs is read in the script.
        concurrency: Cases evaluated at the same time.
        policy: For evaluators without a policy of their own.
        on_progress: Called with (cases done, cases in all) after each case.
        sinks: Where results are stored besides: `sqlite:///path`, or sink objects. What became of
            them there is in the result's `sinks`; a sink that fails never fails the run.
        pipeline: Names what was evaluated, in sinks.
        capture_content: Whether the texts may enter sinks; by default from the environment, else
            no.
        redact: Called with each text, and its kind, before it enters a sink.

    Raises:
        ConfigurationError: A setting is wrong, or something else than cases was given.
    """
    if concurrency < 1:
        raise ConfigurationError(f"evaluate: concurrency must be at least 1, got {concurrency}")
    todo = _cases(cases)
    chosen = tuple(e.with_default_policy(policy) for e in resolve_evaluators(evaluators))
    decider = resolve_judge(judge)
    for evaluator in chosen:
        evaluator.require(decider)
    async with offline_sinks(
        sinks,
        capture_content=capture_content,
        redact=redact,
        cases=len(todo),
    ) as stores:

        def evaluated(result: Evaluation, done: int) -> None:
            stores.record(result)
            _tell(on_progress, done, len(todo))

        results = await _evaluate_all(
            todo, chosen, decider, concurrency, evaluated, pipeline=pipeline
        )
    summary = Summary(each.name for each in chosen)
    for evaluation in results:
        summary.add(evaluation)
    return EvaluationRun(
        cases=results,
        metrics=summary.metrics,
        usage=summary.usage,
        sinks=stores.stats(),
    )


def _cases(cases: Iterable[RAGTestCase]) -> list[RAGTestCase]:
    if isinstance(cases, str | PathLike):
        raise ConfigurationError(
            f"evaluate: cases must be RAGTestCase objects, not a {type(cases).__name__}; read a "
            "file by read_cases(path)"
        )
    if isinstance(cases, RAGTestCase):
        raise ConfigurationError("evaluate: cases must be a list; give [case] for a single one")
    todo = list(cases)
    for position, case in enumerate(todo):
        if not isinstance(case, RAGTestCase):
            raise ConfigurationError(
                f"evaluate: cases[{position}] must be a RAGTestCase, not a {type(case).__name__}; "
                "make one by RAGTestCase(query=..., context=[...], response=...), or read a file "
                "by read_cases(path)"
            )
    return todo


async def _evaluate_all(
    cases: Sequence[RAGTestCase],
    evaluators: Sequence[Evaluator],
    judge: LLMJudge,
    concurrency: int,
    evaluated: Callable[[Evaluation, int], None],
    *,
    pipeline: str,
) -> tuple[Evaluation, ...]:
    results: dict[int, Evaluation] = {}

    async def score(place: tuple[int, RAGTestCase]) -> Mapping[str, EvaluationResult]:
        return await evaluate_case(place[1], evaluators, judge)

    stream_of_results = score_stream(enumerate(cases), score, concurrency=concurrency)
    async with aclosing(stream_of_results) as stream:
        async for (position, case), outcome in stream:
            run = run_of(case, run_id=case.id, pipeline=pipeline, ended_at=time.time())
            results[position] = Evaluation(case=case, results=outcome, run=run)
            evaluated(results[position], len(results))
    return tuple(results[position] for position in range(len(cases)))


def _tell(on_progress: Progress | None, done: int, total: int) -> None:
    if on_progress is None:
        return
    try:
        on_progress(done, total)
    except Exception as error:  # noqa: BLE001 - results that were paid for must not be lost
        logger.warning("on_progress raised %s", type(error).__name__)
