"""Chat messages in the forms in which traces hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

__all__ = [
    "Message",
    "last_answer",
    "last_question",
    "message_of",
    "messages_of",
    "text_blocks",
    "this_turn",
]

_ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
    "system": "system",
    "developer": "system",
    "chat": "assistant",
}
_FEEDBACK = "feedback"


class Message(NamedTuple):
    """One message of a conversation.

    Attributes:
        role: `user`, `assistant`, `tool` or `system`.
        texts: Its texts, one by one; reasoning, images and tool calls are left out.
        is_call: Whether it calls tools.
        artifact: What a tool kept beside its text.
        is_failed: Whether it says that a tool failed.
    """

    role: str
    texts: list[str]
    is_call: bool = False
    artifact: Any = None
    is_failed: bool = False

    @property
    def text(self) -> str:
        """Its texts, joined."""
        return "".join(self.texts)


def message_of(value: Any) -> Message | None:
    """A message as LangChain, OpenAI's and OpenTelemetry's formats write it; None if it is none."""
    if isinstance(value, list):
        return _pair(value)
    if not isinstance(value, Mapping):
        return None
    fields = _fields(value)
    role = _role(fields.get("role") or fields.get("type"))
    has_content = any(name in fields for name in ("content", "parts", "contents", "tool_calls"))
    if role is None or not has_content:
        return None
    extra = fields.get("additional_kwargs")
    if role == "user" and isinstance(extra, Mapping) and extra.get("ragaliq") == _FEEDBACK:
        role = "system"  # what a guard tells the model only looks like the user's
    parts = fields.get("parts", fields.get("content"))
    texts = text_blocks(parts if parts is not None else fields.get("contents"))
    return Message(
        role=role,
        texts=texts,
        is_call=bool(fields.get("tool_calls")) or _has_call(parts),
        artifact=fields.get("artifact"),
        is_failed=fields.get("status") == "error",
    )


def messages_of(value: Any) -> list[Message] | None:
    """The conversation that a chain's input or output holds, or None."""
    if isinstance(value, Mapping):
        value = value.get("messages")
    if not isinstance(value, list) or not value or message_of(value[0]) is None:
        return None
    found = [message_of(item) for item in value]
    return [message for message in found if message is not None]


def text_blocks(content: Any) -> list[str]:
    """The texts of a message's content, one by one."""
    if isinstance(content, str):
        return [content]
    texts = []
    for block in content if isinstance(content, list) else ():
        text = block
        if isinstance(block, Mapping):
            text = _block_text(block)
        if isinstance(text, str):
            texts.append(text)
    return texts


def last_question(messages: Sequence[Message]) -> str | None:
    """The text of the last message the user wrote."""
    for message in reversed(messages):
        if message.role == "user":
            return message.text or None
    return None


def this_turn(messages: Sequence[Message]) -> Sequence[Message]:
    """What came after the user's last message: an output may hold every turn so far."""
    for position in range(len(messages) - 1, -1, -1):
        if messages[position].role == "user":
            return messages[position + 1 :]
    return messages


def last_answer(messages: Sequence[Message]) -> str | None:
    """The assistant's final message of this turn; None while it still calls tools."""
    turn = this_turn(messages)
    if not turn or turn[-1].role != "assistant" or turn[-1].is_call:
        return None
    return turn[-1].text or None


def _pair(value: list[Any]) -> Message | None:
    # Python's tuples are JSON's lists: only one that begins with a role is a message.
    role = _role(value[0]) if len(value) == 2 and isinstance(value[0], str) else None
    return None if role is None else Message(role, text_blocks(value[1]))


def _fields(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a message, however it is wrapped."""
    for name in ("data", "kwargs", "message"):
        inner = value.get(name)
        if isinstance(inner, Mapping) and ("content" in inner or "role" in inner):
            return {"type": value.get("type"), **inner}
    return value


def _has_call(parts: object) -> bool:
    blocks = parts if isinstance(parts, list) else ()
    return any(isinstance(block, Mapping) and block.get("type") == "tool_call" for block in blocks)


def _role(named: object) -> str | None:
    if not isinstance(named, str):
        return None
    plain = named.lower().removesuffix("chunk").removesuffix("message")
    return _ROLES.get(plain)


def _block_text(block: Mapping[str, Any]) -> object:
    kind = block.get("type")
    if kind in ("tool_call_response", "tool_result"):
        return block.get("response", block.get("result", block.get("content")))
    if kind is None or kind == "text":
        return block.get("text", block.get("content"))
    return None
