"""LangChain's objects as `ragaliq.capture` reads them: messages, documents, replies.

A document's text, id and metadata are taken at once: documents are live objects that a later step
may cut. Nothing here copies large text: Python strings are shared, only lists are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.documents import Document
from langchain_core.load import Serializable
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    ToolMessage,
)

from ragaliq import Passage
from ragaliq.capture import (
    CONTEXT_KEYS,
    Found,
    Message,
    Reader,
    document_blocks,
    score_in,
    text_blocks,
)

FEEDBACK = {"ragaliq": "feedback"}
"""Marks a message that a guard wrote, to have an answer made again: it is not the user's."""

_BASES: dict[type, str] = {
    HumanMessage: "user",
    AIMessage: "assistant",
    ToolMessage: "tool",
    FunctionMessage: "tool",
    ChatMessage: "chat",
    BaseMessage: "system",
    Document: "document",
    Serializable: "langchain",
}
# On a message that a guard or LangChain's middleware wrote, such as a summary of the conversation.
_OWN_MARKS = frozenset({*FEEDBACK, "lc_source"})
_MOST_CLASSES = 1024
MESSAGES = frozenset({"user", "assistant", "tool", "chat", "system"})
_CHAT_ROLES = {"human": "user", "user": "user", "ai": "assistant", "tool": "tool"}
# What agents' own machinery tells a model in a tool's place.
_OWN_TEXTS = (
    "Returning structured response",
    "Successfully transferred ",
    "Successfully handed off ",
    "Updated todo list to ",
    "[cleared]",
)


class _Kinds(dict[type, str]):
    """What objects of a class are: a role's message, `document`, else of `langchain`, or nothing.

    Asking Pydantic's classes each time takes ten times as long.
    """

    def __missing__(self, cls: type) -> str:
        if len(self) >= _MOST_CLASSES:
            self.clear()  # an application that makes classes as it goes
        self[cls] = next((kind for base, kind in _BASES.items() if issubclass(cls, base)), "")
        return self[cls]


KINDS = _Kinds()


class LangChainReader(Reader):
    """Reads what LangChain's and LangGraph's steps take and return."""

    def message(self, value: Any) -> Message | None:
        """A message: an object, a pair of a role and a text, or a dictionary."""
        role = KINDS[type(value)]
        if role not in MESSAGES:
            return super().message(value)
        content = value.content
        texts: tuple[str, ...]
        documents: tuple[str, ...] = ()
        if isinstance(content, str):
            texts = (content,)
        else:
            texts, documents = text_blocks(content), document_blocks(content)
        if role == "assistant":
            return Message(role, texts, bool(value.tool_calls))
        if role == "tool":
            is_failed = getattr(value, "status", None) == "error"
            if is_failed or (texts and texts[0].startswith(_OWN_TEXTS)):
                return Message("system", texts)
            return Message(role, texts + documents, artifact=getattr(value, "artifact", None))
        if role == "user" and not _OWN_MARKS.isdisjoint(value.additional_kwargs):
            role = "system"
        if role == "chat":
            role = _CHAT_ROLES.get(value.role, "assistant")
        return Message(role, texts, documents=documents)

    def question(self, value: Any, where: str = "input") -> Found | None:
        """The user's question; what a command updates, as one that resumes a run may, is none."""
        if not isinstance(value, str | dict) and type(value).__module__.startswith("langgraph."):
            return None
        return super().question(value, where)

    def passage(self, value: Any) -> Passage | None:
        """A document."""
        if KINDS[type(value)] == "document":
            metadata = value.metadata
            if not metadata:
                # As `Passage(...)` does it, in half the time: every document of every step.
                return tuple.__new__(Passage, (value.page_content, value.id, None, None, ""))
            return Passage(value.page_content, value.id, score_in(metadata), dict(metadata))
        return super().passage(value)

    def fields(self, value: Any) -> Mapping[Any, Any] | None:
        """The fields of a mapping or an object of the application's own, or a command's update."""
        if isinstance(value, dict):
            return value
        if KINDS[type(value)]:
            return None  # LangChain's own: their fields mean something else
        if type(value).__module__.startswith("langgraph."):
            update = getattr(value, "update", None)
            if isinstance(update, list) and all(isinstance(each, tuple) for each in update):
                return dict(update)
            return update if isinstance(update, Mapping) else None
        return super().fields(value)


READER = LangChainReader()


def documents_among(inputs: Any) -> dict[Any, list[Passage]]:
    """The documents among a step's inputs: lists under their keys, all others under None.

    A conversation is not searched: what its tools kept has been seen when they ended.
    """
    found: dict[Any, list[Passage]] = {}
    for key, value in (inputs if isinstance(inputs, dict) else {None: inputs}).items():
        if type(value) is str or value is None:
            continue
        if isinstance(value, list) and value and KINDS[type(value[0])] in MESSAGES:
            continue
        passages = READER.document_list(value)
        # Whether the value itself is true is not asked: an array does not say.
        if not passages and key in CONTEXT_KEYS:
            passages = READER.listed(value)
        if passages:
            found[key] = passages
        elif passages := READER.passages(value):
            found.setdefault(None, []).extend(passages)
        elif isinstance(value, list) and not value:
            found[key] = []
    return found


def texts_in(value: Any, depth: int = 4) -> Iterator[str]:
    """The texts in the arguments of a tool's call."""
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from texts_in(each, depth - 1)
