"""Readers of LangChain's objects for `ragaliq.capture`: messages, documents, replies.

A document's text, id and metadata are taken at once: documents are live objects that a later step
may cut. Nothing here copies large text: Python strings are shared, only lists are made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
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

from langchain_ragaliq._private import LANGGRAPH, MACHINERY, SOURCE, SUMMARY
from ragaliq import Passage
from ragaliq.capture import (
    ANSWER_KEYS,
    CONTEXT_KEYS,
    ROLES,
    Found,
    Message,
    Reader,
    document_blocks,
    plain,
    score_in,
    text_blocks,
    texts_in,
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
_OWN_MARKS = frozenset({*FEEDBACK, SOURCE})
_MOST_CLASSES = 1024
MESSAGES = frozenset({"user", "assistant", "tool", "chat", "system"})


class _Kinds(dict[type, str]):
    """Kind of objects by class: a message's role, `document`, `langchain`, or nothing.

    Checking Pydantic's classes each time takes ten times as long.
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
            if is_failed or (texts and MACHINERY.match(texts[0])):
                return Message("system", texts)
            return Message(role, texts + documents, artifact=getattr(value, "artifact", None))
        if role == "user" and not _OWN_MARKS.isdisjoint(value.additional_kwargs):
            # A summary may be of a turn before: a model's words, and maybe its inventions.
            is_summary = value.additional_kwargs.get(SOURCE) == SUMMARY
            role = "note" if is_summary else "system"
        if role == "chat":
            role = ROLES.get(value.role.lower(), "assistant")
        return Message(role, texts, documents=documents)

    def question(self, value: Any, where: str = "input") -> Found | None:
        """User's question; a command's update, as of one that resumes a run, is not a question."""
        if not isinstance(value, (str, dict)) and type(value).__module__.startswith(LANGGRAPH):
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
        if type(value).__module__.startswith(LANGGRAPH):
            update = getattr(value, "update", None)
            if isinstance(update, list) and all(isinstance(each, tuple) for each in update):
                return dict(update)
            return update if isinstance(update, Mapping) else None
        return super().fields(value)


READER = LangChainReader()


# Keys of a state, items of a list, and values inside others that are looked at: a request waits.
_MOST_KEYS, _MOST_DOCUMENTS, _MOST_VALUES = 64, 1_000, 32
_SAMPLE = 8  # texts of a record
_LISTS = (list, tuple)  # by type: a list of the application's own may have no end
_HIT_KEYS = frozenset({"page_content", "text", "content"})


class StateReader:
    """Reads the documents in the inputs and outputs of one run's steps.

    A value is read once: a graph passes its whole state to each node. Large values are left to the
    prompt, which contains what matters.
    """

    __slots__ = ("_known", "_texts")

    def __init__(self) -> None:
        # By id, with the values, so that no id becomes another's.
        self._known: dict[int, tuple[Any, int, list[Passage] | None]] = {}
        self._texts: dict[int, Any] = {}

    def documents_by_key(self, values: Any) -> dict[Any, Sequence[Passage]]:
        """The documents in a step's values, by key; those of another value under None."""
        if not isinstance(values, dict):
            found = self._documents(values, None)
            return {} if found is None else {None: found}
        by_key: dict[Any, Sequence[Passage]] = {}
        for key, value in islice(values.items(), _MOST_KEYS):
            if value is None or type(value) is str:
                continue
            found = self._documents(value, key)
            if found is not None:
                by_key[key] = found
        return by_key

    def new_texts(self, values: Mapping[Any, Any]) -> Iterator[tuple[Any, str]]:
        """New texts in a step's values, by key; some of a list's."""
        for key, value in islice(values.items(), _MOST_KEYS):
            if value is None or id(value) in self._texts:
                continue
            if isinstance(value, str):
                self._texts[id(value)] = value
                if text := plain(value):
                    yield key, text
            elif type(value) in {list, tuple, dict} and value:
                self._texts[id(value)] = value
                for text in islice(texts_in(value, 3), _SAMPLE):
                    yield key, text

    def _documents(self, value: Any, key: Any) -> list[Passage] | None:
        if not isinstance(value, (list, tuple, dict)):
            # An object of the application's own is not kept beyond the event.
            return documents_in(value, key)
        known = self._known.get(id(value))
        if known is not None and known[0] is value and known[1] == len(value):
            return known[2]
        found = documents_in(value, key)
        self._known[id(value)] = value, len(value), found
        return found


def documents_in(value: Any, key: Any = None) -> list[Passage] | None:
    """The documents in a value, or None where it holds none; an empty list is one of documents."""
    kind = type(value)
    if kind in _LISTS and not value:
        return []
    found: list[Passage] = []
    todo, looked_at = [value], 0
    while todo and looked_at < _MOST_VALUES:
        held = todo.pop()
        looked_at += 1
        if type(held) in _LISTS:
            listed = _documents_listed(held, key)
            if listed is not None:
                found += listed
            elif held and not isinstance(held[0], _PLAIN) and KINDS[type(held[0])] not in MESSAGES:
                todo += reversed(held[:_MOST_VALUES])
        elif (passage := READER.passage(held)) is not None:
            found.append(passage)
        elif not isinstance(held, _PLAIN) and (fields := READER.fields(held)) is not None:
            todo += reversed(list(islice(fields.values(), _MOST_VALUES)))
    return found or None


_PLAIN = (str, int, float, bytes, type(None))


def _documents_listed(values: Sequence[Any], key: Any) -> list[Passage] | None:
    """The documents of a list of nothing else, by its first item."""
    first: Any = values[0] if values else None
    some = values[:_MOST_DOCUMENTS]
    if type(first) is tuple and first and KINDS[type(first[0])] == "document":
        return READER.document_list(some)
    if KINDS[type(first)] == "document":
        return READER.document_list(some)
    # A dictionary of the application's own may have no end: only its keys are looked for.
    is_hit = isinstance(first, dict) and "role" not in first and any(k in first for k in _HIT_KEYS)
    is_text = type(first) is str and key in CONTEXT_KEYS
    return READER.listed(some) if is_hit or is_text else None


def tool_answer(calls: Sequence[Mapping[str, Any]]) -> Found | None:
    """Answer in the arguments of a tool that a message calls to end the run.

    Such a tool takes the answer and no query.
    """
    if len(calls) != 1:
        return None
    arguments = calls[0].get("args") or {}
    is_named = _ENDS_RUN.search(calls[0].get("name") or "")
    found = next((arguments[key] for key in ANSWER_KEYS if key in arguments), None)
    if found is None and is_named and arguments:
        found = arguments
    said = None if found is None else READER.answer_text(found)
    return None if said is None else Found(said.text, "tool call")


_ENDS_RUN = re.compile(r"answer|final|submit|respond|reply|finish|done", re.IGNORECASE)
