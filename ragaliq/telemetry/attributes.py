"""Results as telemetry attributes. Pure functions: nothing is emitted here."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Literal

from opentelemetry.util.types import AttributeValue

from ragaliq._version import __version__
from ragaliq.core.results import ClaimDetail, EvaluationResult
from ragaliq.core.run import RunInfo
from ragaliq.core.test_case import DOCUMENT_PLACES, ChunkId, RAGTestCase
from ragaliq.telemetry import names
from ragaliq.telemetry.content import ContentPolicy, identifier, sendable

Attributes = dict[str, AttributeValue]

UNVERIFIED = "UNVERIFIED"
"""In the place of a verdict where a claim has none."""

ClaimDetailLevel = Literal["spans", "arrays", "none"]
"""What is emitted about each claim: a span, an item of arrays on the metric's span, nothing."""


def known(values: Mapping[str, str | None]) -> Attributes:
    """Names and ids as attributes, without empty ones."""
    return {name: identifier(value) for name, value in values.items() if value}


def score(result: EvaluationResult) -> float | None:
    """Score of a result; None for NaN and for a failed evaluation.

    Some policies give a failure the score 0.0; a receiver would take it for a bad answer.
    """
    if result.score is None or math.isnan(result.score) or result.status.is_failure:
        return None
    return result.score


def template_explanation(result: EvaluationResult) -> str | None:
    """Reason without quotes: the number of claims by verdict; None without verdicts."""
    if not result.status.is_measured or not result.claims:
        return None
    details = result.raw_response
    if "total_citations" in details:
        cited, claims = details["supported"], details["total_claims"]
        return f"{cited} of {claims} claims cite a chunk that supports them"
    verdict = "SUPPORTED" if result.higher_is_better else "CONTRADICTED"
    counted = sum(claim.verdict == verdict for claim in result.claims)
    return f"{counted} of {len(result.claims)} claims {verdict.lower()}"


def explanation(result: EvaluationResult, content: ContentPolicy, *, captured: bool) -> Attributes:
    """Reason of a result: the judge's own words if content may be emitted, else a template."""
    if captured:
        said, limit = result.reasoning, names.MAX_EXPLANATION_LENGTH
        text = content.text(said, "explanation", limit) if said else None
    else:
        unmeasured = None if result.status.is_measured else result.status.value
        text = template_explanation(result) or unmeasured
    return {names.EVALUATION_EXPLANATION: text} if text else {}


def root_attributes(run: RunInfo, lag: float) -> Attributes:
    """Attributes of the root span, known before the evaluation begins; `lag` is in seconds."""
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
        names.TARGET_MODEL: run.model,
    }
    attributes |= known(optional)
    if run.sampling_rules:
        rules = run.sampling_rules[: names.MAX_SAMPLING_RULES]
        attributes[names.SAMPLING_RULES] = [identifier(name) for name in rules]
    return attributes


def result_attributes(result: EvaluationResult, detail: ClaimDetailLevel | None) -> Attributes:
    """Attributes that a metric's span and its event share; `detail` says how claims are listed."""
    attributes: Attributes = {
        names.OPERATION_NAME: "evaluation",
        names.EVALUATION_NAME: identifier(result.evaluator_name),
        names.STATUS: result.status.value,
        names.EVALUATOR_TYPE: identifier(result.judge_kind) or ("llm" if result.model else "code"),
        names.EVALUATOR_ID: identifier(result.judge),
        names.EVALUATOR_VERSION: __version__,
        names.JUDGE_CALIBRATION: identifier(result.calibration),
        names.THRESHOLD: result.threshold,
        names.HIGHER_IS_BETTER: result.higher_is_better,
    }
    found = score(result)
    if found is not None:
        attributes[names.EVALUATION_SCORE] = found
        attributes[names.EVALUATION_LABEL] = "pass" if result.passed else "fail"
        attributes[names.PASSED] = bool(result.passed)
    optional = {
        names.EVALUATOR_FINGERPRINT: result.fingerprint,
        names.JUDGE_MODEL: result.model,
        names.ERROR_TYPE: result.error_type if result.status.is_failure else None,
    }
    attributes |= known(optional)
    if not result.claims:
        return attributes
    verdicts = [claim.verdict or UNVERIFIED for claim in result.claims]
    attributes |= {
        names.CLAIM_TOTAL: len(verdicts),
        names.CLAIM_SUPPORTED: verdicts.count("SUPPORTED"),
        names.CLAIM_CONTRADICTED: verdicts.count("CONTRADICTED"),
        names.CLAIM_NOT_ENOUGH_INFO: verdicts.count("NOT_ENOUGH_INFO"),
        names.CLAIM_UNVERIFIED: verdicts.count(UNVERIFIED),
    }
    if detail != "none":
        listed = names.MAX_VERDICTS if detail == "arrays" else names.MAX_CLAIM_SPANS
        attributes[names.CLAIM_VERDICTS] = verdicts[: names.MAX_VERDICTS]
        attributes[names.CLAIMS_TRUNCATED] = max(0, len(verdicts) - listed)
    return attributes


def summary_attributes(metrics: Iterable[Mapping[str, AttributeValue]]) -> Attributes:
    """OpenInference's `evaluations.<i>.*` list for the root span, from the metrics' attributes."""
    summary: Attributes = {}
    for index, metric in enumerate(metrics):
        if index == names.MAX_METRICS_ON_ROOT:
            break
        fields = {
            "name": metric[names.EVALUATION_NAME],
            "score": metric.get(names.EVALUATION_SCORE),
            "label": metric.get(names.EVALUATION_LABEL, metric[names.STATUS]),
            "explanation": metric.get(names.EVALUATION_EXPLANATION),
            # OpenInference knows LLM, CODE and HUMAN: an entailment model is code that runs here.
            "annotator_kind": "LLM" if metric[names.EVALUATOR_TYPE] == "llm" else "CODE",
            "identifier": metric[names.EVALUATOR_ID],
        }
        for field, value in fields.items():
            if value is not None:
                summary[f"{names.EVALUATIONS}.{index}.evaluation.{field}"] = value
    return summary


def claim_arrays(claims: tuple[ClaimDetail, ...], content: ContentPolicy) -> Attributes:
    """Claims of a metric as arrays on its span, in the order of the verdicts."""
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


def claim_attributes(
    index: int,
    claim: ClaimDetail,
    content: ContentPolicy,
    documents: Mapping[ChunkId, str],
) -> Attributes:
    """Attributes of one claim's span; `documents` maps chunk ids to their sources."""
    ids = claim.supporting_chunk_ids[: names.MAX_DOCUMENT_IDS]
    attributes: Attributes = {
        names.SPAN_KIND: names.SPAN_KIND_EVALUATOR,
        names.CLAIM_INDEX: index,
        names.CLAIM_VERDICT: claim.verdict or UNVERIFIED,
        names.CLAIM_CONFIDENCE: claim.confidence,
        names.CLAIM_IS_UNSURE: claim.is_unsure,
        names.CLAIM_EVIDENCE_VERIFIED: claim.evidence_verified,
        names.CLAIM_DECIDED_BY: identifier(claim.decided_by),
    }
    if ids:
        limit = names.MAX_DOCUMENT_ID_LENGTH
        attributes[names.CLAIM_DOCUMENT_IDS] = [sendable(str(i)[:limit]) for i in ids]
    if claim.support_source is not None:
        attributes[names.CLAIM_SUPPORT_SOURCE] = claim.support_source
    if content.on_spans:
        limit = names.MAX_CLAIM_TEXT_LENGTH
        texts = {
            names.CLAIM_TEXT: content.text(claim.claim, "claim", limit),
            names.CLAIM_EVIDENCE: content.text(claim.evidence, "evidence", limit),
            names.CLAIM_EXPLANATION: content.text(claim.reason, "explanation", limit),
        }
        attributes |= {name: text for name, text in texts.items() if text}
        if sources := dict.fromkeys(documents[i] for i in ids if i in documents):
            attributes[names.CLAIM_DOCUMENT_SOURCES] = list(sources)
        if claim.answer_span:
            attributes[names.CLAIM_ANSWER_START], attributes[names.CLAIM_ANSWER_END] = (
                claim.answer_span
            )
    return attributes


def document_sources(case: RAGTestCase, content: ContentPolicy) -> dict[ChunkId, str]:
    """File or address in each chunk's metadata; only if content may be emitted."""
    found: dict[ChunkId, str] = {}
    for chunk_id, chunk in zip(case.chunk_ids, case.context, strict=True):
        metadata = {} if isinstance(chunk, str) else chunk.metadata
        named = [metadata.get(key) for key in DOCUMENT_PLACES]
        source = next((each for each in named if isinstance(each, str)), "")
        if text := content.text(source, "chunk", names.MAX_NAME_LENGTH):
            found[chunk_id] = text
    return found


def metadata_attributes(case: RAGTestCase, content: ContentPolicy) -> Attributes:
    """Metadata of a case as JSON, whole or not at all; only if content may be emitted."""
    kept: dict[str, object] = {}
    for key, value in case.metadata.items():
        is_text = isinstance(value, str)
        said = content.text(value, "question", names.MAX_NAME_LENGTH) if is_text else value
        if isinstance(said, str | int | float):
            kept[key] = said
    text = json.dumps(kept)
    return {names.METADATA: text} if kept and len(text) <= names.MAX_METADATA_LENGTH else {}
