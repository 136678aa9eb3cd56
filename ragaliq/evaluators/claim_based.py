"""Base of the metrics that are computed from a claim check."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from ragaliq.core.evaluator import Evaluator, judge_calibration
from ragaliq.core.policy import UNSCORED, Fallback, ScoringPolicy
from ragaliq.core.results import ClaimDetail, EvaluationResult, Status
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import ConfigurationError
from ragaliq.evaluators.claims import ClaimCheck, Strategy, check_claims, require_strategy
from ragaliq.judges.base import LLMJudge

__all__ = ["ClaimEvaluator", "claim_rows"]

_STRATEGIES = ("batched", "per_claim", "single_pass")


class ClaimEvaluator(Evaluator):
    """A metric made from the verdicts on an answer's claims.

    Args:
        threshold: Score from which on a case passes, 0 to 1.
        policy: See `Evaluator`.
        strategy: How the judge is asked: `batched` (two calls), `per_claim` (one and one for
            each claim) or `single_pass` (one). By default `batched` where the judge can.
    """

    def __init__(
        self,
        threshold: float | None = None,
        *,
        policy: ScoringPolicy | None = None,
        strategy: Strategy | None = None,
    ) -> None:
        super().__init__(threshold, policy=policy)
        if strategy is not None and strategy not in _STRATEGIES:
            raise ConfigurationError(
                f"unknown strategy {strategy!r}; choose one of {', '.join(_STRATEGIES)}"
            )
        self.strategy = strategy

    def require(self, judge: LLMJudge) -> None:
        """Refuse a judge that cannot follow the strategy."""
        require_strategy(self.strategy, judge)

    def result(self, judge: LLMJudge, **fields: Any) -> EvaluationResult:
        """As `Evaluator.result`, with the calibration behind the claims' confidence."""
        return super().result(judge, calibration=judge_calibration(judge), **fields)

    async def measure(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Check the claims and grade them."""
        return self.grade(await self.check(test_case, judge), judge)

    async def check(self, test_case: RAGTestCase, judge: LLMJudge) -> ClaimCheck:
        """The claim check this metric is made from; equal `check_key`s may share one."""
        return await check_claims(test_case, judge, policy=self.policy, strategy=self.strategy)

    @property
    def check_key(self) -> tuple[ScoringPolicy, Strategy | None]:
        """Evaluators with the same key get the same check for a case."""
        return self.policy, self.strategy

    def grade(self, check: ClaimCheck, judge: LLMJudge) -> EvaluationResult:
        """Turn a claim check into this metric's result."""
        if check.status.is_measured:
            return self.score_claims(check, judge)
        wording = self.policy.wording
        reasons = {
            Status.NO_CLAIMS: wording.no_claims if wording else self.without_claims,
            Status.ANSWER_REFUSED: "The answer declines to answer; there is nothing to check.",
            Status.NO_CONTEXT: "There is no context to check the answer against.",
        }
        no_context = check.status is Status.NO_CONTEXT
        return self.result(
            judge,
            status=check.status,
            fallback=UNSCORED if no_context else self.score_without_claims(),
            reasoning=reasons[check.status],
            usage=check.usage,
            raw_response=self.raw_response(check),
        )

    without_claims: str = "No claims to verify."

    def score_without_claims(self) -> Fallback:
        """What an answer without claims scores: what the policy says."""
        return self.policy.no_claims

    @abstractmethod
    def score_claims(self, check: ClaimCheck, judge: LLMJudge) -> EvaluationResult:
        """Score a check that decided at least one claim."""

    @abstractmethod
    def raw_response(self, check: ClaimCheck) -> dict[str, Any]:
        """The metric's documented details."""

    def _scored(
        self, check: ClaimCheck, judge: LLMJudge, *, score: float, reasoning: str
    ) -> EvaluationResult:
        undecided = len(check.claims) - len(check.decided)
        if undecided:
            reasoning += f" {undecided} could not be decided and are left out."
        if self.policy.wording is not None:
            reasoning = self.policy.wording.scored(
                self.name, score, self.threshold, passed=self.is_passing(score)
            )
        return self.result(
            judge,
            status=check.status,
            score=score,
            reasoning=reasoning,
            usage=check.usage,
            claims=check.claims,
            raw_response=self.raw_response(check) | _how_it_was_asked(check),
        )


def _how_it_was_asked(check: ClaimCheck) -> dict[str, Any]:
    return {"context_parts": check.context_parts} if check.context_parts > 1 else {}


def claim_rows(claims: tuple[ClaimDetail, ...]) -> list[dict[str, Any]]:
    """Claims as plain dictionaries, for `raw_response`."""
    return [claim.model_dump(mode="json") for claim in claims]
