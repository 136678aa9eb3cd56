"""Chunk utility: the share of retrieved chunks that the answer made use of."""

from __future__ import annotations

from typing import Any

from ragaliq.core.policy import UNSCORED, Fallback
from ragaliq.core.results import ClaimDetail, EvaluationResult
from ragaliq.core.test_case import ChunkId
from ragaliq.evaluators.claim_based import ClaimEvaluator
from ragaliq.evaluators.claims import ClaimCheck
from ragaliq.evaluators.registry import register_evaluator
from ragaliq.judges.base import LLMJudge

__all__ = ["ChunkUtilityEvaluator"]


@register_evaluator("chunk_utility")
class ChunkUtilityEvaluator(ClaimEvaluator):
    """How much of what was retrieved the answer used.

    `score = used chunks / retrieved chunks`, the precision of rag_evals (graded chunks over all
    chunks). A chunk is used when a supported claim rests on it. The claim check is shared with
    faithfulness, so the metric costs nothing beside it. Low scores mean that too much, or the
    wrong thing, is retrieved.

    `raw_response`: `chunks` (a list of `{id, used, claims}`, where `claims` are positions of the
    claims that rest on the chunk), `used_chunks`, `total_chunks`.
    """

    description = "Measures the share of retrieved chunks that the answer used"
    threshold = 0.5
    without_claims = "The answer makes no claims, so it is not known which chunks it used."

    def score_without_claims(self) -> Fallback:
        """No score: an answer that says nothing is neither a good nor a bad use of its chunks."""
        return UNSCORED

    def score_claims(self, check: ClaimCheck, judge: LLMJudge) -> EvaluationResult:
        """Used over retrieved chunks."""
        raw = self.raw_response(check)
        used, total = raw["used_chunks"], raw["total_chunks"]
        return self._scored(
            check,
            judge,
            score=used / total if total else 0.0,
            reasoning=f"The answer used {used} of {total} retrieved chunks.",
        )

    def raw_response(self, check: ClaimCheck) -> dict[str, Any]:
        """`chunks`, `used_chunks`, `total_chunks`."""
        rows = [_row(chunk_id, check.claims) for chunk_id in check.chunk_ids]
        return {
            "chunks": rows,
            "used_chunks": sum(row["used"] for row in rows),
            "total_chunks": len(rows),
        }


def _row(chunk_id: ChunkId, claims: tuple[ClaimDetail, ...]) -> dict[str, Any]:
    resting = [
        position
        for position, claim in enumerate(claims)
        if claim.verdict == "SUPPORTED" and chunk_id in _chunks(claim)
    ]
    return {"id": chunk_id, "used": bool(resting), "claims": resting}


def _chunks(claim: ClaimDetail) -> set[ChunkId]:
    return {*claim.supporting_chunk_ids, *(span.chunk_id for span in claim.evidence_spans)}
