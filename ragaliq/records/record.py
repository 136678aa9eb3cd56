"""Record of one evaluation: its stored, sent and shown form, without content to be withheld."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import islice

from pydantic import BaseModel, ConfigDict, Field

from ragaliq._version import __version__
from ragaliq.core.results import (
    ClaimDetail,
    Evaluation,
    EvaluationResult,
    EvidenceSpan,
    JudgeUsage,
)
from ragaliq.core.run import RunInfo
from ragaliq.core.test_case import ChunkId, ContextChunk, RAGTestCase, Turn
from ragaliq.errors import RagaliqError
from ragaliq.telemetry.attributes import score, template_explanation
from ragaliq.telemetry.content import ContentKind, ContentPolicy, identifier, sendable

RECORD_VERSION = 1
"""Raised when a field changes its meaning; readers refuse records of a later version."""

MAX_QUERY = 8_000
MAX_RESPONSE = 32_000
MAX_CHUNK = 16_000
MAX_PROMPT = 64_000
MAX_CHUNKS = 100
MAX_CLAIMS = 200
MAX_CLAIM_TEXT = 2_000
MAX_REASONING = 4_000
MAX_ID = 128
MAX_NAME = 512
MAX_TAGS = 32
MAX_METADATA = 32

Scorers = Iterable[tuple[str, str, str | None]]
"""Metric, judge and model, by name, for each metric in order."""


class EvaluationRecord(BaseModel):
    """Stored form of an evaluation: one run with the results of all its metrics.

    Attributes:
        schema_version: Version of this form, `RECORD_VERSION`.
        evaluation_id: The same for each evaluation of the same job: a retry, or a job that a queue
            delivers twice, replaces the record instead of adding one.
        run: The run that gave the answer, its span, and how it was sampled.
        case_id: The id of the test case.
        created_at: Unix time in seconds when it was evaluated.
        lag: Seconds between the end of the run and the start of its evaluation; None offline.
        version: The version of ragaliq that evaluated.
        results: Metric name to result, in the order of the metrics. Never with `raw_response` or
            `error`; without content capture the texts of claims are empty and the reasoning is a
            count. Ranges of characters refer to the stored texts, if texts are stored.
        claims_omitted: Number of claims beyond the limit, by metric.
        case: The case with its texts, with content capture; None otherwise. A text that the
            redactor dropped is empty. Expected answers and facts are not kept, and only texts and
            numbers of the metadata; its run is the record's.
        case_digest: Digest of everything that the evaluation depends on: it shows whether a case
            has changed since. In results files only.
        input_digest: Digest of question and context: it pairs the cases of two results files. In
            results files only.
        row: The number of its row in the data file, from 1; in results files only.
        revised: Whether it was merged or renamed since it was made, so that sinks know its results
            under other ids. In results files only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    schema_version: int = Field(default=RECORD_VERSION, ge=1, le=RECORD_VERSION)
    evaluation_id: str
    run: RunInfo
    case_id: str
    created_at: float
    lag: float | None = None
    version: str = ""
    results: dict[str, EvaluationResult]
    claims_omitted: dict[str, int] = Field(default_factory=dict)
    case: RAGTestCase | None = None
    case_digest: str | None = None
    input_digest: str | None = None
    row: int | None = None
    revised: bool = False

    @property
    def size(self) -> int:
        """Approximate characters of its texts, as a measure of its memory."""
        texts = [
            len(claim.claim) + len(claim.evidence) + len(claim.reason)
            for result in self.results.values()
            for claim in result.claims
        ]
        if self.case is not None:
            texts += [len(self.case.query), len(self.case.response)]
            texts += map(len, self.case.context_texts)
            texts += map(len, self.case.other_texts.values())
        return sum(texts)

    @property
    def usage(self) -> JudgeUsage:
        """Usage of all metrics together."""
        return sum((result.usage for result in self.results.values()), JudgeUsage())

    @property
    def observation(self) -> str:
        """Observation that it belongs to; see `observation_of`."""
        return observation_of(self.case_id, self.run.run_id)

    def metric_id(self, metric: str) -> str:
        """Id of a metric's result: the same for the same run, metric and judge."""
        run, result = self.run, self.results[metric]
        key = [run.run_id, repr(run.ended_at), metric, result.judge, result.model]
        return deterministic_id(["metric", *key])

    @property
    def has_failed(self) -> bool:
        """True if the judge failed on a metric."""
        return any(result.status.is_failure for result in self.results.values())

    def added_to(self, earlier: EvaluationRecord) -> EvaluationRecord:
        """Merge with an earlier record of the same run, which other metrics have scored."""
        return self._changed(
            results=earlier.results | self.results,
            claims_omitted=earlier.claims_omitted | self.claims_omitted,
        )

    def renamed(self, *, run_id: str, case_id: str) -> EvaluationRecord:
        """Copy the results to another run whose case holds the same texts."""
        run = self.run.model_copy(update={"run_id": run_id})
        case = self.case and self.case.model_copy(update={"id": case_id})
        return self._changed(run=run, case_id=case_id, case=case)

    def _changed(self, **fields: object) -> EvaluationRecord:
        """Copy the record with changed fields, and compute its id from them."""
        record = self.model_copy(update=fields)
        scorers = [(name, each.judge, each.model) for name, each in record.results.items()]
        changed = {"evaluation_id": evaluation_id(record.run, scorers), "revised": True}
        return record.model_copy(update=changed)

    def for_sinks(self, content: ContentPolicy) -> EvaluationRecord:
        """Copy of a results file's record, with the texts that sinks may have.

        Raises:
            ValueError: JSON cannot hold a number.
        """
        made = self
        if self.case is not None:
            case = self.case.model_copy(update={"run": self.run})
            made = evaluation_record(Evaluation(case=case, results=self.results), content=content)
        same = ("evaluation_id", "run", "created_at", "lag", "version", "claims_omitted")
        update: dict[str, object] = {name: getattr(self, name) for name in same}
        update |= {"case_digest": None, "input_digest": None, "row": None}
        return made.model_copy(update=update)


class SinkError(RagaliqError):
    """A sink did not store records.

    Args:
        message: What happened; never a key, never text that was judged.
        kind: A word for counting and for metrics, such as `timeout` or `http_500`.
        permanent: Trying again cannot help.
        retry_after: Seconds the receiver asks to wait.
        undelivered: The records concerned; all that were given when None.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str = "error",
        permanent: bool = False,
        retry_after: float | None = None,
        undelivered: Sequence[EvaluationRecord] | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.permanent = permanent
        self.retry_after = retry_after
        self.undelivered = undelivered


def evaluation_record(evaluation: Evaluation, *, content: ContentPolicy) -> EvaluationRecord:
    """Make the record of an evaluation.

    Args:
        evaluation: The evaluation.
        content: Whether texts may be kept; its redactor sees each text first.

    Raises:
        ValueError: JSON cannot hold a number.
    """
    case, run, results = evaluation.case, evaluation.run, evaluation.results.values()
    stored = _stored_case(case, content) if content.on_sinks else None
    texts = None if stored is None else _texts_of(case, stored)
    names: dict[str, object] = {
        name: identifier(value) for name, value in run if isinstance(value, str) and value
    }
    chances = run.metric_probabilities.items()
    names["metric_probabilities"] = {identifier(metric): chance for metric, chance in chances}
    names["sampling_rules"] = tuple(map(identifier, run.sampling_rules))
    return EvaluationRecord(
        evaluation_id=evaluation_id(run, [(r.evaluator_name, r.judge, r.model) for r in results]),
        run=run.model_copy(update=names),
        case_id=sendable(case.id[:MAX_ID]),
        created_at=time.time(),
        # Offline there is no lag.
        lag=evaluation.lag or None,
        version=__version__,
        results={identifier(r.evaluator_name): _stored_result(r, texts, content) for r in results},
        claims_omitted={
            identifier(r.evaluator_name): len(r.claims) - MAX_CLAIMS
            for r in results
            if len(r.claims) > MAX_CLAIMS
        },
        case=stored,
    )


def evaluation_id(run: RunInfo, scorers: Scorers) -> str:
    """Id of a run's record, known before anything is evaluated."""
    # The time of its end distinguishes runs of an application that reuses ids; a job that is
    # delivered twice has the same time. Rows of data files without ids have neither, but the
    # file's name as pipeline.
    key = [
        run.run_id,
        identifier(run.pipeline),
        repr(run.ended_at),
        *(part for scorer in scorers for part in scorer),
    ]
    return deterministic_id(["run", *key])


def run_id_of(case_id: str, repeat: int) -> str:
    """Name one evaluation of a case in records: its first by the case's own id."""
    return sendable(case_id if repeat == 0 else f"{case_id}#{repeat + 1}")


def observation_of(case_id: str, run_id: str) -> str:
    """Observation that an evaluation belongs to: its case, if the case is evaluated several times.

    Otherwise its run: answers of live traffic may share a case's id and are different answers.
    """
    number = run_id.removeprefix(f"{case_id}#")
    return case_id if number != run_id and number.isdecimal() else run_id


def deterministic_id(parts: Iterable[str | None]) -> str:
    """Hash the parts into 32 hex digits."""
    digest = blake2b(digest_size=16, person=b"ragaliq-record")
    for part in parts:
        encoded = b"-" if part is None else b"+" + part.encode("utf-8", "surrogatepass")
        # The lengths make ("ab", "c") and ("a", "bc") different.
        digest.update(len(encoded).to_bytes(8) + encoded)
    return digest.hexdigest()


# The application's text and the stored text, by the id of a chunk, or None for the answer.
_Texts = Mapping[ChunkId | None, tuple[str, str]]


def _texts_of(case: RAGTestCase, stored: RAGTestCase) -> _Texts:
    original, kept = case.other_texts, stored.other_texts
    texts: dict[ChunkId | None, tuple[str, str]] = {None: (case.response, stored.response)}
    pairs = zip(original.values(), kept.values(), strict=False)
    texts.update(zip(original, pairs, strict=False))
    chunks = zip(case.context_texts, stored.context_texts, strict=False)
    texts.update(zip(case.chunk_ids, chunks, strict=False))
    return texts


# Rules for storing the fields of results and claims that hold text. A test requires that every
# field is listed here or holds no text, so that a new one is not stored by accident.
_RESULT_NAMES = ("evaluator_name", "judge", "model", "calibration", "judge_kind", "fingerprint")
_CLAIM_NAMES = ("decided_by", "calibration")
_CLAIM_TEXTS: dict[str, ContentKind] = {
    "claim": "claim",
    "evidence": "evidence",
    "reason": "explanation",
}


def _stored_result(
    result: EvaluationResult, texts: _Texts | None, content: ContentPolicy
) -> EvaluationResult:
    if not math.isfinite(result.threshold):
        raise ValueError("a threshold that is not a number cannot be stored")
    value = score(result)
    if texts is None:
        reasoning = template_explanation(result)
    else:
        reasoning = content.text(result.reasoning, "explanation", MAX_REASONING)
    is_failed = bool(result.error_type) and result.status.is_failure
    changed: dict[str, object] = {
        "score": value,
        "passed": None if value is None else result.passed,
        "reasoning": reasoning or "",
        "model": None,  # unless it is in `names`
        "raw_response": {},
        "error": None,
        "error_type": identifier(result.error_type or "") if is_failed else None,
        "claims": tuple(_stored_claim(c, texts, content) for c in result.claims[:MAX_CLAIMS]),
    }
    names = {name: identifier(text) for name in _RESULT_NAMES if (text := getattr(result, name))}
    # Not by `model_copy`: it validates nothing and keeps a subclass's fields, which readers refuse.
    held = {name: getattr(result, name) for name in EvaluationResult.model_fields}
    return EvaluationResult(**{**held, **changed, **names})


def _stored_claim(claim: ClaimDetail, texts: _Texts | None, content: ContentPolicy) -> ClaimDetail:

    def still_there(where: ChunkId | None, start: int, end: int) -> bool:
        # Redaction and shortening move text. Without stored texts every range is kept: it holds
        # positions, not content.
        if texts is None:
            return True
        original, stored = texts.get(where, ("", ""))
        return start < end <= len(stored) and stored[:end] == sendable(original[:end])

    span = claim.answer_span
    changed: dict[str, object] = {
        "supporting_chunk_ids": tuple(map(_chunk_id, claim.supporting_chunk_ids[:MAX_CHUNKS])),
        "answer_span": span if span is not None and still_there(None, *span) else None,
        "evidence_spans": tuple(
            EvidenceSpan(_chunk_id(chunk_id), start, end)
            for chunk_id, start, end in claim.evidence_spans
            if still_there(chunk_id, start, end)
        ),
    }
    for name, kind in _CLAIM_TEXTS.items():
        text = None if texts is None else content.text(getattr(claim, name), kind, MAX_CLAIM_TEXT)
        changed[name] = text or ""
    names = {name: identifier(getattr(claim, name)) for name in _CLAIM_NAMES}
    held = {name: getattr(claim, name) for name in ClaimDetail.model_fields}
    return ClaimDetail(**{**held, **changed, **names})


def _stored_case(case: RAGTestCase, content: ContentPolicy) -> RAGTestCase:
    tags = [content.text(tag, "question", MAX_ID) for tag in case.tags[:MAX_TAGS]]
    kinds: dict[str, ContentKind] = {"user": "question", "assistant": "answer"}
    return RAGTestCase(
        id=sendable(case.id[:MAX_ID]),
        name=content.text(case.name, "question", MAX_ID) or "",
        query=content.text(case.query, "question", MAX_QUERY) or "",
        response=content.text(case.response, "answer", MAX_RESPONSE) or "",
        context=_stored_chunks(case.context, content),
        prompt_context=content.text(case.prompt_context, "chunk", MAX_PROMPT) or "",
        history=[
            Turn(
                role=turn.role,
                text=content.text(turn.text, kinds[turn.role], MAX_QUERY) or "",
                context=_stored_chunks(turn.context, content),
            )
            for turn in case.history
        ],
        tags=[tag for tag in tags if tag],
        metadata=_stored_metadata(case.metadata, "question", content),
        sources=case.sources,
    )


def _stored_chunks(
    chunks: Iterable[str | ContextChunk], content: ContentPolicy
) -> list[str | ContextChunk]:
    return [
        content.text(chunk, "chunk", MAX_CHUNK) or ""
        if isinstance(chunk, str)
        else ContextChunk(
            text=content.text(chunk.text, "chunk", MAX_CHUNK) or "",
            id=None if chunk.id is None else _chunk_id(chunk.id),
            score=chunk.score,
            metadata=_stored_metadata(chunk.metadata, "chunk", content),
        )
        for chunk in islice(chunks, MAX_CHUNKS)
    ]


def _stored_metadata(
    metadata: Mapping[str, object], kind: ContentKind, content: ContentPolicy
) -> dict[str, object]:
    """Metadata that identifies the document for a reader, such as a file's name or a page."""
    kept: dict[str, object] = {}
    for key, value in metadata.items():
        held = content.text(value, kind, MAX_NAME) if isinstance(value, str) else value
        # Not NaN, infinite, or an integer that no float can hold.
        is_number = isinstance(held, bool | int | float) and abs(held) <= sys.float_info.max
        if len(kept) < MAX_METADATA and (is_number or (isinstance(held, str) and held)):
            kept[identifier(str(key))] = held
    return kept


def _chunk_id(chunk_id: ChunkId) -> ChunkId:
    """Id as it is stored; ids that differ only in what is cut off or replaced stay different."""
    if isinstance(chunk_id, int):
        return chunk_id
    kept = sendable(chunk_id[:MAX_ID])
    if kept == chunk_id:
        return chunk_id
    return f"{kept[: MAX_ID - 17]}~{deterministic_id([chunk_id])[:16]}"
