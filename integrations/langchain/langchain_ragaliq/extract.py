"""Finding question and answer in what chains take and give.

People write chains in many shapes; these functions know the common ones and say None to the rest.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from langchain_core.load import Serializable
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.outputs import LLMResult
from pydantic import BaseModel

from langchain_ragaliq.documents import DOCUMENT_KEYS, documents_of
from langchain_ragaliq.messages import (
    is_human,
    last_answer,
    last_question,
    message_text,
    messages_of,
)

__all__ = [
    "ANSWER_KEYS",
    "answer_of",
    "fields_of",
    "question_of",
    "reply_of",
    "response_id_of",
    "text_of",
]

QUESTION_KEYS = ("question", "query", "input", "user_input", "user_query", "human_input")
ANSWER_KEYS = (
    "answer",
    "result",
    "output",
    "response",
    "generation",
    "output_text",
    "final_answer",
    "text",
)


def question_of(value: Any) -> str | None:
    """The user's question in a chain's input, or None."""
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, BaseMessage):
        return message_text(value) or None
    fields = value if isinstance(value, Mapping) else fields_of(value)
    if fields is not None:
        return _question_of_mapping(fields)
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
    others = [item for key, item in value.items() if key not in DOCUMENT_KEYS]
    texts = [item for item in others if isinstance(item, str) and item.strip()]
    return texts[0] if len(texts) == 1 else None


def answer_of(value: Any) -> str | None:
    """The answer in a chain's output, or None."""
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, BaseMessage):
        is_said = not is_human(value) and not isinstance(value, ToolMessage)
        return (message_text(value) or None) if is_said else None
    if isinstance(value, Mapping):
        return _answer_of_mapping(value)
    fields = fields_of(value)
    if fields is not None:
        return _json(value.model_dump() if isinstance(value, BaseModel) else fields)
    messages = messages_of(value)
    return last_answer(messages) if messages else None


def _answer_of_mapping(value: Mapping[str, Any]) -> str | None:
    structured = value.get("structured_response")
    if structured is not None:
        return text_of(structured)
    for key in ANSWER_KEYS:
        found = text_of(value[key]) if key in value else None
        if found:
            return found
    messages = messages_of(value)
    return last_answer(messages) if messages else None


def text_of(value: Any) -> str | None:
    """An answer as text, whatever an application makes it of; None if it is none."""
    if isinstance(value, Mapping) or (isinstance(value, list) and not documents_of(value)):
        return _json(value)
    is_said = isinstance(value, str | BaseMessage) or fields_of(value) is not None
    return answer_of(value) if is_said else None


def fields_of(value: Any) -> Mapping[str, Any] | None:
    """The fields of an object of the application's own; the frameworks' mean something else."""
    if isinstance(value, Serializable) or type(value).__module__.startswith("langgraph."):
        return None
    if isinstance(value, BaseModel):
        return vars(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):  # keys that are no texts, or an object that holds itself
        return str(value)


def reply_of(result: LLMResult | None) -> str | None:
    """The text a model replied with, if any."""
    generation = _generation(result)
    message = getattr(generation, "message", None)
    return answer_of(message if message is not None else getattr(generation, "text", None))


def response_id_of(result: LLMResult | None) -> str | None:
    """The provider's id of a model's reply, if it gave one."""
    message = getattr(_generation(result), "message", None)
    response_id = message.response_metadata.get("id") if message is not None else None
    return response_id if isinstance(response_id, str) else None


def _generation(result: LLMResult | None) -> Any:
    return (
        result.generations[0][0]
        if result and result.generations and result.generations[0]
        else None
    )
