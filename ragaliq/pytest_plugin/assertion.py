"""`assert_rag`, and the judges, costs and results that the tests of one run share."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rapidfuzz import fuzz

from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.printable import printable
from ragaliq.core.results import ClaimDetail, Evaluation, EvaluationResult, Status
from ragaliq.core.sync import run_sync
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import (
    BudgetExceeded,
    ConfigurationError,
    DatasetError,
    JudgeAPIError,
    JudgeError,
    JudgeInputError,
    JudgeRefusalError,
    JudgeTimeoutError,
    RagaliqError,
)
from ragaliq.evaluators import get_evaluator
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.language.sentences import split_sentences
from ragaliq.judges.resolve import JudgeSpec, resolve_judge
from ragaliq.offline.job import EvaluationJob
from ragaliq.pytest_plugin.current import OPTIONS, RUNS, SESSION
from ragaliq.records import EvaluationRecord, Summary, evaluation_record
from ragaliq.reports.wording import cost_of, number_of, why
from ragaliq.scoring.scorer import CostCap, Scorer
from ragaliq.telemetry import ContentPolicy, Emitter

if TYPE_CHECKING:
    import pytest

__all__ = ["RagAssertionError", "RagSession", "assert_rag"]

_MAX_CLAIMS = 20
_MAX_TEXT = 200
_FAILURES: Mapping[Status, type[JudgeError]] = {
    Status.JUDGE_ERROR: JudgeAPIError,
    Status.JUDGE_REFUSED: JudgeRefusalError,
    Status.JUDGE_TIMEOUT: JudgeTimeoutError,
    Status.TOO_LONG: JudgeInputError,
}
_LACKS = (Status.NO_CONTEXT, Status.NO_REFERENCE, Status.NO_QUESTION)


class RagAssertionError(AssertionError):
    """An answer missed a threshold.

    Attributes:
        results: Metric name to result.
    """

    # As for pytest's own outcomes: its line for a failed test then shows the name without the
    # module, which leaves room for the message.
    __module__ = "builtins"

    def __init__(self, message: str, results: Mapping[str, EvaluationResult]) -> None:
        super().__init__(message)
        self.results = results


def assert_rag(
    case: RAGTestCase,
    *,
    judge: JudgeSpec | str | None = None,
    policy: ScoringPolicy = ScoringPolicy.LIVE,
    **thresholds: float,
) -> Mapping[str, EvaluationResult]:
    """Fail unless the answer reaches every threshold.

    Args:
        case: Question, context and answer.
        judge: The judge; by default that of the test run.
        policy: Rules for an empty answer or a refusal; by default they have no score, which fails
            the test. `ScoringPolicy.RAGALIQ` passes an answer without claims.
        **thresholds: Metric to the score it must reach: `faithfulness=0.8`. Without any,
            `faithfulness` must reach its own threshold.

    Returns:
        Metric name to result.

    Raises:
        RagAssertionError: A threshold is missed; the message shows the unsupported claims.
        JudgeError: The judge failed, which says nothing about the answer.
        DatasetError: The case lacks what a metric needs.
        BudgetExceeded: The test run has reached its cap on cost.
        ConfigurationError: `case` is not a case, a metric does not exist, or a threshold is outside
            [0, 1].
    """
    __tracebackhide__ = True
    try:
        return _checked(case, judge, policy, thresholds)
    except (RagaliqError, RagAssertionError) as error:
        raise error.with_traceback(None) from error.__cause__  # pytest would show our code


def _checked(
    case: RAGTestCase,
    judge: JudgeSpec | str | None,
    policy: ScoringPolicy,
    thresholds: Mapping[str, float],
) -> Mapping[str, EvaluationResult]:
    if not isinstance(case, RAGTestCase):
        kind = type(case).__name__
        raise ConfigurationError(
            f"assert_rag: the case must be a RAGTestCase(query=..., context=[...], response=...), "
            f"not a {kind}"
        )
    session = session_of(RUNS[-1]) if RUNS else RagSession()
    evaluators = [get_evaluator(name)(least, policy=policy) for name, least in thresholds.items()]
    scorer = Scorer(
        session.judge if judge is None else resolve_judge(judge),
        evaluators or [get_evaluator("faithfulness")(policy=policy)],
        telemetry=session.emitter,
        sinks=session.sinks,
        keeps_judge=True,
    )
    # A second assertion of the same case is another run in a store.
    job = EvaluationJob([case], scorer, max_cost=session.cap, ended_at=time.time())

    async def score() -> list[Evaluation]:
        return [evaluation async for evaluation in job]

    evaluations = run_sync(score())
    if job.is_cut:
        raise BudgetExceeded(
            f"the tests have spent ${session.cap.spent.cost_usd:.4f} on the judge, of "
            f"${session.cap.max_cost:.4f} in this process; raise --ragaliq-max-cost to continue"
        )
    evaluation = evaluations[0]
    session.count(evaluation)
    for result in evaluation.results.values():
        if result.status in _FAILURES:
            raise _FAILURES[result.status](
                f"{result.evaluator_name} could not be judged: {result.error}"
            )
        if result.score is None and result.status in _LACKS:
            why_not = f"{result.status.value}. {result.reasoning}"
            raise DatasetError(f"{result.evaluator_name} has no score: {why_not}")
    failed = [result for result in evaluation.results.values() if not result.passed]
    if failed:
        raise RagAssertionError("\n".join(_message(case, failed)), evaluation.results)
    return evaluation.results


def _message(case: RAGTestCase, failed: list[EvaluationResult]) -> Iterator[str]:
    # pytest's summary shows the first line.
    yield why(failed[0])
    named = f" ({printable(case.name, limit=80)})" if case.name else ""
    yield f"  question: {printable(case.query, limit=_MAX_TEXT)}{named}"
    yield f"  judge: {failed[0].judge}"
    shown: list[tuple[ClaimDetail, ...]] = []
    for result in failed:
        if result is not failed[0]:
            yield f"  {why(result.model_copy(update={'claims': ()}))}"
        if result.claims and result.claims not in shown:
            shown.append(result.claims)
            yield from _claims(case, result.claims)
        elif not result.claims and result.reasoning:
            yield f"    {printable(result.reasoning, limit=_MAX_TEXT)}"


def _claims(case: RAGTestCase, claims: tuple[ClaimDetail, ...]) -> Iterator[str]:
    sentences = [
        text[start:end] for text in case.context_texts for start, end in split_sentences(text)
    ]
    unsupported = [claim for claim in claims if claim.verdict != "SUPPORTED"]
    for claim in unsupported[:_MAX_CLAIMS]:
        yield f"    {claim.verdict or 'UNVERIFIED'}: {printable(claim.claim, limit=_MAX_TEXT)}"
        if claim.evidence:
            chunks = ", ".join(printable(str(i), limit=40) for i in claim.supporting_chunk_ids[:3])
            where = f" (chunk {chunks})" if chunks else ""
            yield f"      evidence{where}: {printable(claim.evidence, limit=_MAX_TEXT)}"
        elif sentences:
            closest = max(sentences, key=lambda text: fuzz.token_set_ratio(text, claim.claim))
            yield f"      closest in the context: {printable(closest, limit=_MAX_TEXT)}"
        if claim.reason:
            yield f"      reason: {printable(claim.reason, limit=_MAX_TEXT)}"
    if len(unsupported) > _MAX_CLAIMS:
        yield f"    and {len(unsupported) - _MAX_CLAIMS} more"


class RagSession:
    """Shared state of the tests of one process: judges, scores, costs, sinks, telemetry.

    Its `records` are the evaluations as JSON for another process.
    """

    def __init__(self, config: pytest.Config | None = None) -> None:
        options = {}
        if config is not None:
            for name in OPTIONS:
                given = config.getoption(name)
                options[name] = str(config.getini(name) if given is None else given)
        self._judge: JudgeSpec | str = options.get("ragaliq_judge") or "local"
        self._model = options.get("ragaliq_model") or None
        max_cost = _dollars(options.get("ragaliq_max_cost", ""))
        if max_cost is not None:  # each worker of pytest-xdist gets its share
            max_cost /= getattr(config, "workerinput", {}).get("workercount", 1)
        self.cap = CostCap(max_cost, option="--ragaliq-max-cost")
        self.sinks = options.get("ragaliq_sinks", "").split()
        self.summary = Summary()
        self.records: list[str] = []
        self.emitter = Emitter(ContentPolicy.resolve())
        self._judges: dict[Any, LLMJudge] = {}
        self._current: list[LLMJudge] = []

    @property
    def judge(self) -> LLMJudge:
        """Judge of the current test, or the run's own."""
        if self._current:
            return self._current[-1]
        with self.judging() as judge:
            return judge

    @contextmanager
    def judging(
        self, judge: JudgeSpec | str | None = None, model: str | None = None
    ) -> Iterator[LLMJudge]:
        """Use `judge` inside the block; by default the run's own."""
        spec, model = judge or self._judge, model or self._model
        if not isinstance(spec, str):
            chosen = resolve_judge(spec)
        elif (spec, model) in self._judges:
            chosen = self._judges[spec, model]
        else:
            chosen = self._judges[spec, model] = resolve_judge(spec, model=model)
        self._current.append(chosen)
        try:
            yield chosen
        finally:
            self._current.remove(chosen)

    def count(self, evaluation: Evaluation) -> None:
        """Count an evaluation."""
        record = evaluation_record(evaluation, content=ContentPolicy())
        self.records.append(record.model_dump_json())
        self.summary.add(record)

    def count_records(self, records: list[str]) -> None:
        """Count the evaluations of another process: its `records`."""
        for record in records:
            self.summary.add(EvaluationRecord.model_validate_json(record))

    def lines(self) -> Iterator[str]:
        """One line for each metric, and one for the cost."""
        for name, metric in sorted(self.summary.metrics.items()):
            passed = metric.passed + sum(metric.statuses[status] for status in metric.passing)
            mean = "no mean"
            if metric.mean is not None:
                mean = f"mean {metric.mean:.2f} of {metric.measured}"
            others = "".join(
                f", {count} {status}"
                for status, count in sorted(metric.statuses.items())
                if not Status(status).is_measured
            )
            good = "high" if metric.higher_is_better else "low"
            yield f"{name} ({good} is good): {passed} of {metric.cases} passed, {mean}{others}"
        usage = self.summary.usage
        cases = number_of(self.summary.records, "case")
        yield f"{cases}, {usage.total_tokens:,} judge tokens, {cost_of(usage)}"

    def close(self) -> None:
        """Close the judges' connections."""
        for judge in self._judges.values():
            run_sync(judge.aclose())


def _dollars(text: str) -> float | None:
    if not text:
        return None
    try:
        dollars = float(text)
    except ValueError:
        dollars = -1.0
    if not 0.0 <= dollars < float("inf"):
        raise ConfigurationError(f"--ragaliq-max-cost must be US dollars, got {text!r}")
    return dollars


def session_of(config: pytest.Config) -> RagSession:
    """Session of a run of pytest, made on first use."""
    if SESSION not in config.stash:
        config.stash[SESSION] = RagSession(config)
    session: RagSession = config.stash[SESSION]
    return session
