"""Which of LlamaIndex's spans matter. OpenInference writes them one a method, named after it."""

from __future__ import annotations

from ragaliq.traces.names import LLAMA_INDEX_SCOPE
from ragaliq.traces.step import Kind, Step

__all__ = [
    "ENGINES",
    "RERANK",
    "RETRIEVE",
    "SYNTHESIZE",
    "WORKFLOW",
    "WRITE",
    "is_plumbing",
    "is_skipped",
    "is_streamed",
    "method_of",
]

STREAMED = frozenset({"stream_chat", "astream_chat"})
ENGINES = frozenset({"query", "aquery", "chat", "achat"}) | STREAMED
WORKFLOW = "run"
RETRIEVE = frozenset({"retrieve", "aretrieve"})
RERANK = frozenset({"_postprocess_nodes", "postprocess_nodes"})
SYNTHESIZE = frozenset({"synthesize", "asynthesize"})
WRITE = frozenset({"get_response", "aget_response"})
_EVALUATE = frozenset({"evaluate", "aevaluate", "evaluate_response", "aevaluate_response"})
# What the classes of LangChain's own evaluators end in; their answers are grades.
_GRADING = "EvalChain"


def method_of(step: Step) -> str | None:
    """The method a span is of; None for models, and for spans of anybody else."""
    is_part = step.span.scope == LLAMA_INDEX_SCOPE and step.kind is not Kind.LLM
    return step.span.name.rpartition(".")[2] if is_part else None


def is_plumbing(step: Step) -> bool:
    """Whether a span of LlamaIndex begins no run of its own, though those below it may."""
    method = method_of(step)
    return method is not None and method not in ENGINES and method != WORKFLOW


def is_skipped(step: Step) -> bool:
    """Whether a span with all below it is somebody's evaluation."""
    if step.kind is Kind.EVALUATOR or method_of(step) in _EVALUATE:
        return True
    return step.kind is Kind.CHAIN and step.span.name.endswith(_GRADING)


def is_streamed(step: Step) -> bool:
    """Whether a span's answer was handed out piece by piece, and is therefore not on it."""
    outputs = step.outputs
    has_stream = isinstance(outputs, dict) and bool({"response_gen", "response_txt"} & set(outputs))
    return has_stream or method_of(step) in STREAMED
