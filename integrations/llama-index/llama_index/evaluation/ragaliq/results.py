"""LlamaIndex's evaluation result, with what ragaliq knows beyond it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from llama_index.core.evaluation import EvaluationResult as LlamaIndexResult

from ragaliq import ClaimDetail, EvaluationResult, JudgeUsage, RAGTestCase, Status

if TYPE_CHECKING:
    from ragaliq import ContextChunk

__all__ = ["RagaliqEvaluationResult", "from_ragaliq", "invalid", "texts_of"]


class RagaliqEvaluationResult(LlamaIndexResult):
    """An evaluation as LlamaIndex expects it, and its claims, status and cost.

    LlamaIndex's own class drops fields it does not know, hence the subclass. When there is no
    score, `invalid_result` is True and `invalid_reason` begins with the status.

    Attributes:
        evaluator_name: The metric, such as `faithfulness`.
        status: How the evaluation ended; None when an input was missing and nothing was asked.
        threshold: The score from which on an answer passes.
        claims: Claim by claim, for claim-based metrics. `supporting_chunk_ids` are node ids where
            the evaluator was given nodes, positions where it was given strings.
        usage: Tokens, requests and money the judge cost.
        judge: Name of the judge that decided.
        model: The judge's model, when it has one.
        error_type: Class of the error, for failures.
    """

    evaluator_name: str = ""
    status: Status | None = None
    threshold: float | None = None
    claims: tuple[ClaimDetail, ...] = ()
    usage: JudgeUsage = JudgeUsage()
    judge: str = ""
    model: str | None = None
    error_type: str | None = None


def from_ragaliq(case: RAGTestCase, outcome: EvaluationResult) -> RagaliqEvaluationResult:
    """Translate a ragaliq result."""
    scored = outcome.score is not None
    reason = outcome.error or outcome.reasoning
    return RagaliqEvaluationResult(
        query=case.query or None,
        contexts=case.context_texts,
        response=case.response,
        passing=outcome.passed,
        feedback=_feedback(outcome),
        score=outcome.score,
        invalid_result=not scored,
        invalid_reason=None if scored else f"{outcome.status.value}: {reason}",
        evaluator_name=outcome.evaluator_name,
        status=outcome.status,
        threshold=outcome.threshold,
        claims=outcome.claims,
        usage=outcome.usage,
        judge=outcome.judge,
        model=outcome.model,
        error_type=outcome.error_type,
    )


def invalid(
    reason: str,
    *,
    evaluator_name: str,
    threshold: float,
    query: str | None = None,
    response: str | None = None,
    contexts: Sequence[str] | None = None,
    status: Status | None = None,
    error_type: str | None = None,
) -> RagaliqEvaluationResult:
    """The result of an evaluation that could not be made."""
    return RagaliqEvaluationResult(
        query=query,
        contexts=contexts,
        response=response,
        feedback=reason,
        invalid_result=True,
        invalid_reason=reason,
        evaluator_name=evaluator_name,
        threshold=threshold,
        status=status,
        error_type=error_type,
    )


def texts_of(contexts: Sequence[str | ContextChunk] | None) -> list[str] | None:
    """The chunks as the strings LlamaIndex keeps in a result."""
    if contexts is None:
        return None
    return [chunk if isinstance(chunk, str) else chunk.text for chunk in contexts]


def _feedback(outcome: EvaluationResult) -> str:
    lines = [outcome.reasoning]
    for claim in outcome.claims:
        if claim.verdict != "SUPPORTED":
            why = f" ({claim.reason})" if claim.reason else ""
            lines.append(f"{claim.verdict or 'NOT DECIDED'}: {claim.claim}{why}")
    return "\n".join(lines)
