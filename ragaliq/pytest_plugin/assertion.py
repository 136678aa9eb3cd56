"""`assert_rag`: an answer reaches the given scores, or the test says which claims are at fault."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import ragaliq.pytest_plugin as plugin
from ragaliq.core.evaluator import Evaluator
from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.printable import printable
from ragaliq.core.results import ClaimDetail, Evaluation, EvaluationResult, Status
from ragaliq.core.sync import run_sync
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import (
    ConfigurationError,
    DatasetError,
    JudgeAPIError,
    JudgeError,
    JudgeRefusalError,
    JudgeTimeoutError,
)
from ragaliq.evaluators import get_evaluator
from ragaliq.judges.resolve import JudgeSpec, resolve_judge
from ragaliq.pytest_plugin.session import RagSession
from ragaliq.scoring.scorer import Scorer
from ragaliq.traces.cases import run_of

__all__ = ["RagAssertionError", "assert_rag"]

_MAX_CLAIMS = 20
_MAX_TEXT = 200
_FAILURES: Mapping[Status, type[JudgeError]] = {
    Status.JUDGE_ERROR: JudgeAPIError,
    Status.JUDGE_REFUSED: JudgeRefusalError,
    Status.JUDGE_TIMEOUT: JudgeTimeoutError,
}


class RagAssertionError(AssertionError):
    """An answer scored below what was asked for.

    Attributes:
        results: Metric name to result.
    """

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
        judge: Who decides; by default the judge of the test run.
        policy: What an empty answer or a refusal counts as; by default as no score, which fails
            the test. `ScoringPolicy.RAGALIQ` passes an answer without claims.
        **thresholds: Metric to the score it must reach: `faithfulness=0.8`. Without any,
            `faithfulness` must reach its own threshold.

    Returns:
        Metric name to result.

    Raises:
        RagAssertionError: A score is too low; the message shows the claims that are not supported.
        JudgeError: The judge failed, which is no score.
        DatasetError: The case lacks what a metric needs.
        BudgetExceeded: The test run has spent what it may.
        ConfigurationError: A metric does not exist, or a threshold is outside [0, 1].
    """
    __tracebackhide__ = True
    session = plugin.current_session() or RagSession()
    decider = session.judge if judge is None else resolve_judge(judge)
    scorer = Scorer(
        decider,
        _evaluators(thresholds, policy),
        telemetry=session.emitter,
        sinks=session.sinks,
        keeps_judge=True,
    )
    session.require_budget()
    evaluation = run_sync(_evaluation(scorer, case))
    session.count(evaluation)
    results = evaluation.results
    for result in results.values():
        _require_a_judgement(result)
    failed = [result for result in results.values() if not result.passed]
    if failed:
        raise RagAssertionError("\n".join(_message(case, failed)), results)
    return results


async def _evaluation(scorer: Scorer, case: RAGTestCase) -> Evaluation:
    async with scorer:
        # Asserted a second time, a case is another run in a store.
        run = run_of(case, run_id=case.id, pipeline="", ended_at=time.time())
        return await scorer.score(case, run)


def _evaluators(thresholds: Mapping[str, float], policy: ScoringPolicy) -> list[Evaluator]:
    if not thresholds:
        return [get_evaluator("faithfulness")(policy=policy)]
    for name, threshold in thresholds.items():
        if isinstance(threshold, bool) or not isinstance(threshold, int | float):
            raise ConfigurationError(f"assert_rag: {name} must be a score in [0, 1]")
    return [get_evaluator(name)(threshold, policy=policy) for name, threshold in thresholds.items()]


def _require_a_judgement(result: EvaluationResult) -> None:
    __tracebackhide__ = True
    failure = _FAILURES.get(result.status)
    if failure is not None:
        raise failure(f"{result.evaluator_name} could not be judged: {result.error}")
    if result.score is None and result.status in (Status.NO_CONTEXT, Status.NO_REFERENCE):
        raise DatasetError(f"{result.evaluator_name} has no score: {result.status.value}")


def _message(case: RAGTestCase, failed: list[EvaluationResult]) -> Iterator[str]:
    yield f"the answer of {printable(case.name or case.id, limit=80)} is not good enough"
    shown: list[tuple[ClaimDetail, ...]] = []
    for result in failed:
        found = f"no score ({result.status.value})"
        if result.score is not None:
            found = f"{result.score:.2f}, below {result.threshold:g}"
        yield f"  {result.evaluator_name}: {found} (judge: {result.judge})"
        if result.claims and result.claims not in shown:
            shown.append(result.claims)
            yield from _claims(result.claims)
        elif not result.claims and result.reasoning:
            yield f"    {printable(result.reasoning, limit=_MAX_TEXT)}"


def _claims(claims: tuple[ClaimDetail, ...]) -> Iterator[str]:
    unsupported = [claim for claim in claims if claim.verdict != "SUPPORTED"]
    for claim in unsupported[:_MAX_CLAIMS]:
        yield f"    {claim.verdict or 'UNVERIFIED'}: {printable(claim.claim, limit=_MAX_TEXT)}"
        if claim.evidence:
            chunks = ", ".join(printable(str(i), limit=40) for i in claim.supporting_chunk_ids[:3])
            where = f" (chunk {chunks})" if chunks else ""
            yield f"      evidence{where}: {printable(claim.evidence, limit=_MAX_TEXT)}"
        if claim.reason:
            yield f"      reason: {printable(claim.reason, limit=_MAX_TEXT)}"
    if len(unsupported) > _MAX_CLAIMS:
        yield f"    and {len(unsupported) - _MAX_CLAIMS} more"
