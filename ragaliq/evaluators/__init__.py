"""The metrics, one file each, on top of the shared claim check."""

from ragaliq.evaluators.case import evaluate_case
from ragaliq.evaluators.citations import CitationsEvaluator
from ragaliq.evaluators.claims import ClaimCheck, Strategy, check_claims
from ragaliq.evaluators.correctness import CorrectnessEvaluator
from ragaliq.evaluators.metrics import (
    ChunkUtilityEvaluator,
    ClaimEvaluator,
    ContextPrecisionEvaluator,
    ContextRecallEvaluator,
    ContradictionRateEvaluator,
    FaithfulnessEvaluator,
    HallucinationEvaluator,
    RelevanceEvaluator,
)
from ragaliq.evaluators.registry import (
    EvaluatorSpec,
    get_evaluator,
    list_evaluators,
    register_evaluator,
    resolve_evaluators,
)
from ragaliq.evaluators.rubric import Rubric

__all__ = [
    "ChunkUtilityEvaluator",
    "CitationsEvaluator",
    "ClaimCheck",
    "ClaimEvaluator",
    "ContextPrecisionEvaluator",
    "ContextRecallEvaluator",
    "ContradictionRateEvaluator",
    "CorrectnessEvaluator",
    "EvaluatorSpec",
    "FaithfulnessEvaluator",
    "HallucinationEvaluator",
    "RelevanceEvaluator",
    "Rubric",
    "Strategy",
    "check_claims",
    "evaluate_case",
    "get_evaluator",
    "list_evaluators",
    "register_evaluator",
    "resolve_evaluators",
]
