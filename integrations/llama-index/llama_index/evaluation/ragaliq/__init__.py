"""Scores the answers of a LlamaIndex application, while it runs or over a data set.

    from llama_index.evaluation.ragaliq import attach

    handler = attach(judge="local", sample_rate=0.1)

From then on a sample of all answers is scored in the background. The evaluators are for
`BatchEvalRunner` and for your own calls.
"""

from llama_index.evaluation.ragaliq.attach import attach, attached, detach
from llama_index.evaluation.ragaliq.evaluators import (
    ChunkUtilityEvaluator,
    ContextPrecisionEvaluator,
    ContextRecallEvaluator,
    CorrectnessEvaluator,
    FaithfulnessEvaluator,
    HallucinationEvaluator,
    RagaliqEvaluationResult,
    RelevancyEvaluator,
)
from llama_index.evaluation.ragaliq.guards import (
    GuardedChatEngine,
    GuardedQueryEngine,
)
from llama_index.evaluation.ragaliq.span_handler import RagaliqSpanHandler

__all__ = [
    "ChunkUtilityEvaluator",
    "ContextPrecisionEvaluator",
    "ContextRecallEvaluator",
    "CorrectnessEvaluator",
    "FaithfulnessEvaluator",
    "GuardedChatEngine",
    "GuardedQueryEngine",
    "HallucinationEvaluator",
    "RagaliqEvaluationResult",
    "RagaliqSpanHandler",
    "RelevancyEvaluator",
    "attach",
    "attached",
    "detach",
]
