"""Question and answer in what chains take and give, as traces hold it.

People write chains in many shapes; these functions know the common ones and say None to the rest.
They follow the rules by which `langchain_ragaliq.extract` reads the objects themselves: change
both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ragaliq.traces.chat import last_answer, last_question, message_of, messages_of
from ragaliq.traces.documents import DOCUMENT_KEYS, documents_of

__all__ = ["ANSWER_KEYS", "QUESTION_KEYS", "answer_of", "question_of"]

QUESTION_KEYS = (
    "question",
    "query",
    "input",
    "user_input",
    "user_query",
    "human_input",
    "query_str",
    "message",
    "user_msg",
)
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

# What resumes a LangGraph run is an answer to a question of the run's own.
_COMMAND = {"graph", "update", "resume", "goto"}


def question_of(value: Any) -> str | None:
    """The user's question in a chain's input, or None."""
    if isinstance(value, str):
        return value.strip() or None
    message = message_of(value)
    if message is not None:
        return message.text or None
    if isinstance(value, Mapping):
        return None if set(value) == _COMMAND else _question_of_mapping(value)
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
    message = message_of(value)
    if message is not None:
        return (message.text or None) if message.role in {"assistant", "system"} else None
    if isinstance(value, Mapping):
        return _answer_of_mapping(value)
    messages = messages_of(value)
    return last_answer(messages) if messages else None


def _answer_of_mapping(value: Mapping[str, Any]) -> str | None:
    structured = value.get("structured_response")
    if structured is not None:
        return _text_of(structured)
    for key in ANSWER_KEYS:
        found = _text_of(value[key]) if key in value else None
        if found:
            return found
    messages = messages_of(value)
    return last_answer(messages) if messages else None


def _text_of(value: Any) -> str | None:
    """An answer as text, whatever an application makes it of; None if it is none."""
    if message_of(value) is not None:
        return answer_of(value)
    if isinstance(value, Mapping) or (isinstance(value, list) and not documents_of(value)):
        return json.dumps(value, ensure_ascii=False)
    return answer_of(value) if isinstance(value, str) else None
