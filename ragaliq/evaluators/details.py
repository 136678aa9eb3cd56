"""From verdicts to claim details: ids of the chunks, places in the answer and in the context."""

from __future__ import annotations

from collections.abc import Sequence

from ragaliq.core.evaluator import judge_name
from ragaliq.core.results import ClaimDetail
from ragaliq.core.test_case import RAGTestCase
from ragaliq.evaluators.alignment import CLAIM_CUTOFF, locate, locate_evidence
from ragaliq.evaluators.reconcile import Decided
from ragaliq.judges.base import ClaimVerdict, LLMJudge

__all__ = ["claim_details"]


def claim_details(
    case: RAGTestCase, claims: Sequence[str], decided: Decided, judge: LLMJudge
) -> tuple[ClaimDetail, ...]:
    """Describe each claim: its verdict, and where it and its evidence stand."""
    name = judge_name(judge)
    details, cursor = [], 0
    for position, claim in enumerate(claims):
        span = locate(claim, case.response, cutoff=CLAIM_CUTOFF, start=cursor)
        cursor = span[1] if span else cursor
        verdict = decided.verdicts.get(position)
        details.append(_detail(case, claim, verdict, span, name))
    return tuple(details)


def _detail(
    case: RAGTestCase,
    claim: str,
    verdict: ClaimVerdict | None,
    span: tuple[int, int] | None,
    judge_name: str,
) -> ClaimDetail:
    if verdict is None:
        return ClaimDetail(claim=claim, verdict=None, confidence=0.0, answer_span=span)
    ids = case.chunk_ids
    positions = [i for i in verdict.supporting_chunk_ids if 0 <= i < len(ids)]
    evidence_spans = locate_evidence(verdict.evidence, case.context_texts, ids, positions)
    return ClaimDetail(
        claim=claim,
        verdict=verdict.verdict,
        evidence=verdict.evidence,
        confidence=verdict.confidence,
        reason=verdict.reason,
        supporting_chunk_ids=tuple(ids[i] for i in positions),
        answer_span=span,
        evidence_spans=evidence_spans,
        evidence_verified=bool(evidence_spans),
        decided_by=verdict.decided_by or judge_name,
    )
