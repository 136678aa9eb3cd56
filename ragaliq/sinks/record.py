"""One evaluated run as sinks keep it: plain data that says nothing it is not allowed to say.

Built by `ragaliq.sinks.recording`. Every text field is None or empty unless content capture is on.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from pydantic import BaseModel, ConfigDict, Field

from ragaliq.core.results import UNCALIBRATED, EvidenceSpan, JudgeUsage, Status, Verdict
from ragaliq.core.run import RunInfo
from ragaliq.core.test_case import ChunkId

__all__ = [
    "RECORD_VERSION",
    "CaseRecord",
    "ChunkRecord",
    "ClaimRecord",
    "EvaluationRecord",
    "MetricRecord",
    "deterministic_id",
]

RECORD_VERSION = 1
"""Raised when a field changes its meaning; readers refuse records of a later version."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class ClaimRecord(_Record):
    """One claim and what became of it; fields as in `ClaimDetail`.

    Attributes:
        index: Its position among the answer's claims, from 0.
        verdict: None when no verdict was to be had.
        confidence: 0 to 1.
        decided_by: The judge that gave the verdict.
        calibration: Id of the calibration behind the confidence; `uncalibrated` without one.
        evidence_verified: Whether the quoted evidence really occurs in the context.
        supporting_chunk_ids: Chunks the verdict rests on.
        answer_span: `(start, end)` in the answer as it is stored, or in the answer as it was given
            when no text is stored.
        evidence_spans: `(chunk id, start, end)`, likewise.
        text: The claim; None without content capture, as are the two below.
        evidence: The judge's quote or remark.
        reason: Why, in the judge's words.
    """

    index: int
    verdict: Verdict | None
    confidence: float = Field(ge=0.0, le=1.0)
    decided_by: str = ""
    calibration: str = UNCALIBRATED
    evidence_verified: bool = False
    supporting_chunk_ids: tuple[ChunkId, ...] = ()
    answer_span: tuple[int, int] | None = None
    evidence_spans: tuple[EvidenceSpan, ...] = ()
    text: str | None = None
    evidence: str | None = None
    reason: str | None = None


class MetricRecord(_Record):
    """One metric's outcome.

    Attributes:
        metric_id: The same whenever the same run is scored by the same metric and judge.
        name: The metric, such as `faithfulness`.
        status: How the evaluation ended.
        score: 0 to 1; None where there is none, which a failure never has.
        passed: Whether the score reaches the threshold; None without a score.
        threshold: The score from which on the case passes.
        higher_is_better: False for metrics where a low score is good.
        judge: Name of the judge that decided.
        model: The judge's model, when it has one.
        calibration: Id of the judge's calibration; `uncalibrated` where its confidence is no
            probability.
        version: Version of ragaliq that scored.
        duration: Seconds the evaluation took.
        error_type: The class of the failure, for statuses that are failures.
        usage: Tokens, requests and money.
        claims: Claim by claim, for claim-based metrics.
        claims_left_out: Further claims beyond the number that is kept.
        reasoning: The judge's words, with content capture; None otherwise.
    """

    metric_id: str
    name: str
    status: Status
    score: float | None = Field(default=None, ge=0.0, le=1.0, allow_inf_nan=False)
    passed: bool | None = None
    threshold: float = Field(default=0.0, allow_inf_nan=False)
    higher_is_better: bool = True
    judge: str = ""
    model: str | None = None
    calibration: str = UNCALIBRATED
    version: str = ""
    duration: float | None = None
    error_type: str | None = None
    usage: JudgeUsage = JudgeUsage()
    claims: tuple[ClaimRecord, ...] = ()
    claims_left_out: int = 0
    reasoning: str | None = None

    @property
    def is_measured(self) -> bool:
        """Whether the score may enter means, intervals and rates."""
        return self.status.is_measured and self.score is not None


class ChunkRecord(_Record):
    """A retrieved text, as far as it may be kept; `text` is None where the redactor dropped it."""

    chunk_id: ChunkId
    text: str | None = None
    score: float | None = None


class CaseRecord(_Record):
    """The texts of a run; only with content capture, and None where the redactor dropped them."""

    name: str = ""
    query: str | None = None
    response: str | None = None
    chunks: tuple[ChunkRecord, ...] = ()
    tags: tuple[str, ...] = ()


class EvaluationRecord(_Record):
    """One evaluated run with all its metrics.

    Attributes:
        schema_version: Of this form.
        evaluation_id: The same whenever the same job is evaluated again: a retry, or a job that a
            queue delivers twice, replaces the record instead of adding one.
        run: Where the answer came from, its span, and how it was chosen.
        case_id: The id of the test case.
        created_at: Unix time in seconds when it was evaluated.
        lag: Seconds between the end of the run and the start of its evaluation; None offline.
        metrics: The results, in the order of the evaluators.
        case: The texts, with content capture; None otherwise.
        case_digest: Of what the judgement rests on; in results files, where it tells a case that
            was changed since. None elsewhere.
        input_digest: Of question and context alone, likewise: by it the cases of two results files
            are paired.
    """

    schema_version: int = Field(default=RECORD_VERSION, ge=1, le=RECORD_VERSION)
    evaluation_id: str
    run: RunInfo
    case_id: str
    created_at: float
    lag: float | None = None
    metrics: tuple[MetricRecord, ...]
    case: CaseRecord | None = None
    case_digest: str | None = None
    input_digest: str | None = None

    @property
    def size(self) -> int:
        """Characters of its texts, roughly: what it costs to hold on to it."""
        texts = [t for m in self.metrics for c in m.claims for t in (c.text, c.evidence, c.reason)]
        if self.case is not None:
            texts += [self.case.query, self.case.response]
            texts += [chunk.text for chunk in self.case.chunks]
        return sum(len(text) for text in texts if text)

    @property
    def usage(self) -> JudgeUsage:
        """What all metrics cost together."""
        return sum((metric.usage for metric in self.metrics), JudgeUsage())


def deterministic_id(parts: Iterable[str | None]) -> str:
    """32 hex digits that depend on nothing but the parts."""
    digest = blake2b(digest_size=16, person=b"ragaliq-record")
    for part in parts:
        encoded = b"-" if part is None else b"+" + part.encode("utf-8", "surrogatepass")
        # With lengths in between, ("ab", "c") and ("a", "bc") differ.
        digest.update(len(encoded).to_bytes(8) + encoded)
    return digest.hexdigest()
