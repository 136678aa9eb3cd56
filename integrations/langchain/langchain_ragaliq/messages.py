"""Reading chat messages in the three forms people write them: message, tuple and dictionary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

__all__ = [
    "FEEDBACK_MARK",
    "is_feedback",
    "is_human",
    "last_answer",
    "last_question",
    "message_text",
    "messages_of",
    "text_blocks",
    "this_turn",
]

FEEDBACK_MARK = "feedback"
_HUMAN_ROLES = ("user", "human")


def message_text(message: Any) -> str:
    """The text blocks of a message, joined; reasoning, images and tool calls are left out."""
    if isinstance(message, BaseMessage):
        return str(message.text)
    if isinstance(message, tuple):
        return "".join(text_blocks(message[1] if len(message) == 2 else None))
    return "".join(text_blocks(message.get("content") if isinstance(message, Mapping) else message))


def text_blocks(content: Any) -> list[str]:
    """The texts of a message's content, one by one.

    `message.text` joins them without a separator, which would glue two documents together.
    """
    if isinstance(content, str):
        return [content]
    texts = []
    for block in content if isinstance(content, list) else ():
        text = block.get("text") if isinstance(block, Mapping) else block
        if isinstance(text, str) and (text is block or block.get("type") == "text"):
            texts.append(text)
    return texts


def is_human(message: Any) -> bool:
    """Whether the user wrote the message; a guard's feedback to the model only looks like it."""
    if isinstance(message, BaseMessage):
        return isinstance(message, HumanMessage) and not is_feedback(message)
    if isinstance(message, tuple) and len(message) == 2:
        return message[0] in _HUMAN_ROLES
    return isinstance(message, Mapping) and message.get("role") in _HUMAN_ROLES


def is_feedback(message: Any) -> bool:
    """Whether a guard wrote the message, to have an answer made again."""
    return (
        isinstance(message, HumanMessage)
        and message.additional_kwargs.get("ragaliq") == FEEDBACK_MARK
    )


def messages_of(value: Any) -> Sequence[Any] | None:
    """The conversation that a chain's input or output holds, or None."""
    if isinstance(value, Mapping):
        value = value.get("messages")
    if not isinstance(value, list | tuple) or not value:
        return None
    first = value[0]
    is_dict = isinstance(first, Mapping) and "role" in first
    is_pair = isinstance(first, tuple) and len(first) == 2
    return value if isinstance(first, BaseMessage) or is_dict or is_pair else None


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
