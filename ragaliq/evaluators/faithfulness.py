"""Faithfulness: the share of the answer's claims that the context supports."""

from __future__ import annotations

from typing import Any

from ragaliq.core.results import ClaimDetail, EvaluationResult
from ragaliq.evaluators.claim_based import ClaimEvaluator, claim_rows
from ragaliq.evaluators.claims import ClaimCheck
from ragaliq.evaluators.registry import register_evaluator
from ragaliq.judges.base import LLMJudge

__all__ = ["FaithfulnessEvaluator"]


@register_evaluator("faithfulness")
class FaithfulnessEvaluator(ClaimEvaluator):
    """Whether the answer says only what the context supports.

    `score = supported claims / decided claims`, as in RAGAS (Es et al. 2023, "RAGAS: Automated
    Evaluation of Retrieval Augmented Generation"). An answer without claims is scored by the
    policy: 1.0 offline, no score in live monitoring.

    `raw_response`: `claims` (a list of `{claim, verdict, evidence, ...}`), `total_claims`,
    `supported_claims`.
    """

    description = "Measures whether every claim of the answer is supported by the context"
    threshold = 0.7
    without_claims = "No claims to verify; the answer is vacuously faithful."

    def score_claims(self, check: ClaimCheck, judge: LLMJudge) -> EvaluationResult:
        """Supported over decided claims."""
        supported, total = _supported(check.decided), len(check.decided)
        return self._scored(
            check,
            judge,
            score=supported / total,
            reasoning=f"{supported} of {total} claims supported by the context.",
        )

    def raw_response(self, check: ClaimCheck) -> dict[str, Any]:
        """`claims`, `total_claims`, `supported_claims`."""
        return {
            "claims": claim_rows(check.decided),
            "total_claims": len(check.decided),
            "supported_claims": _supported(check.decided),
        }


def _supported(claims: tuple[ClaimDetail, ...]) -> int:
    return sum(claim.verdict == "SUPPORTED" for claim in claims)
