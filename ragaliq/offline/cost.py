"""What an evaluation will cost, before anything is spent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ragaliq.core.checks import takes_only
from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.results import JudgeUsage
from ragaliq.core.sync import synchronous
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import ConfigurationError
from ragaliq.evaluators.registry import EvaluatorSpec
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.calibration import CalibratedJudge
from ragaliq.judges.cascade import CascadeJudge
from ragaliq.judges.local import LocalJudge
from ragaliq.judges.local.judge import WordingJudge
from ragaliq.judges.prompted import PromptedJudge
from ragaliq.judges.recording import cost_estimator
from ragaliq.judges.resolve import JudgeSpec, resolve_judge
from ragaliq.offline.run import evaluate_async
from ragaliq.telemetry.emit import TelemetryOptions

__all__ = ["CostEstimate", "estimate", "estimate_async"]


@dataclass(frozen=True, kw_only=True)
class CostEstimate:
    """What a run would need.

    Attributes:
        cases: Number of cases.
        usage: Requests, tokens and US dollars. The dollars are None for a model whose price is
            not known.
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
    """Write every request the run would make, send none, and add up what they would cost.

    The number of requests follows from the answers' claims as the embedded judge finds them;
    tokens are counted at four characters each. What a model spends on thinking before it replies
    is not included: with thinking on, expect more output tokens than this. A cascade's estimate is
    of what its screen would really escalate where that is the embedded judge, else of everything.

    Args:
        cases: What would be evaluated.
        metrics: What would be measured; by default what `evaluate` measures.
        judge: Who would decide.
        policy: For evaluators without a policy of their own.

    Raises:
        ConfigurationError: A setting is wrong, or the cost of this judge cannot be known: it is
            neither embedded nor made of prompts.
    """
    todo = list(cases)
    counting = _counting(resolve_judge(judge))
    run = await evaluate_async(
        # One case at a time, so that what is cached does not depend on timing.
        todo,
        metrics=metrics,
        judge=counting,
        policy=policy,
        concurrency=1,
        telemetry=TelemetryOptions.silent(),
    )
    return CostEstimate(cases=len(todo), usage=run.usage)


estimate = takes_only()(synchronous(estimate_async))
"""`estimate_async` for scripts and notebooks."""


def _counting(judge: LLMJudge) -> LLMJudge:
    if isinstance(judge, CascadeJudge):
        return judge.with_stages(*map(_counting_stage, judge.stages))
    if isinstance(judge, CalibratedJudge):
        judge = judge.judge  # the curve changes verdicts and not what is asked
    if isinstance(judge, LocalJudge):
        return judge
    if isinstance(judge, WordingJudge):
        free = LocalJudge()  # a small model would take its time, and costs nothing
        free.name = judge.name
        return free
    if isinstance(judge, PromptedJudge):
        return cost_estimator(judge, LocalJudge())
    raise ConfigurationError(
        f"what {type(judge).__name__} costs cannot be estimated; it can for 'local', 'claude', "
        "judges derived from PromptedJudge, and cascades of these"
    )


def _counting_stage(judge: LLMJudge) -> LLMJudge:
    # The embedded judge screens as it will, so that what it leaves to the next judge is what will
    # be asked. What any other would be sure of nobody knows: it escalates everything.
    if isinstance(judge, CalibratedJudge) and isinstance(judge.judge, LocalJudge):
        return judge
    return _counting(judge)
