"""Documents in what chains, retrievers and tools take and give, as traces hold it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from ragaliq.core.draft import Passage
from ragaliq.traces.chat import Message, message_of, messages_of, this_turn

__all__ = [
    "DOCUMENT_KEYS",
    "SCORE_KEYS",
    "TEXT_KEYS",
    "documents_of",
    "identifier",
    "listed_passages",
    "number",
    "output_passages",
    "passages_of",
    "prompt_passages",
    "takes_documents",
    "tool_passages",
    "turn_passages",
]

DOCUMENT_KEYS = ("context", "source_documents", "documents", "docs", "contexts", "retrieved_docs")
_CONTENT_KEYS = ("page_content", "pageContent")
TEXT_KEYS = ("page_content", "text", "content")
SCORE_KEYS = ("relevance_score", "score")


def documents_of(value: Any) -> list[Any] | None:
    """`value` if it is a list of documents with something in it."""
    is_list = isinstance(value, list) and bool(value)
    return value if is_list and all(_document(item) is not None for item in value) else None


def passages_of(documents: Iterable[Any]) -> list[Passage]:
    """The texts, ids and scores of documents."""
    found = [_document(document) for document in documents]
    return [passage for passage in found if passage is not None]


def listed_passages(value: Any) -> list[Passage] | None:
    """The passages of a list of documents, texts or dictionaries with a text; None if it is not."""
    if not isinstance(value, list):
        return None
    passages = [_passage(item) for item in value]
    found = [passage for passage in passages if passage is not None]
    return found if len(found) == len(passages) else None


def takes_documents(value: Any) -> bool:
    """Whether a step is given documents: then what it returns replaces them (rerank, fusion)."""
    if isinstance(value, Mapping):
        return _document(value) is None and any(takes_documents(item) for item in value.values())
    if isinstance(value, list) and value:
        return _document(value[0]) is not None or takes_documents(value[0])
    return False


def output_passages(value: Any) -> list[Passage] | None:
    """What a chain returns as its context beside the answer; empty when it says there was none."""
    if not isinstance(value, Mapping):
        return None
    lists = [listed_passages(value.get(key)) for key in DOCUMENT_KEYS]
    found = [passages for passages in lists if passages is not None]
    return next(filter(None, found), found[0] if found else None)


def prompt_passages(value: Any) -> list[Passage]:
    """The context variable of a prompt, the last trace of documents fetched by plain code."""
    if not isinstance(value, Mapping):
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
    message = message_of(output)
    if message is not None:
        return _told(message)
    if isinstance(output, str):
        return _texts([output])
    return passages_of(documents_of(output) or ())


def turn_passages(value: Any) -> list[Passage]:
    """What tools said in this turn of a conversation, as far as a model answered after it."""
    passages: list[Passage] = []
    unread: list[Passage] = []
    for message in this_turn(messages_of(value) or ()):
        if message.role == "tool":
            unread += _told(message)
        elif message.role == "assistant":
            passages += unread
            unread = []
    return passages


def identifier(value: Any) -> str | None:
    """A document's own id as a text, whatever a store makes it of; None if it has none."""
    if value is None or value == "" or isinstance(value, bool | float):
        return None
    return str(value) if isinstance(value, str | int) else None


def number(value: Any) -> float | None:
    """A score; None for what is no number."""
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def _told(message: Message) -> list[Passage]:
    if documents := documents_of(message.artifact):
        return passages_of(documents)
    return _texts(message.texts)


def _document(item: Any) -> Passage | None:
    """A document as LangChain writes it, in Python and in JavaScript."""
    if not isinstance(item, Mapping):
        return None
    kwargs = item.get("kwargs")
    fields = kwargs if isinstance(kwargs, Mapping) and item.get("type") == "constructor" else item
    for key in _CONTENT_KEYS:
        text = fields.get(key)
        if isinstance(text, str):
            return Passage(text, identifier(fields.get("id")), _score_of(fields.get("metadata")))
    return None


def _passage(item: Any) -> Passage | None:
    if isinstance(item, str):
        return Passage(item)
    document = _document(item)
    if document is not None or not isinstance(item, Mapping):
        return document
    texts = [item[key] for key in TEXT_KEYS if isinstance(item.get(key), str)]
    return Passage(texts[0]) if texts else None


def _score_of(metadata: Any) -> float | None:
    """The score that a reranker, or the application, noted on a document."""
    for key in SCORE_KEYS:
        score = number(metadata.get(key)) if isinstance(metadata, Mapping) else None
        if score is not None:
            return score
    return None


def _texts(texts: Iterable[str]) -> list[Passage]:
    return [Passage(text) for text in texts if text.strip()]
