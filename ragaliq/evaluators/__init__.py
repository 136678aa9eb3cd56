"""What is measured: one file a metric, on top of the shared claim check."""

from ragaliq.evaluators.case import evaluate_case
from ragaliq.evaluators.chunk_utility import ChunkUtilityEvaluator
from ragaliq.evaluators.claim_based import ClaimEvaluator
from ragaliq.evaluators.claims import ClaimCheck, Strategy, check_claims
from ragaliq.evaluators.context_precision import ContextPrecisionEvaluator
from ragaliq.evaluators.context_recall import ContextRecallEvaluator
from ragaliq.evaluators.faithfulness import FaithfulnessEvaluator
from ragaliq.evaluators.hallucination import HallucinationEvaluator
from ragaliq.evaluators.registry import (
    EvaluatorSpec,
    get_evaluator,
    list_evaluators,
    register_evaluator,
    resolve_evaluators,
)
from ragaliq.evaluators.relevance import RelevanceEvaluator

__all__ = [
    "ChunkUtilityEvaluator",
    "ClaimCheck",
    "ClaimEvaluator",
    "ContextPrecisionEvaluator",
    "ContextRecallEvaluator",
    "EvaluatorSpec",
    "FaithfulnessEvaluator",
    "HallucinationEvaluator",
    "RelevanceEvaluator",
    "Strategy",
    "check_claims",
    "evaluate_case",
    "get_evaluator",
    "list_evaluators",
    "register_evaluator",
    "resolve_evaluators",
]
