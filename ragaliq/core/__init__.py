"""What is evaluated and what comes out. No input or output happens here."""

from ragaliq.core.evaluator import Evaluator
from ragaliq.core.policy import Fallback, ScoringPolicy
from ragaliq.core.results import (
    ClaimDetail,
    Evaluation,
    EvaluationResult,
    EvidenceSpan,
    JudgeUsage,
    Status,
    Verdict,
)
from ragaliq.core.run import RunInfo, SpanTarget
from ragaliq.core.test_case import ContextChunk, RAGTestCase

__all__ = [
    "ClaimDetail",
    "ContextChunk",
    "Evaluation",
    "EvaluationResult",
    "Evaluator",
    "EvidenceSpan",
    "Fallback",
    "JudgeUsage",
    "RAGTestCase",
    "RunInfo",
    "ScoringPolicy",
    "SpanTarget",
    "Status",
    "Verdict",
]
