"""Question, answer and passages in the values that an application's steps take and return.

People write applications in many shapes; a `Reader` knows the common ones and says None to the
rest. It works on plain values; a framework's own objects enter through three small methods, which
a translator overrides: what is a message, what is a document, what has fields.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel

from ragaliq.core.draft import Passage

__all__ = [
    "ANSWER_KEYS",
    "CONTEXT_KEYS",
    "QUESTION_KEYS",
    "Found",
    "Message",
    "Reader",
    "Role",
    "models_words",
    "score_in",
    "text_blocks",
]

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
    "reply",
    "final_response",
)
CONTEXT_KEYS = (
    "context",
    "source_documents",
    "documents",
    "docs",
    "contexts",
    "retrieved_docs",
    "retrieved_documents",
    "passages",
    "chunks",
    "search_results",
)
_TEXT_KEYS = ("page_content", "text", "content")
_SCORE_KEYS = ("relevance_score", "score")
# Settings of a request that stand beside its question.
_NO_QUESTIONS = frozenset(
    "chat_history history language lang locale tone style format persona instructions model name "
    "user user_id session_id thread_id conversation_id tenant tenant_id system system_prompt "
    "feedback".split()
)
_DEPTH = 5
_EMPTY_RESPONSE = "Empty Response"
_LABEL = re.compile(r"Response \d+: ")
_DASHES = re.compile(r"\n-{5,}\n")

Role = str
"""`user`, `assistant`, `tool` or `system`."""

_ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "chatbot": "assistant",
    "tool": "tool",
    "function": "tool",
    "system": "system",
    "developer": "system",
}


class Message(NamedTuple):
    """One message of a conversation.

    Attributes:
        role: `user`, `assistant`, `tool` or `system`. What a framework itself wrote (hand-offs,
            feedback) and what says that a tool failed is `system`: it is nobody's evidence.
        texts: Its texts, one by one; reasoning, images and tool calls are left out.
        is_call: Whether it calls tools, and so is no answer.
        artifact: What a tool kept beside its text.
    """

    role: Role
    texts: tuple[str, ...]
    is_call: bool = False
    artifact: Any = None

    @property
    def text(self) -> str:
        """Its texts, joined."""
        return "".join(self.texts)


class Found(NamedTuple):
    """A text, and where it was: `input.messages`, `output.answer`, ..."""

    text: str
    where: str


def text_blocks(content: Any) -> tuple[str, ...]:
    """The texts of a message's content, one by one; joining them would glue documents together."""
    if isinstance(content, str):
        return (content,)
    texts = []
    for block in content if isinstance(content, list | tuple) else ():
        text = block
        if isinstance(block, Mapping):
            text = block.get("text") if block.get("type", "text") == "text" else None
        if isinstance(text, str):
            texts.append(text)
    return tuple(texts)


def models_words(answer: str) -> str:
    """An answer without what LlamaIndex puts around a model's words, or in their place.

    `Accumulate` labels replies and puts dashes between them; where there was nothing to ask a
    model about, synthesizers return "Empty Response".
    """
    if answer == _EMPTY_RESPONSE:
        return ""
    if not answer.startswith("Response 1: "):
        return answer
    parts = [_LABEL.sub("", part, count=1) for part in _DASHES.split(answer) if _LABEL.match(part)]
    if len(parts) < len(_DASHES.split(answer)):
        return answer  # a model's own dashes
    return "\n\n".join(part for part in parts if part.strip() and part != _EMPTY_RESPONSE)


def score_in(metadata: Mapping[str, Any] | None) -> float | None:
    """The score that a reranker, or the application, noted on a document."""
    for key in _SCORE_KEYS:
        score = metadata.get(key) if metadata else None
        if score is not None:
            try:
                return float(score)  # NumPy's numbers too
            except (TypeError, ValueError, OverflowError):
                continue
    return None


class Reader:
    """Reads what steps take and return; a framework's translator says what its objects are."""

    def message(self, value: Any) -> Message | None:
        """A message in the forms people write by hand: `(role, text)` and `{role, content}`."""
        if isinstance(value, tuple | list):
            role = _ROLES.get(value[0]) if len(value) == 2 and isinstance(value[0], str) else None
            return None if role is None else Message(role, text_blocks(value[1]))
        if isinstance(value, Mapping) and isinstance(value.get("role"), str):
            role = _ROLES.get(value["role"], "assistant")
            is_call = bool(value.get("tool_calls"))
            return Message(role, text_blocks(value.get("content")), is_call)
        return None

    def passage(self, value: Any) -> Passage | None:
        """A document; a dictionary is one if it has a `page_content`."""
        if isinstance(value, Mapping) and isinstance(value.get("page_content"), str):
            return self._passage_in(value, "page_content")
        return None

    def fields(self, value: Any) -> Mapping[Any, Any] | None:
        """The fields of a mapping or of an object of the application's own, else None."""
        if isinstance(value, Mapping):
            return value
        if isinstance(value, BaseModel):
            return vars(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return None

    # Questions

    def question(self, value: Any, where: str = "input") -> Found | None:
        """The user's question of this turn in what an application was called with, or None."""
        if isinstance(value, str):
            return Found(value.strip(), where) if value.strip() else None
        message = self.message(value)
        if message is not None:
            return Found(message.text, where) if message.text.strip() else None
        fields = self.fields(value)
        if fields is None:
            text = self._last_question(self.messages(value))
            return None if text is None else Found(text, where)
        for key in QUESTION_KEYS:
            found = self.question(fields[key], f"{where}.{key}") if key in fields else None
            if found:
                return found
        messages = self.messages(fields)
        if messages:
            text = self._last_question(messages)
            return None if text is None else Found(text, f"{where}.messages")
        return self._lone_text(fields, where)

    def echoed_question(self, value: Any, where: str = "output") -> Found | None:
        """The question as the application returned it, under a key that says so.

        An unknown key will not do: the text beside it may be the answer.
        """
        fields = self.fields(value)
        if fields is None:
            return None
        for key in QUESTION_KEYS:
            held = fields.get(key)
            if isinstance(held, str) and held.strip():
                return Found(held.strip(), f"{where}.{key}")
        text = self._last_question(self.messages(fields))
        return None if text is None else Found(text, f"{where}.messages")

    def _last_question(self, messages: Sequence[Any] | None) -> str | None:
        for each in reversed(messages or ()):
            message = self.message(each)
            if message is not None and message.role == "user":
                return message.text or None
        return None

    @staticmethod
    def _lone_text(fields: Mapping[Any, Any], where: str) -> Found | None:
        """The only text that can be a question: a lone one, or the only one of several words."""
        texts = [
            (key, value.strip())
            for key, value in fields.items()
            if isinstance(value, str)
            and value.strip()
            and key not in CONTEXT_KEYS
            and key not in ANSWER_KEYS
        ]
        if len(texts) > 1:
            texts = [(key, text) for key, text in texts if key not in _NO_QUESTIONS]
        if len(texts) > 1:
            texts = [(key, text) for key, text in texts if len(text.split()) > 1]
        return Found(texts[0][1], f"{where}.{texts[0][0]}") if len(texts) == 1 else None

    # Answers

    def answer(self, value: Any, where: str = "output") -> Found | None:  # noqa: PLR0911 - one a shape
        """The text a person reads in what an application returned, or None."""
        if isinstance(value, str):
            return Found(value, where) if value.strip() else None
        message = self.message(value)
        if message is not None:
            is_said = message.role in {"assistant", "system"}
            return Found(message.text, where) if is_said and message.text else None
        fields = self.fields(value)
        if fields is None:
            return self._last_answer(self.messages(value), where)
        structured = fields.get("structured_response")
        if structured is not None:
            return self.answer_text(structured, f"{where}.structured_response")
        for key in ANSWER_KEYS:
            found = self.answer_text(fields[key], f"{where}.{key}") if key in fields else None
            if found:
                return found
        if messages := self.messages(fields):
            return self._last_answer(messages, f"{where}.messages")
        # A state holds much; an object of the application's own is what it answered with.
        return None if isinstance(value, Mapping) else self.answer_text(value, where)

    def answer_text(self, value: Any, where: str = "output") -> Found | None:  # noqa: PLR0911 - as above
        """A value that is an answer as text: what a person reads of it, else all of it as JSON."""
        is_plain = isinstance(value, str) or self.message(value) is not None
        if value is None or is_plain:
            return None if value is None else self.answer(value, where)
        fields = self.fields(value)
        if fields is None and not isinstance(value, list):
            return None
        if fields is not None:
            for key in (*ANSWER_KEYS, "content"):
                held = fields.get(key)
                found = self.answer_text(held, f"{where}.{key}") if held is not None else None
                if found:
                    return found
            texts = [(k, v) for k, v in fields.items() if isinstance(v, str) and len(v.split()) > 2]
            if len(texts) == 1:
                return Found(texts[0][1], f"{where}.{texts[0][0]}")
        elif self.messages(value):
            return self.answer(value, where)
        elif self.passages(value):
            return None
        text = _json(value.model_dump() if isinstance(value, BaseModel) else fields or value)
        return Found(text, where) if fields or value else None

    def _last_answer(self, messages: Sequence[Any] | None, where: str) -> Found | None:
        """The assistant's final message of this turn; None while it still calls tools."""
        last = self.message(messages[-1]) if messages else None
        if last is None or last.role != "assistant" or last.is_call or not last.text:
            return None
        return Found(last.text, where)

    # Conversations

    def messages(self, value: Any) -> Sequence[Any] | None:
        """The conversation that a value is, or holds under `messages`; not read yet."""
        if isinstance(value, Mapping):
            value = value.get("messages")
        if not isinstance(value, list | tuple) or not value:
            return None
        return value if self.message(value[0]) is not None else None

    def this_turn(self, messages: Sequence[Any]) -> list[Message]:
        """What came after the user's last message: a state may hold every turn so far."""
        turn: list[Message] = []
        for each in reversed(messages):
            message = self.message(each)
            if message is None:
                continue
            if message.role == "user":
                break
            turn.append(message)
        return turn[::-1]

    def turn(self, value: Any) -> list[Passage]:
        """What tools said in this turn of a conversation, as far as a model answered after it."""
        passages: list[Passage] = []
        unread: list[Passage] = []
        for message in self.this_turn(self.messages(value) or ()):
            if message.role == "tool":
                unread += self.told(message)
            elif message.role == "assistant":
                passages += unread
                unread = []
        return passages

    # Passages

    def told(self, value: Any) -> list[Passage]:
        """What a tool said: its documents if it kept them, else its text, block by block."""
        message = value if isinstance(value, Message) else self.message(value)
        if message is not None:
            if message.role != "tool":
                return []
            kept = self.passages(message.artifact)
            return kept or [Passage(text) for text in message.texts if text.strip()]
        if isinstance(value, str):
            return [Passage(value)] if value.strip() else []
        return self.passages(value)

    def passages(self, value: Any) -> list[Passage]:
        """Every document inside a value: in lists, mappings, pairs with a score, tool messages."""
        return list(self._inside(value, _DEPTH))

    def by_key(self, value: Any) -> dict[Any, list[Passage]]:
        """The lists of documents right under a mapping's keys; an empty list is one too."""
        found = {}
        for key, held in (self.fields(value) or {}).items():
            if isinstance(held, list | tuple) and not isinstance(held, str):
                passages = self.document_list(held)
                if passages is not None:
                    found[key] = passages
        return found

    def document_list(self, value: Any) -> list[Passage] | None:
        """A list of documents, or of pairs of a document and a score; None if it is another."""
        if not isinstance(value, list | tuple):
            return None
        found = [self._document(item) for item in value]
        passages = [passage for passage in found if passage is not None]
        return passages if len(passages) == len(found) else None

    def context(self, value: Any) -> list[Passage] | None:
        """What an application names as its context; empty where it says there was none."""
        fields = self.fields(value)
        if fields is None:
            return None
        lists = [self.listed(fields[key]) for key in CONTEXT_KEYS if key in fields]
        found = [passages for passages in lists if passages is not None]
        return next(filter(None, found), found[0] if found else None)

    def listed(self, value: Any) -> list[Passage] | None:
        """A list of documents, texts or dictionaries with a text; None if it is another."""
        if not isinstance(value, list | tuple):
            return None
        found = [self._any_passage(item) for item in value]
        passages = [passage for passage in found if passage is not None]
        return passages if len(passages) == len(found) else None

    def context_texts(self, value: Any) -> list[str]:
        """The texts under a mapping's context keys."""
        fields = self.fields(value)
        held = [fields[key] for key in CONTEXT_KEYS if key in fields] if fields else []
        return [text for text in held if isinstance(text, str) and text.strip()]

    def _inside(self, value: Any, depth: int) -> Iterator[Passage]:
        if value is None or isinstance(value, str | int | float):
            return
        passage = self._document(value)
        if passage is not None:
            yield passage
        elif depth == 0:
            return
        elif isinstance(value, list | tuple | set | frozenset):
            messages = self.messages(value)
            if messages:
                for each in self.this_turn(messages):
                    yield from self._inside(each.artifact, depth - 1)
                return
            for item in value:
                yield from self._inside(item, depth - 1)
        elif (message := self.message(value)) is not None:
            yield from self._inside(message.artifact, depth - 1)
        else:
            for item in (self.fields(value) or {}).values():
                yield from self._inside(item, depth - 1)

    def _document(self, value: Any) -> Passage | None:
        if isinstance(value, tuple) and len(value) == 2:
            passage = self.passage(value[0])
            if passage is None:
                return None
            try:
                return passage._replace(score=float(value[1]))
            except (TypeError, ValueError, OverflowError):
                return None
        return self.passage(value)

    def _any_passage(self, value: Any) -> Passage | None:
        if isinstance(value, str):
            return Passage(value)
        passage = self._document(value)
        if passage is not None or not isinstance(value, Mapping):
            return passage
        for key in _TEXT_KEYS:
            if isinstance(value.get(key), str):
                return self._passage_in(value, key)
        return None

    @staticmethod
    def _passage_in(value: Mapping[Any, Any], key: str) -> Passage:
        own_id, metadata = value.get("id"), value.get("metadata")
        metadata = metadata if isinstance(metadata, Mapping) else None
        score = score_in(metadata)
        return Passage(
            value[key],
            str(own_id) if isinstance(own_id, str | int) and own_id != "" else None,
            score_in(value) if score is None else score,
            dict(metadata) if metadata else None,
        )


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):  # keys that are no texts, or an object that holds itself
        return str(value)


def distinct(passages: Iterable[Passage]) -> list[Passage]:
    """Every text once, in order."""
    first: dict[str, Passage] = {}
    for passage in passages:
        first.setdefault(passage.text, passage)
    return list(first.values())
