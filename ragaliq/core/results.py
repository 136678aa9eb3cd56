"""Results of an evaluation: scores, statuses, claims and costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ragaliq.core.run import RunInfo, SpanTarget
from ragaliq.core.test_case import ChunkId, RAGTestCase

Verdict = Literal["SUPPORTED", "CONTRADICTED", "NOT_ENOUGH_INFO"]
"""What the context says about a claim."""

SupportSource = Literal["turn", "prompt", "earlier_turn", "user"]
"""What a verdict rests on: this turn's chunks, those of an earlier turn, or what the user said."""

UNCALIBRATED = "uncalibrated"
"""Calibration id of a confidence that is not a probability."""


def passing_scores(threshold: float, *, higher_is_better: bool) -> str:
    """Scores that pass, in words: `at least 0.7`, or `at most 0.1` where a low score is good."""
    return f"{'at least' if higher_is_better else 'at most'} {threshold:g}"


class Status(StrEnum):
    """End of one evaluation. Only `scored` and `partial` come from verdicts.

    Attributes:
        is_measured: Whether a score of this status belongs in means and rates.
        is_unanswered: Whether the judge gave no answer, which may pass; a refusal is an answer.
        is_failure: Whether the evaluation itself failed, which says nothing about the answer.
        is_decline: Whether the answer declines; `answer_withheld` though the context holds it.
    """

    SCORED = "scored"
    PARTIAL = "partial"
    NO_CLAIMS = "no_claims"
    EMPTY_ANSWER = "empty_answer"
    NO_CONTEXT = "no_context"
    NO_REFERENCE = "no_reference"
    NO_QUESTION = "no_question"
    ANSWER_REFUSED = "answer_refused"
    ANSWER_WITHHELD = "answer_withheld"
    JUDGE_REFUSED = "judge_refused"
    JUDGE_ERROR = "judge_error"
    JUDGE_TIMEOUT = "judge_timeout"
    TOO_LONG = "too_long"

    def __init__(self, value: str) -> None:
        self.is_measured = value in ("scored", "partial")
        self.is_unanswered = value in ("judge_error", "judge_timeout")
        self.is_failure = self.is_unanswered or value in ("judge_refused", "too_long")
        self.is_decline = value in ("answer_refused", "answer_withheld")


class JudgeUsage(BaseModel):
    """Tokens, requests and money spent on a judge; add two with `+`.

    Attributes:
        input_tokens: Tokens read at the full price.
        output_tokens: Tokens written.
        cache_read_tokens: Input tokens served from the provider's prompt cache.
        cache_write_tokens: Input tokens written to that cache.
        unsplit_tokens: Tokens of a judge that reports only a total.
        requests: Calls that got a reply.
        cost_usd: US dollars; None when the price is not known. At list price, unless `saved_usd`
            says otherwise.
        saved_usd: US dollars by which that is below the list price, such as in a batch.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    unsplit_tokens: int = 0
    requests: int = 0
    cost_usd: float | None = 0.0
    saved_usd: float = 0.0

    @property
    def total_tokens(self) -> int:
        """Every token, cached ones included."""
        return (
            self.input_tokens
            + self.output_tokens
            + self.cache_read_tokens
            + self.cache_write_tokens
            + self.unsplit_tokens
        )

    def __add__(self, other: JudgeUsage) -> JudgeUsage:
        unknown = self.cost_usd is None or other.cost_usd is None
        return JudgeUsage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            unsplit_tokens=self.unsplit_tokens + other.unsplit_tokens,
            requests=self.requests + other.requests,
            # An unknown part makes the sum unknown: a total without some calls would be wrong.
            cost_usd=None if unknown else (self.cost_usd or 0.0) + (other.cost_usd or 0.0),
            saved_usd=self.saved_usd + other.saved_usd,
        )


class EvidenceSpan(NamedTuple):
    """A range of characters, `[start, end)`, in the chunk with this id."""

    chunk_id: ChunkId
    start: int
    end: int


class ClaimDetail(BaseModel):
    """One claim of the answer with its verdict and evidence.

    Attributes:
        claim: The statement that was checked, understandable without the answer.
        verdict: The judge's verdict; None when there was none.
        evidence: The judge's quote or remark from the context.
        confidence: The judge's own certainty, 0 to 1; a probability only for a calibrated judge.
        is_unsure: Whether the claim is worth a second look: the judge's confidence is below its
            `sure_from`, or there is no verdict.
        reason: Why, in the judge's words.
        support_source: Source of the evidence: this turn's chunks, the rest of the prompt, an
            earlier turn's chunks, or the user's messages; None where none of them decides.
        supporting_chunk_ids: Chunks the verdict rests on. Chunks of the case's `history` have the
            turn's position and their own id or position, such as `history.1/refunds.md`; a user's
            message is `history.2`, or `query` for the question itself; the rest of the prompt is
            `prompt`.
        answer_span: `(start, end)` of the claim in the answer, when it could be located.
        evidence_spans: Places of the evidence in the chunks.
        evidence_verified: Whether the quoted evidence really occurs in the context.
        decided_by: The judge that gave the verdict.
        calibration: Id of the calibration behind the confidence; `uncalibrated` without one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    claim: str
    verdict: Verdict | None
    evidence: str = ""
    confidence: float = Field(default=1.0, ge=0.0, le=1.0)
    is_unsure: bool = False
    reason: str = ""
    support_source: SupportSource | None = None
    supporting_chunk_ids: tuple[ChunkId, ...] = ()
    answer_span: tuple[int, int] | None = None
    evidence_spans: tuple[EvidenceSpan, ...] = ()
    evidence_verified: bool = False
    decided_by: str = ""
    calibration: str = UNCALIBRATED


class EvaluationResult(BaseModel):
    """One metric's outcome for one case.

    `score` and `passed` are both set or both None. They are None when there is nothing to score
    under the policy in force; a score of NaN (policy `RAGAS`) means "undefined" and never passes.

    Attributes:
        evaluator_name: The metric, such as `faithfulness`.
        score: 0 to 1, NaN or None.
        passed: Whether the score reaches the threshold.
        reasoning: One sentence for people; may quote nothing from the application's text.
        raw_response: The metric's details under the keys its documentation names.
        tokens_used: All tokens, cached ones included.
        status: How the evaluation ended.
        error: The failure, for statuses that are failures.
        error_type: The class of that error.
        usage: Tokens, requests and money.
        claims: Claim by claim, for claim-based metrics.
        higher_is_better: False for metrics where a low score is good.
        threshold: The lowest score that passes, or the highest where low is good.
        judge: Name of the judge that decided.
        model: The judge's model, when it has one.
        calibration: Id of the calibration behind its claims' confidence; `uncalibrated` if that
            is not a probability, or if the metric has no claims.
        duration: Seconds the evaluation took; None when it was not timed.
        judge_kind: Kind of judge: `llm`, `nli` or `code`; empty if not known.
        fingerprint: Identifies what made the score (`Evaluator.fingerprint`); empty if not known.
            Do not average scores with different fingerprints.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    evaluator_name: str
    score: float | None
    passed: bool | None
    reasoning: str = ""
    raw_response: dict[str, Any] = Field(default_factory=dict)
    tokens_used: int = 0
    status: Status = Status.SCORED
    error: str | None = None
    error_type: str | None = None
    usage: JudgeUsage = JudgeUsage()
    claims: tuple[ClaimDetail, ...] = ()
    higher_is_better: bool = True
    threshold: float = 0.0
    judge: str = ""
    model: str | None = None
    calibration: str = UNCALIBRATED
    duration: float | None = None
    judge_kind: str = ""
    fingerprint: str = ""

    @model_validator(mode="after")
    def _score_is_a_share(self) -> EvaluationResult:
        if (self.score is None) != (self.passed is None):
            raise ValueError("score and passed must be both set or both None")
        if self.score is not None and not math.isnan(self.score) and not 0.0 <= self.score <= 1.0:
            raise ValueError(f"score must be within [0, 1], got {self.score}")
        return self

    @property
    def is_measured(self) -> bool:
        """True if the score counts in means, intervals and rates."""
        return self.status.is_measured and self.score is not None and not math.isnan(self.score)


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Result of evaluating one case, live or offline.

    Attributes:
        case: Question, context and answer, and the run that gave it.
        results: Metric name to result.
        lag: Seconds between the end of the run and the start of its evaluation.
        position: Position of the case among those of a job, from 0.
    """

    case: RAGTestCase
    results: Mapping[str, EvaluationResult]
    lag: float = 0.0
    position: int = 0

    def __repr__(self) -> str:
        # One line without texts: users print lists of failures in notebooks, and may log them.
        return f"Evaluation({self.run.run_id!r}: {self._figures()})"

    def _repr_html_(self) -> str:
        """Question, figures, answer, and each claim once with its verdict and evidence."""
        claims = dict.fromkeys(claim for result in self.results.values() for claim in result.claims)
        rows = (
            (claim.verdict or "no verdict", claim.claim, claim.evidence or claim.reason)
            for claim in claims
        )
        cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
        table = "".join(f"<tr>{row}</tr>" for row in cells)
        return (
            f"<div><p><b>{escape(self.case.query)}</b><br>{escape(self.case.response)}</p>"
            f"<p>{escape(self._figures())}</p><table>{table}</table></div>"
        )

    def _figures(self) -> str:
        return ", ".join(
            f"{name} {result.status.value}"
            if result.score is None
            else f"{name} {result.score:.2f} ({'passed' if result.passed else 'failed'})"
            for name, result in self.results.items()
        )

    @property
    def run(self) -> RunInfo:
        """The run that gave the answer, and how it was sampled."""
        return self.case.evaluated_run

    @property
    def usage(self) -> JudgeUsage:
        """Tokens, requests and money of all its metrics."""
        return sum((result.usage for result in self.results.values()), JudgeUsage())

    @property
    def sampling_probability(self) -> float:
        """The chance this run had of being evaluated."""
        return self.run.sampling_probability

    @property
    def target(self) -> SpanTarget | None:
        """The span that the evaluation refers to."""
        return self.run.target

    @property
    def pipeline(self) -> str:
        """The application's name for the chain."""
        return self.run.pipeline
