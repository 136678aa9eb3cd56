"""Results as records: what may be kept under the content policy, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from ragaliq._version import __version__
from ragaliq.core.results import ClaimDetail, EvaluationResult, EvidenceSpan
from ragaliq.core.run import RunInfo
from ragaliq.core.test_case import ChunkId, RAGTestCase
from ragaliq.sinks.record import (
    CaseRecord,
    ChunkRecord,
    ClaimRecord,
    EvaluationRecord,
    MetricRecord,
    deterministic_id,
)
from ragaliq.telemetry.attributes import is_failure, score
from ragaliq.telemetry.content import ContentPolicy, sendable

__all__ = ["evaluation_id", "evaluation_record", "renamed"]

MAX_QUERY = 8_000
MAX_RESPONSE = 32_000
MAX_CHUNK = 16_000
MAX_CHUNKS = 100
MAX_CLAIMS = 200
MAX_CLAIM_TEXT = 2_000
MAX_REASONING = 4_000
MAX_ID = 128
MAX_NAME = 512


def evaluation_record(
    case: RAGTestCase,
    results: Mapping[str, EvaluationResult],
    run: RunInfo,
    *,
    content: ContentPolicy,
    lag: float | None = None,
) -> EvaluationRecord:
    """The record of one evaluated run.

    Args:
        case: What was evaluated.
        results: Metric name to result.
        run: Where the answer came from.
        content: Whether texts may be kept; its redactor sees each text first.
        lag: Seconds between the end of the run and its evaluation.
    """
    texts = _case_record(case, content) if content.on_sinks else None
    places = _Places(case, texts)
    return EvaluationRecord(
        evaluation_id=evaluation_id(run, map(_scorer_key, results.values())),
        run=_storable(run),
        case_id=sendable(case.id[:MAX_ID]),
        created_at=time.time(),
        lag=lag,
        metrics=tuple(
            _metric_record(run, result, places, content if texts else None)
            for result in results.values()
        ),
        case=texts,
    )


def renamed(record: EvaluationRecord, *, run_id: str, case_id: str) -> EvaluationRecord:
    """The same results as those of another run, whose case holds the same texts."""
    run = record.run.model_copy(update={"run_id": run_id})
    scorers = [(metric.name, metric.judge, metric.model) for metric in record.metrics]
    metrics = tuple(
        metric.model_copy(update={"metric_id": _metric_id(run, scorer)})
        for metric, scorer in zip(record.metrics, scorers, strict=True)
    )
    return record.model_copy(
        update={
            "evaluation_id": evaluation_id(run, scorers),
            "run": run,
            "case_id": case_id,
            "metrics": metrics,
        }
    )


def _storable(run: RunInfo) -> RunInfo:
    texts = {"run_id", "pipeline", "sampling_reason", "session_id", "response_id"}
    return run.model_copy(
        update={
            name: _name(value) if value else value
            for name, value in run.model_dump(include=texts).items()
        }
        | {"sampling_rules": tuple(_name(rule) for rule in run.sampling_rules)}
    )


def evaluation_id(run: RunInfo, scorers: Iterable[tuple[str, str, str | None]]) -> str:
    """The id of a run's record, which can be told before anything is judged.

    Args:
        run: Where the answer came from.
        scorers: Of each metric, in order: its name, the judge's name and the judge's model.
    """
    return deterministic_id(["run", *_run_key(run), *(part for key in scorers for part in key)])


def _metric_id(run: RunInfo, scorer: tuple[str, str, str | None]) -> str:
    return deterministic_id(["metric", *_run_key(run), *scorer])


def _run_key(run: RunInfo) -> list[str | None]:
    # With the time of its end, a run under an id that the application uses again is another run;
    # a job that is delivered twice carries the same time.
    return [run.run_id, repr(run.ended_at)]


def _scorer_key(result: EvaluationResult) -> tuple[str, str, str | None]:
    return result.evaluator_name, result.judge, result.model


def _metric_record(
    run: RunInfo, result: EvaluationResult, places: _Places, content: ContentPolicy | None
) -> MetricRecord:
    value = score(result)
    return MetricRecord(
        metric_id=_metric_id(run, _scorer_key(result)),
        name=_name(result.evaluator_name),
        status=result.status,
        score=value,
        passed=None if value is None else result.passed,
        threshold=result.threshold,
        higher_is_better=result.higher_is_better,
        judge=_name(result.judge),
        model=_name(result.model) if result.model else None,
        calibration=_name(result.calibration),
        version=__version__,
        duration=result.duration,
        error_type=_name(result.error_type) if result.error_type and is_failure(result) else None,
        usage=result.usage,
        claims=tuple(
            _claim_record(index, claim, places, content)
            for index, claim in enumerate(result.claims[:MAX_CLAIMS])
        ),
        claims_left_out=max(0, len(result.claims) - MAX_CLAIMS),
        reasoning=content.text(result.reasoning, "explanation", MAX_REASONING) if content else None,
    )


def _claim_record(
    index: int, claim: ClaimDetail, places: _Places, content: ContentPolicy | None
) -> ClaimRecord:
    record = ClaimRecord(
        index=index,
        verdict=claim.verdict,
        confidence=claim.confidence,
        decided_by=_name(claim.decided_by),
        calibration=_name(claim.calibration),
        evidence_verified=claim.evidence_verified,
        supporting_chunk_ids=tuple(_short(i) for i in claim.supporting_chunk_ids[:MAX_CHUNKS]),
        answer_span=places.in_answer(claim.answer_span),
        evidence_spans=places.in_chunks(claim.evidence_spans),
    )
    if content is None:
        return record
    return record.model_copy(
        update={
            "text": content.text(claim.claim, "claim", MAX_CLAIM_TEXT),
            "evidence": content.text(claim.evidence, "evidence", MAX_CLAIM_TEXT),
            "reason": content.text(claim.reason, "explanation", MAX_CLAIM_TEXT),
        }
    )


def _case_record(case: RAGTestCase, content: ContentPolicy) -> CaseRecord:
    scores = [None if isinstance(chunk, str) else chunk.score for chunk in case.context]
    chunks = list(zip(case.chunk_ids, case.context_texts, scores, strict=True))[:MAX_CHUNKS]
    return CaseRecord(
        name=content.text(case.name, "question", MAX_ID) or "",
        query=content.text(case.query, "question", MAX_QUERY),
        response=content.text(case.response, "answer", MAX_RESPONSE),
        chunks=tuple(
            ChunkRecord(
                chunk_id=_short(chunk_id),
                text=content.text(text, "chunk", MAX_CHUNK),
                score=value,
            )
            for chunk_id, text, value in chunks
        ),
        tags=tuple(filter(None, (content.text(tag, "question", MAX_ID) for tag in case.tags[:32]))),
    )


class _Places:
    """Which ranges of characters still hold in the texts that are stored.

    Redaction and shortening move text: a range is kept where the stored text has the same
    characters there. Without stored texts every range is kept, as it says where and not what.
    """

    def __init__(self, case: RAGTestCase, stored: CaseRecord | None) -> None:
        self._answer = case.response
        self._chunks = dict(zip(case.chunk_ids, case.context_texts, strict=True))
        self._stored = stored
        self._stored_chunks = (
            {chunk.chunk_id: chunk.text for chunk in stored.chunks} if stored else {}
        )

    def in_answer(self, span: tuple[int, int] | None) -> tuple[int, int] | None:
        if span is None or self._stored is None:
            return span
        return span if _same(self._answer, self._stored.response, *span) else None

    def in_chunks(self, spans: Iterable[EvidenceSpan]) -> tuple[EvidenceSpan, ...]:
        return tuple(
            EvidenceSpan(_short(chunk_id), start, end)
            for chunk_id, start, end in spans
            if self._stored is None
            or _same(
                self._chunks.get(chunk_id, ""),
                self._stored_chunks.get(_short(chunk_id)),
                start,
                end,
            )
        )


def _same(original: str, stored: str | None, start: int, end: int) -> bool:
    return stored is not None and stored[:end] == sendable(original[:end]) and start < end


def _name(text: str) -> str:
    return sendable(text[:MAX_NAME])


def _short(chunk_id: ChunkId) -> ChunkId:
    return chunk_id if isinstance(chunk_id, int) else sendable(chunk_id[:MAX_ID])
