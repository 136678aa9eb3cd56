"""Finding question, answer and documents in what chains take and give.

People write chains in many shapes; these functions know the common ones and say None to the rest.
Nothing here copies large text: Python strings are shared, only lists are made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.outputs import LLMResult
from pydantic import BaseModel

from langchain_ragaliq.messages import (
    is_human,
    last_answer,
    last_question,
    message_text,
    messages_of,
    this_turn,
)

__all__ = [
    "answer_of",
    "documents_of",
    "output_documents",
    "prompt_context",
    "question_of",
    "reply_of",
    "takes_documents",
    "tool_contexts",
]

QUESTION_KEYS = ("question", "query", "input", "user_input", "user_query", "human_input")
ANSWER_KEYS = ("answer", "result", "output", "response", "output_text", "final_answer", "text")
DOCUMENT_KEYS = ("context", "source_documents", "documents", "docs", "contexts")


def question_of(value: Any) -> str | None:
    """The user's question in a chain's input, or None."""
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, BaseMessage):
        return message_text(value) or None
    if isinstance(value, Mapping):
        return _question_of_mapping(value)
    messages = messages_of(value)
    return last_question(messages) if messages else None


def _question_of_mapping(value: Mapping[str, Any]) -> str | None:
    for key in QUESTION_KEYS:
        found = question_of(value[key]) if key in value else None
        if found:
            return found
    messages = messages_of(value)
    if messages:
        return last_question(messages)
    texts = [item for item in value.values() if isinstance(item, str) and item.strip()]
    return texts[0] if len(texts) == 1 else None


def answer_of(value: Any) -> str | None:
    """The answer in a chain's output, or None."""
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, BaseMessage):
        return None if is_human(value) or isinstance(value, ToolMessage) else message_text(value)
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    if isinstance(value, Mapping):
        return _answer_of_mapping(value)
    messages = messages_of(value)
    return last_answer(messages) if messages else None


def _answer_of_mapping(value: Mapping[str, Any]) -> str | None:
    structured = value.get("structured_response")
    if structured is not None:
        return _as_text(structured)
    for key in ANSWER_KEYS:
        found = _as_text(value[key]) if key in value else None
        if found:
            return found
    messages = messages_of(value)
    return last_answer(messages) if messages else None


def _as_text(value: Any) -> str | None:
    if isinstance(value, str | BaseMessage | BaseModel):
        return answer_of(value)
    if isinstance(value, Mapping) or (isinstance(value, list) and not documents_of(value)):
        return json.dumps(value, ensure_ascii=False, default=str)
    return None


def documents_of(value: Any) -> list[Document] | None:
    """`value` if it is a list of documents with something in it."""
    if isinstance(value, list) and value and all(isinstance(item, Document) for item in value):
        return value
    return None


def output_documents(value: Any) -> list[Document] | None:
    """The documents a chain returns beside its answer; empty when it says there were none."""
    if not isinstance(value, Mapping):
        return None
    for key in DOCUMENT_KEYS:
        held = value.get(key)
        if isinstance(held, list) and all(isinstance(item, Document) for item in held):
            return held
    return None


def takes_documents(value: Any) -> bool:
    """Whether a step is given documents: then what it returns replaces them (rerank, fusion)."""
    if isinstance(value, Mapping):
        return any(takes_documents(item) for item in value.values())
    if isinstance(value, list) and value:
        return isinstance(value[0], Document) or takes_documents(value[0])
    return False


def prompt_context(value: Any) -> str | None:
    """The `context` variable of a prompt, the last trace of documents fetched by plain code."""
    held = value.get("context") if isinstance(value, Mapping) else None
    return held if isinstance(held, str) and held.strip() else None


def tool_contexts(value: Any) -> list[str]:
    """What tools returned in this turn: their documents if they kept them, else their text."""
    contexts: list[str] = []
    for message in this_turn(messages_of(value) or ()):
        if isinstance(message, ToolMessage):
            documents = documents_of(message.artifact)
            if documents:
                contexts += [document.page_content for document in documents]
            else:
                contexts += _blocks(message)
    return contexts


def _blocks(message: ToolMessage) -> list[str]:
    # `.text` joins blocks without a separator, which would glue words of two documents together.
    if isinstance(message.content, str):
        return [message.content] if message.content.strip() else []
    texts = [
        block if isinstance(block, str) else block.get("text", "")
        for block in message.content
        if isinstance(block, str) or block.get("type") == "text"
    ]
    return [text for text in texts if text.strip()]


def reply_of(result: LLMResult) -> tuple[str, str | None]:
    """A model's text and, if the provider gave one, its response id."""
    if not result.generations or not result.generations[0]:
        return "", None
    generation = result.generations[0][0]
    message = getattr(generation, "message", None)
    if message is None:
        return str(generation.text), None
    response_id = message.response_metadata.get("id")
    return str(message.text), response_id if isinstance(response_id, str) else None
