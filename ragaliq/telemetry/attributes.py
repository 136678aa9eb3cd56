"""Results as telemetry attributes. Pure functions: nothing is emitted here."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Literal

from opentelemetry.util.types import AttributeValue

from ragaliq._version import __version__
from ragaliq.core.results import ClaimDetail, EvaluationResult
from ragaliq.core.run import RunInfo
from ragaliq.telemetry import names
from ragaliq.telemetry.content import ContentPolicy, identifier, sendable

__all__ = [
    "Attributes",
    "ClaimDetailLevel",
    "claim_arrays",
    "claim_attributes",
    "distinct_claims",
    "explanation",
    "is_failure",
    "label",
    "metric_attributes",
    "root_attributes",
    "score",
    "summary_attributes",
    "template_explanation",
    "verdict",
]

Attributes = dict[str, AttributeValue]

ClaimDetailLevel = Literal["spans", "arrays", "none"]
"""How much is said about each claim: a span, an entry in arrays on the metric's span, nothing."""


def is_failure(result: EvaluationResult) -> bool:
    """Whether the evaluation itself failed; a low score is not a failure."""
    return result.status.is_failure


def label(result: EvaluationResult) -> str | None:
    """`pass` or `fail`, or None where there is no score."""
    if score(result) is None:
        return None
    return "pass" if result.passed else "fail"


def score(result: EvaluationResult) -> float | None:
    """The score, or None where there is none: not for NaN, nor for a failed evaluation.

    Some policies give a failure the score 0.0; on the wire it would look like a bad answer.
    """
    if result.score is None or math.isnan(result.score) or is_failure(result):
        return None
    return result.score


def verdict(claim: ClaimDetail) -> str:
    """The verdict, or `UNVERIFIED` where there is none."""
    return claim.verdict or "UNVERIFIED"


def distinct_claims(results: Mapping[str, EvaluationResult]) -> Iterator[ClaimDetail]:
    """Every claim once: metrics that share a claim check hold the same ones."""
    seen: list[tuple[ClaimDetail, ...]] = []
    for result in results.values():
        if result.claims not in seen:
            seen.append(result.claims)
            yield from result.claims


def explanation(result: EvaluationResult, content: ContentPolicy, *, captured: bool) -> str | None:
    """The reason for a score: the judge's words only with content capture, else a template."""
    if captured:
        if not result.reasoning:
            return None
        return content.text(result.reasoning, "explanation", names.MAX_EXPLANATION_LENGTH)
    return template_explanation(result) or (
        None if result.status.is_measured else result.status.value
    )


def template_explanation(result: EvaluationResult) -> str | None:
    """A reason that quotes nothing: how many claims are supported; None without verdicts."""
    if not result.status.is_measured or not result.claims:
        return None
    supported = sum(claim.verdict == "SUPPORTED" for claim in result.claims)
    return f"{supported} of {len(result.claims)} claims supported"


def root_attributes(run: RunInfo, lag: float) -> Attributes:
    """Attributes of the root span, known before the evaluation begins."""
    attributes: Attributes = {
        names.SPAN_KIND: names.SPAN_KIND_EVALUATOR,
        names.OPERATION_NAME: "evaluation",
        names.SCHEMA: names.SCHEMA_VERSION,
        names.TARGET_RUN_ID: identifier(run.run_id),
        names.TARGET_SOURCE: identifier(run.target.source) if run.target else "none",
        names.SAMPLING_PROBABILITY: run.sampling_probability,
        names.SAMPLING_REASON: identifier(run.sampling_reason),
    }
    if lag:  # none offline
        attributes[names.EVALUATION_LAG] = lag
    if run.target:
        attributes[names.TARGET_TRACE_ID] = run.target.trace_id
        attributes[names.TARGET_SPAN_ID] = run.target.span_id
    optional = {
        names.PIPELINE_NAME: run.pipeline,
        names.FRAMEWORK: run.framework,
        names.SESSION_ID: run.session_id,
        names.RESPONSE_ID: run.response_id,
    }
    attributes.update({name: identifier(value) for name, value in optional.items() if value})
    if run.sampling_rules:
        rules = run.sampling_rules[: names.MAX_SAMPLING_RULES]
        attributes[names.SAMPLING_RULES] = [identifier(name) for name in rules]
    return attributes


def summary_attributes(
    results: Mapping[str, EvaluationResult], content: ContentPolicy
) -> Attributes:
    """OpenInference's `evaluations.<i>.*` list for the root span."""
    attributes: Attributes = {}
    for index, result in enumerate(list(results.values())[: names.MAX_METRICS_ON_ROOT]):
        fields = {
            "name": identifier(result.evaluator_name),
            "score": score(result),
            "label": label(result) or result.status.value,
            "explanation": explanation(result, content, captured=content.on_spans),
            "annotator_kind": "LLM" if result.model else "CODE",
            "identifier": identifier(result.judge),
        }
        attributes.update(
            {
                names.evaluations_attribute(index, field): value
                for field, value in fields.items()
                if value is not None
            }
        )
    return attributes


def metric_attributes(
    result: EvaluationResult,
    content: ContentPolicy,
    *,
    captured: bool,
    detail: ClaimDetailLevel | None = "spans",
) -> Attributes:
    """Attributes of a metric's span and of its event."""
    attributes: Attributes = {
        names.OPERATION_NAME: "evaluation",
        names.EVALUATION_NAME: identifier(result.evaluator_name),
        names.STATUS: result.status.value,
        names.EVALUATOR_TYPE: "llm" if result.model else "code",
        names.EVALUATOR_ID: identifier(result.judge),
        names.EVALUATOR_VERSION: __version__,
        names.JUDGE_CALIBRATION: identifier(result.calibration),
        names.THRESHOLD: result.threshold,
        names.HIGHER_IS_BETTER: result.higher_is_better,
    }
    optional: dict[str, AttributeValue | None] = {
        names.EVALUATION_SCORE: score(result),
        names.EVALUATION_LABEL: label(result),
        names.EVALUATION_EXPLANATION: explanation(result, content, captured=captured),
        names.PASSED: None if score(result) is None else result.passed,
        names.JUDGE_MODEL: identifier(result.model) if result.model else None,
        names.ERROR_TYPE: _error_type(result),
    }
    attributes.update({name: value for name, value in optional.items() if value is not None})
    if result.claims:
        attributes.update(_claim_counts(result.claims))
        if detail != "none":
            attributes.update(_claim_verdicts(result.claims, detail))
    return attributes


def _error_type(result: EvaluationResult) -> str | None:
    return identifier(result.error_type) if result.error_type and is_failure(result) else None


def claim_arrays(claims: tuple[ClaimDetail, ...], content: ContentPolicy) -> Attributes:
    """The claims of a metric as arrays on its span, in the order of the verdicts."""
    listed = claims[: names.MAX_VERDICTS]
    attributes: Attributes = {
        names.CLAIM_CONFIDENCES: [claim.confidence for claim in listed],
        names.CLAIM_DECIDERS: [identifier(claim.decided_by) for claim in listed],
    }
    if content.on_spans:
        limit = names.MAX_CLAIM_TEXT_LENGTH
        attributes[names.CLAIM_TEXTS] = [
            content.text(claim.claim, "claim", limit) or "" for claim in listed
        ]
    return attributes


def claim_attributes(index: int, claim: ClaimDetail, content: ContentPolicy) -> Attributes:
    """Attributes of one claim's span."""
    ids = claim.supporting_chunk_ids[: names.MAX_DOCUMENT_IDS]
    attributes: Attributes = {
        names.CLAIM_INDEX: index,
        names.CLAIM_VERDICT: verdict(claim),
        names.CLAIM_CONFIDENCE: claim.confidence,
        names.CLAIM_DOCUMENT_IDS: [sendable(str(i)[: names.MAX_DOCUMENT_ID_LENGTH]) for i in ids],
        names.CLAIM_EVIDENCE_VERIFIED: claim.evidence_verified,
        names.CLAIM_DECIDED_BY: identifier(claim.decided_by),
        names.JUDGE_CALIBRATION: identifier(claim.calibration),
    }
    if content.on_spans:
        attributes.update(_claim_content(claim, content))
    return attributes


def _claim_content(claim: ClaimDetail, content: ContentPolicy) -> Attributes:
    limit = names.MAX_CLAIM_TEXT_LENGTH
    texts = {
        names.CLAIM_TEXT: content.text(claim.claim, "claim", limit),
        names.CLAIM_EVIDENCE: content.text(claim.evidence, "evidence", limit),
        names.CLAIM_EXPLANATION: content.text(claim.reason, "explanation", limit),
    }
    attributes: Attributes = {name: text for name, text in texts.items() if text}
    if claim.answer_span:
        attributes[names.CLAIM_ANSWER_START], attributes[names.CLAIM_ANSWER_END] = claim.answer_span
    return attributes


def _claim_counts(claims: tuple[ClaimDetail, ...]) -> Attributes:
    counts = Counter(verdict(claim) for claim in claims)
    return {
        names.CLAIM_TOTAL: len(claims),
        names.CLAIM_SUPPORTED: counts["SUPPORTED"],
        names.CLAIM_CONTRADICTED: counts["CONTRADICTED"],
        names.CLAIM_NOT_ENOUGH_INFO: counts["NOT_ENOUGH_INFO"],
        names.CLAIM_UNVERIFIED: counts["UNVERIFIED"],
    }


def _claim_verdicts(claims: tuple[ClaimDetail, ...], detail: ClaimDetailLevel | None) -> Attributes:
    listed = names.MAX_VERDICTS if detail == "arrays" else names.MAX_CLAIM_SPANS
    return {
        names.CLAIM_VERDICTS: [verdict(claim) for claim in claims[: names.MAX_VERDICTS]],
        names.CLAIMS_TRUNCATED: max(0, len(claims) - listed),
    }
