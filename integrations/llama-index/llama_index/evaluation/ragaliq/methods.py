"""Which of LlamaIndex's spans matter, told by class and method."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.chat_engine.types import BaseChatEngine, StreamingAgentChatResponse
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.workflow import Workflow

__all__ = ["Part", "part_of"]


class Part(Enum):
    """The part a span plays in a run."""

    ENGINE = auto()
    WORKFLOW = auto()
    RETRIEVE = auto()
    RERANK = auto()
    SYNTHESIZE = auto()
    WRITE = auto()  # a chat engine reads its own stream, for its history and for the application


_PARTS: dict[str, tuple[type, Part]] = {
    "query": (BaseQueryEngine, Part.ENGINE),
    "aquery": (BaseQueryEngine, Part.ENGINE),
    "chat": (BaseChatEngine, Part.ENGINE),
    "achat": (BaseChatEngine, Part.ENGINE),
    "stream_chat": (BaseChatEngine, Part.ENGINE),
    "astream_chat": (BaseChatEngine, Part.ENGINE),
    "run": (Workflow, Part.WORKFLOW),
    "retrieve": (BaseRetriever, Part.RETRIEVE),
    "aretrieve": (BaseRetriever, Part.RETRIEVE),
    "_postprocess_nodes": (BaseNodePostprocessor, Part.RERANK),
    "synthesize": (BaseSynthesizer, Part.SYNTHESIZE),
    "asynthesize": (BaseSynthesizer, Part.SYNTHESIZE),
    "write_response_to_history": (StreamingAgentChatResponse, Part.WRITE),
    "awrite_response_to_history": (StreamingAgentChatResponse, Part.WRITE),
}
_UUID_LENGTH = len("-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")


def part_of(span_id: str, instance: Any) -> Part | None:
    """The part of a span with an id like `Class.method-uuid`, or None for all the others."""
    # Most spans are told apart by the method's name alone; models, for one, have a `chat` too.
    known = _PARTS.get(span_id[:-_UUID_LENGTH].rpartition(".")[2])
    return known[1] if known is not None and isinstance(instance, known[0]) else None
