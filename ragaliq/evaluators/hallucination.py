"""Hallucination: which claims of the answer the model made up."""

from __future__ import annotations

from typing import Any

from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.results import ClaimDetail, EvaluationResult
from ragaliq.errors import ConfigurationError
from ragaliq.evaluators.claim_based import ClaimEvaluator, claim_rows
from ragaliq.evaluators.claims import ClaimCheck, Strategy
from ragaliq.evaluators.registry import register_evaluator
from ragaliq.judges.base import LLMJudge

__all__ = ["HallucinationEvaluator"]


@register_evaluator("hallucination")
class HallucinationEvaluator(ClaimEvaluator):
    """Whether the answer is free of claims the context does not support.

    `score = 1 - hallucinated claims / decided claims`. A claim is hallucinated when its verdict is
    CONTRADICTED or NOT_ENOUGH_INFO, or SUPPORTED with less confidence than `min_confidence`. Next
    to faithfulness it is stricter by default and lists the offending claims.

    `raw_response`: `claims`, `total_claims`, `hallucinated_claims` (a list of claims),
    `hallucination_count`.

    Args:
        threshold: Score from which on a case passes, 0 to 1.
        min_confidence: SUPPORTED claims below this confidence, 0 to 1, count as hallucinated; by
            default confidence is not looked at.
        policy: See `Evaluator`.
        strategy: See `ClaimEvaluator`.
    """

    description = "Detects claims of the answer that are not grounded in the context"
    threshold = 0.8
    without_claims = "No claims to verify; no hallucinations detected."

    def __init__(
        self,
        threshold: float | None = None,
        *,
        min_confidence: float | None = None,
        policy: ScoringPolicy | None = None,
        strategy: Strategy | None = None,
    ) -> None:
        super().__init__(threshold, policy=policy, strategy=strategy)
        if min_confidence is not None and not 0.0 <= min_confidence <= 1.0:
            raise ConfigurationError(
                f"HallucinationEvaluator: min_confidence must be within [0, 1], "
                f"got {min_confidence}"
            )
        self.min_confidence = min_confidence

    def score_claims(self, check: ClaimCheck, judge: LLMJudge) -> EvaluationResult:
        """One minus the share of hallucinated claims."""
        count, total = len(self._hallucinated(check.decided)), len(check.decided)
        if count:
            reasoning = f"Found {count} hallucinated claims out of {total}."
        else:
            reasoning = f"All {total} claims are grounded; no hallucinations detected."
        return self._scored(check, judge, score=1.0 - count / total, reasoning=reasoning)

    def raw_response(self, check: ClaimCheck) -> dict[str, Any]:
        """`claims`, `total_claims`, `hallucinated_claims`, `hallucination_count`."""
        hallucinated = self._hallucinated(check.decided)
        return {
            "claims": claim_rows(check.decided),
            "total_claims": len(check.decided),
            "hallucinated_claims": claim_rows(hallucinated),
            "hallucination_count": len(hallucinated),
        }

    def _hallucinated(self, claims: tuple[ClaimDetail, ...]) -> tuple[ClaimDetail, ...]:
        return tuple(claim for claim in claims if self._is_hallucinated(claim))

    def _is_hallucinated(self, claim: ClaimDetail) -> bool:
        if claim.verdict != "SUPPORTED":
            return True
        return self.min_confidence is not None and claim.confidence < self.min_confidence
