"""From verdicts to claim details: ids of the chunks, places in the answer and in the context."""

from __future__ import annotations

from collections.abc import Sequence

from ragaliq.core.concurrency import Breather
from ragaliq.core.evaluator import judge_name
from ragaliq.core.results import ClaimDetail
from ragaliq.core.test_case import ChunkId, RAGTestCase
from ragaliq.evaluators.alignment import CLAIM_CUTOFF, EvidenceFinder, locate
from ragaliq.evaluators.reconcile import Decided
from ragaliq.evaluators.searchable import SearchableText
from ragaliq.judges.base import ClaimVerdict, LLMJudge

__all__ = ["claim_details"]


async def claim_details(
    case: RAGTestCase,
    claims: Sequence[str],
    decided: Decided,
    judge: LLMJudge,
    *,
    evidence: EvidenceFinder,
) -> tuple[ClaimDetail, ...]:
    """Describe each claim: its verdict, and where it and its evidence stand."""
    name, ids, answer = judge_name(judge), case.chunk_ids, SearchableText(case.response)
    details, cursor, breather = [], 0, Breather()
    for position, claim in enumerate(claims):
        await breather.pause_if_due()
        span = locate(claim, answer, cutoff=CLAIM_CUTOFF, start=cursor)
        cursor = span[1] if span else cursor
        verdict = decided.verdicts.get(position)
        details.append(await _detail(ids, claim, verdict, span=span, judge=name, evidence=evidence))
    return tuple(details)


async def _detail(
    ids: Sequence[ChunkId],
    claim: str,
    verdict: ClaimVerdict | None,
    *,
    span: tuple[int, int] | None,
    judge: str,
    evidence: EvidenceFinder,
) -> ClaimDetail:
    if verdict is None:
        return ClaimDetail(claim=claim, verdict=None, confidence=0.0, answer_span=span)
    positions = [i for i in verdict.supporting_chunk_ids if 0 <= i < len(ids)]
    evidence_spans = await evidence.find(verdict.evidence, ids, positions)
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
        decided_by=verdict.decided_by or judge,
        calibration=verdict.calibration,
    )
