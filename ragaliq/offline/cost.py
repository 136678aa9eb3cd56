"""Cost estimates of an evaluation, before anything is spent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ragaliq.core.checks import takes_only
from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.results import JudgeUsage
from ragaliq.core.sync import synchronous
from ragaliq.core.test_case import RAGTestCase
from ragaliq.evaluators.registry import EvaluatorSpec
from ragaliq.judges.resolve import JudgeSpec, resolve_judge
from ragaliq.offline.run import evaluate_async
from ragaliq.telemetry.emit import TelemetryOptions

__all__ = ["CostEstimate", "estimate", "estimate_async"]


@dataclass(frozen=True, kw_only=True)
class CostEstimate:
    """Estimated usage of an evaluation.

    Attributes:
        cases: Number of cases.
        usage: Requests, tokens and US dollars. The dollars are None if the price is not known.
    """

    cases: int
    usage: JudgeUsage


async def estimate_async(
    cases: Iterable[RAGTestCase],
    *,
    metrics: Iterable[EvaluatorSpec] | None = None,
    judge: JudgeSpec | str = "local",
    policy: ScoringPolicy = ScoringPolicy.LIVE,
) -> CostEstimate:
    """Build every request of an evaluation, send none, and add up their cost.

    The number of requests follows from the claims that the embedded judge finds in the answers;
    tokens are counted at four characters each. A model's thoughts are not included: with thinking
    on, expect more output tokens. For a cascade that begins with the embedded judge, only the
    claims that it would escalate are counted, for other cascades all claims.

    Args:
        cases: The cases.
        metrics: The metrics; by default those of `evaluate`.
        judge: The judge.
        policy: Policy of metrics without their own.

    Raises:
        ConfigurationError: A setting is wrong, or the judge's cost cannot be estimated: it is
            neither embedded nor prompted.
    """
    todo = list(cases)
    run = await evaluate_async(
        # One case at a time, so that cache hits do not depend on timing.
        todo,
        metrics=metrics,
        judge=resolve_judge(judge, is_asked=False).estimate(),
        policy=policy,
        concurrency=1,
        telemetry=TelemetryOptions.silent(),
    )
    return CostEstimate(cases=len(todo), usage=run.usage)


estimate = takes_only()(synchronous(estimate_async))
"""`estimate_async` for scripts and notebooks."""
