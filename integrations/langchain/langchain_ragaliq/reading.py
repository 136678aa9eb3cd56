"""LangChain's objects as `ragaliq.capture` reads them: messages, documents, replies.

A document's text, id and metadata are taken at once: documents are live objects that a later step
may cut. Nothing here copies large text: Python strings are shared, only lists are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.load import Serializable
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import LLMResult

from ragaliq import Passage
from ragaliq.capture import CONTEXT_KEYS, Message, Reader, score_in, text_blocks

__all__ = [
    "FEEDBACK_MARK",
    "READER",
    "documents_among",
    "is_feedback",
    "is_human",
    "prompt_of",
    "reply_of",
]

FEEDBACK_MARK = "feedback"
_ROLES = {"human": "user", "ai": "assistant", "tool": "tool", "function": "tool"}
# What agents' own machinery tells a model in a tool's place.
_OWN_TEXTS = (
    "Returning structured response",
    "Successfully transferred ",
    "Successfully handed off ",
)


class LangChainReader(Reader):
    """Reads what LangChain's and LangGraph's steps take and return."""

    def message(self, value: Any) -> Message | None:
        """A message: an object, a pair of a role and a text, or a dictionary."""
        if not isinstance(value, BaseMessage):
            return super().message(value)
        content, kind = value.content, value.type
        texts = (content,) if isinstance(content, str) else text_blocks(content)
        role = _ROLES.get(kind) or _ROLES.get(kind.removesuffix("MessageChunk").lower())
        if role == "tool":
            is_failed = getattr(value, "status", None) == "error"
            if is_failed or (texts and texts[0].startswith(_OWN_TEXTS)):
                return Message("system", texts)
            return Message(role, texts, artifact=getattr(value, "artifact", None))
        if role == "user":
            return Message("system" if is_feedback(value) else role, texts)
        if kind == "chat":
            role = _ROLES.get(str(getattr(value, "role", "")), "assistant")
        is_call = isinstance(value, AIMessage) and bool(value.tool_calls)
        return Message(role or "system", texts, is_call)

    def passage(self, value: Any) -> Passage | None:
        """A document."""
        if isinstance(value, Document):
            metadata = value.metadata
            return Passage(value.page_content, value.id, score_in(metadata), dict(metadata) or None)
        return super().passage(value)

    def fields(self, value: Any) -> Mapping[Any, Any] | None:
        """The fields of a mapping or an object of the application's own, or a command's update."""
        if isinstance(value, Mapping):
            return value
        if isinstance(value, Serializable):
            return None  # LangChain's own: their fields mean something else
        if type(value).__module__.startswith("langgraph."):
            update = getattr(value, "update", None)
            if isinstance(update, list) and all(isinstance(each, tuple) for each in update):
                return dict(update)
            return update if isinstance(update, Mapping) else None
        return super().fields(value)


READER = LangChainReader()


def is_feedback(message: Any) -> bool:
    """Whether a guard wrote the message, to have an answer made again."""
    return (
        isinstance(message, HumanMessage)
        and message.additional_kwargs.get("ragaliq") == FEEDBACK_MARK
    )


def is_human(message: Any) -> bool:
    """Whether the user wrote the message; a guard's feedback to the model only looks like it."""
    found = READER.message(message)
    return found is not None and found.role == "user"


def prompt_of(messages: Sequence[BaseMessage]) -> list[Message]:
    """The messages that a chat model is called with."""
    found = [READER.message(message) for message in messages]
    return [message for message in found if message is not None]


def reply_of(result: LLMResult | None) -> tuple[str, Sequence[str], str | None]:
    """What a model replied: its text, the texts it calls tools with, the provider's id of it."""
    generations = result.generations if result is not None else None
    generation = generations[0][0] if generations and generations[0] else None
    message = getattr(generation, "message", None)
    if not isinstance(message, BaseMessage):
        return str(getattr(generation, "text", None) or ""), (), None
    content = message.content
    text = content if isinstance(content, str) else "".join(text_blocks(content))
    calls = message.tool_calls if isinstance(message, AIMessage) else ()
    also = [text for call in calls for text in _texts_in(call.get("args"), 4)]
    response_id = message.response_metadata.get("id")
    return text, also, response_id if isinstance(response_id, str) else None


def documents_among(inputs: Any) -> dict[Any, list[Passage]]:
    """The documents among a step's inputs: lists under their keys, all others under None.

    A conversation is not searched: what its tools kept has been seen when they ended.
    """
    found: dict[Any, list[Passage]] = {}
    if isinstance(inputs, dict):
        for key, value in inputs.items():
            if type(value) is str or value is None or _is_conversation(value):
                continue
            passages = READER.document_list(value)
            if not passages and value and key in CONTEXT_KEYS:
                passages = READER.listed(value)
            if passages:
                found[key] = passages
            elif value and (passages := READER.passages(value)):
                found.setdefault(None, []).extend(passages)
            elif isinstance(value, list) and not value:
                found[key] = []
    elif not _is_conversation(inputs) and (passages := READER.passages(inputs)):
        found[None] = passages
    return found


def _is_conversation(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], BaseMessage)


def _texts_in(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, Mapping):
        for each in value.values():
            yield from _texts_in(each, depth - 1)
    elif depth and isinstance(value, list):
        for each in value:
            yield from _texts_in(each, depth - 1)
