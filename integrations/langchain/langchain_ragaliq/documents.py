"""Finding documents in what chains, prompts and tools take and give.

A document's text and id are taken at once: documents are live objects that a later step may cut.
Nothing here copies large text: Python strings are shared, only lists are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, ToolMessage

from langchain_ragaliq.messages import messages_of, text_blocks, this_turn
from ragaliq import Passage

__all__ = [
    "DOCUMENT_KEYS",
    "documents_of",
    "listed_passages",
    "output_passages",
    "passages_of",
    "prompt_passages",
    "takes_documents",
    "tool_passages",
    "turn_passages",
]

DOCUMENT_KEYS = ("context", "source_documents", "documents", "docs", "contexts", "retrieved_docs")
TEXT_KEYS = ("page_content", "text", "content")
SCORE_KEYS = ("relevance_score", "score")


def documents_of(value: Any) -> list[Document] | None:
    """`value` if it is a list of documents with something in it."""
    return value if isinstance(value, list) and value and _all_documents(value) else None


def passages_of(documents: Iterable[Document]) -> list[Passage]:
    """The texts, ids and scores of documents."""
    return [
        Passage(document.page_content, document.id, _score_of(document.metadata))
        for document in documents
    ]


def listed_passages(value: Any) -> list[Passage] | None:
    """The passages of a list of documents, texts or dictionaries with a text; None if it is not."""
    if not isinstance(value, list):
        return None
    passages = [_passage(item) for item in value]
    found = [passage for passage in passages if passage is not None]
    return found if len(found) == len(passages) else None


def takes_documents(value: Any) -> bool:
    """Whether a step is given documents: then what it returns replaces them (rerank, fusion)."""
    if isinstance(value, dict):
        return any(takes_documents(item) for item in value.values())
    if isinstance(value, list) and value:
        return isinstance(value[0], Document) or takes_documents(value[0])
    return False


def output_passages(value: Any) -> list[Passage] | None:
    """What a chain returns as its context beside the answer; empty when it says there was none."""
    if not isinstance(value, dict):
        return None
    lists = [listed_passages(value.get(key)) for key in DOCUMENT_KEYS]
    found = [passages for passages in lists if passages is not None]
    return next(filter(None, found), found[0] if found else None)


def prompt_passages(value: Any) -> list[Passage]:
    """The context variable of a prompt, the last trace of documents fetched by plain code."""
    if not isinstance(value, dict):
        return []
    for key in DOCUMENT_KEYS:
        held = value.get(key)
        if isinstance(held, str) and held.strip():
            return [Passage(held)]
        found = listed_passages(held)
        if found:
            return found
    return []


def tool_passages(output: Any) -> list[Passage]:
    """What a tool said: its documents if it kept them, else its text."""
    if isinstance(output, ToolMessage):
        if documents := documents_of(output.artifact):
            return passages_of(documents)
        return _texts(text_blocks(output.content))
    if isinstance(output, str):
        return _texts([output])
    return passages_of(documents_of(output) or ())


def turn_passages(value: Any) -> list[Passage]:
    """What tools said in this turn of a conversation, as far as a model answered after it."""
    passages: list[Passage] = []
    unread: list[Passage] = []
    for message in this_turn(messages_of(value) or ()):
        if isinstance(message, ToolMessage):
            unread += tool_passages(message)
        elif isinstance(message, AIMessage):
            passages += unread
            unread = []
    return passages


def _all_documents(value: list[Any]) -> bool:
    return all(isinstance(item, Document) for item in value)


def _passage(item: Any) -> Passage | None:
    if isinstance(item, Document):
        return Passage(item.page_content, item.id, _score_of(item.metadata))
    if isinstance(item, str):
        return Passage(item)
    if isinstance(item, Mapping):
        texts = [item[key] for key in TEXT_KEYS if isinstance(item.get(key), str)]
        return Passage(texts[0]) if texts else None
    return None


def _score_of(metadata: Mapping[str, Any]) -> float | None:
    """The score that a reranker, or the application, noted on a document."""
    for key in SCORE_KEYS:
        score = metadata.get(key)
        if score is not None:
            try:
                return float(score)  # NumPy's numbers too
            except (TypeError, ValueError):
                continue
    return None


def _texts(texts: Iterable[str]) -> list[Passage]:
    return [Passage(text) for text in texts if text.strip()]
