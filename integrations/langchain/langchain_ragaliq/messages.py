"""Reading chat messages in the three forms people write them: message, tuple and dictionary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

__all__ = ["is_human", "last_answer", "last_question", "message_text", "messages_of", "this_turn"]

_HUMAN_ROLES = ("user", "human")


def message_text(message: Any) -> str:
    """The text blocks of a message, joined; reasoning, images and tool calls are left out."""
    if isinstance(message, BaseMessage):
        return str(message.text)
    if isinstance(message, tuple):
        return message[1] if isinstance(message[1], str) else ""
    content = message.get("content") if isinstance(message, Mapping) else message
    return content if isinstance(content, str) else ""


def is_human(message: Any) -> bool:
    """Whether the user wrote the message."""
    if isinstance(message, BaseMessage):
        return isinstance(message, HumanMessage)
    if isinstance(message, tuple) and len(message) == 2:
        return message[0] in _HUMAN_ROLES
    return isinstance(message, Mapping) and message.get("role") in _HUMAN_ROLES


def messages_of(value: Any) -> Sequence[Any] | None:
    """The conversation that a chain's input or output holds, or None."""
    if isinstance(value, Mapping):
        value = value.get("messages")
    if not isinstance(value, list | tuple) or not value:
        return None
    if isinstance(value[0], BaseMessage) or is_human(value[0]):
        return value
    is_dict = isinstance(value[0], Mapping) and "role" in value[0]
    is_pair = isinstance(value[0], tuple) and len(value[0]) == 2
    return value if is_dict or is_pair else None


def last_question(messages: Sequence[Any]) -> str | None:
    """The text of the last message the user wrote."""
    for message in reversed(messages):
        if is_human(message):
            return message_text(message) or None
    return None


def this_turn(messages: Sequence[Any]) -> Sequence[Any]:
    """What came after the user's last message: a checkpointed output holds every turn so far."""
    for position in range(len(messages) - 1, -1, -1):
        if is_human(messages[position]):
            return messages[position + 1 :]
    return messages


def last_answer(messages: Sequence[Any]) -> str | None:
    """The assistant's final message of this turn; None while it still calls tools."""
    turn = this_turn(messages)
    if not turn:
        return None
    last = turn[-1]
    if isinstance(last, AIMessage):
        return None if last.tool_calls else message_text(last) or None
    if isinstance(last, ToolMessage | HumanMessage):
        return None
    return message_text(last) or None
