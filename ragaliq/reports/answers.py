"""One answer in full, as the page shows it: its texts cut at its claims, and who decided what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ragaliq.core.test_case import ChunkId
from ragaliq.reports.embedding import finite
from ragaliq.reports.segments import Segment, cut
from ragaliq.sinks.record import ChunkRecord, ClaimRecord, EvaluationRecord, MetricRecord

__all__ = ["ClaimSet", "claim_sets", "full_answer"]

# Characters of chunks an answer brings along; those that evidence lies in come first.
_MAX_CHUNK_TEXT = 60_000


class ClaimSet(NamedTuple):
    """Claims, and the metrics that share them: faithfulness and hallucination judge once."""

    metrics: list[MetricRecord]
    claims: tuple[ClaimRecord, ...]


def claim_sets(record: EvaluationRecord) -> list[ClaimSet]:
    """The different claims of a record, in the order of its metrics."""
    sets: list[ClaimSet] = []
    for metric in record.metrics:
        if not metric.claims:
            continue
        same = next((known for known in sets if known.claims == metric.claims), None)
        if same is None:
            sets.append(ClaimSet([metric], metric.claims))
        else:
            same.metrics.append(metric)
    return sets


def full_answer(record: EvaluationRecord) -> dict[str, Any]:
    """Everything the record says, as JSON values."""
    run, case = record.run, record.case
    return {
        "query": case.query if case else None,
        "name": case.name if case else "",
        "tags": list(case.tags) if case else [],
        "has_text": case is not None,
        "case_id": record.case_id,
        "framework": run.framework,
        "session": run.session_id,
        "trace": run.target.trace_id if run.target else None,
        "span": run.target.span_id if run.target else None,
        "probability": run.sampling_probability,
        "reason": run.sampling_reason,
        "lag": finite(record.lag),
        "metrics": [_metric(metric) for metric in record.metrics],
        "sets": _sets(record),
    }


def _metric(metric: MetricRecord) -> dict[str, Any]:
    return {
        "name": metric.name,
        "status": metric.status.value,
        "score": metric.score,
        "passed": metric.passed,
        "threshold": finite(metric.threshold) or 0.0,
        "higher_is_better": metric.higher_is_better,
        "judge": metric.judge,
        "model": metric.model,
        "error": metric.error_type,
        "duration": finite(metric.duration),
        "tokens": metric.usage.total_tokens,
        "cost": finite(metric.usage.cost_usd),
        "reasoning": metric.reasoning,
    }


def _sets(record: EvaluationRecord) -> list[dict[str, Any]]:
    sets = claim_sets(record) or [ClaimSet([], ())]
    return [
        {
            "metrics": [metric.name for metric in found.metrics],
            "left_out": max((metric.claims_left_out for metric in found.metrics), default=0),
            "claims": [_claim(claim) for claim in found.claims],
            "answer": _answer(record, found.claims),
            "chunks": _chunks(record, found.claims),
        }
        for found in sets
    ]


def _claim(claim: ClaimRecord) -> dict[str, Any]:
    return {
        "verdict": claim.verdict,
        "confidence": claim.confidence,
        "calibration": claim.calibration,
        "by": claim.decided_by,
        "verified": claim.evidence_verified,
        "chunk_ids": [str(chunk_id) for chunk_id in claim.supporting_chunk_ids],
        "text": claim.text,
        "evidence": claim.evidence,
        "reason": claim.reason,
    }


def _answer(record: EvaluationRecord, claims: Sequence[ClaimRecord]) -> list[Segment] | None:
    if record.case is None or record.case.response is None:
        return None
    spans = [
        (*claim.answer_span, number) for number, claim in enumerate(claims) if claim.answer_span
    ]
    return cut(record.case.response, spans)


def _chunks(record: EvaluationRecord, claims: Sequence[ClaimRecord]) -> list[dict[str, Any]]:
    if record.case is None:
        return []
    chunks, shown = record.case.chunks, _shown(record.case.chunks, claims)
    return [
        {
            "id": str(chunk.chunk_id),
            "score": finite(chunk.score),
            "length": None if chunk.text is None else len(chunk.text),
            "text": cut(chunk.text, _spans(chunk.chunk_id, claims))
            if chunk.text is not None and position in shown
            else None,
        }
        for position, chunk in enumerate(chunks)
    ]


def _shown(chunks: Sequence[ChunkRecord], claims: Sequence[ClaimRecord]) -> set[int]:
    """Positions of the chunks that fit: those with evidence first, then in their own order."""
    in_order = sorted(range(len(chunks)), key=lambda i: not _spans(chunks[i].chunk_id, claims))
    shown: set[int] = set()
    room = _MAX_CHUNK_TEXT
    for position in in_order:
        length = len(chunks[position].text or "")
        if length <= room:
            shown.add(position)
            room -= length
    return shown


def _spans(chunk_id: ChunkId, claims: Sequence[ClaimRecord]) -> list[tuple[int, int, int]]:
    return [
        (span.start, span.end, number)
        for number, claim in enumerate(claims)
        for span in claim.evidence_spans
        if span.chunk_id == chunk_id
    ]
