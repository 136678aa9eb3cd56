"""Readers of question, answer and passages in the inputs and outputs of steps.

Applications have many shapes; a `Reader` knows the common ones and returns None for the rest. It
works on plain values; an adapter overrides three small methods for a framework's own objects:
messages, documents, and objects with fields.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, repeat
from typing import Any, NamedTuple

from pydantic import BaseModel

from ragaliq.capture.plain_values import plain
from ragaliq.core.passages import Passage
from ragaliq.core.test_case import ContextChunk

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
# These names are also used for other things, even next to a conversation with the answer.
UNSURE_ANSWER_KEYS = ("output", "response", "result", "text")
ANSWER_KEYS = (
    "answer",
    "generation",
    "output_text",
    "final_answer",
    "reply",
    "final_response",
    *UNSURE_ANSWER_KEYS,
)
_ASKING_KEYS = (
    "instruction",
    "instructions",
    "task",
    "request",
    "prompt",
    "ask",
    "body",
    "topic",
    "subject",
    "issue",
)
"""Keys of the question if there are several texts and none of `QUESTION_KEYS`."""
_ASKING_ENDS = ("question", "query")  # of keys such as `user_question`
_SURE_ANSWER_KEYS = tuple(key for key in ANSWER_KEYS if key not in UNSURE_ANSWER_KEYS)
# Fields of an answer that state nothing about its subject.
_NO_STATEMENTS = frozenset(
    "sources source citations citation references reference context contexts documents docs "
    "source_documents source_nodes chunks quote quotes evidence confidence score scores id ids "
    "uuid metadata question query input user_input chat_history history messages language lang "
    "model usage reasoning thought thoughts steps intermediate_steps tool_calls url urls link "
    "links created_at timestamp status success type took took_s took_ms duration elapsed "
    "latency cost tokens run_id trace_id session_id thread_id user_id error errors version".split()
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
# Under these keys texts are what was found, whatever else a tool says.
HIT_KEYS = frozenset({*CONTEXT_KEYS, "results", "hits", "matches"})
_TEXT_KEYS = ("page_content", "text", "content")
_WITH_RAW = {"raw", "parsed", "parsing_error"}
_HISTORY_KEYS = ("chat_history", "history", "conversation_history")
_SCORE_KEYS = ("relevance_score", "score")
# Keys that say how to answer: `{"text": ..., "language": "en"}` asks for a translation.
_MANNER_KEYS = frozenset("language lang tone style format persona instructions feedback".split())
# Settings of a request next to its question.
NO_QUESTION_KEYS = _MANNER_KEYS | frozenset(
    "chat_history history locale model name user user_id session_id thread_id conversation_id "
    "tenant tenant_id system system_prompt".split()
)
ASKS = ("?", "？", "؟")
# Made once: `list | tuple` would be made for each value of each step.
_LISTS = (list, tuple)
_NUMBERS = (int, float)
# Beginning of a file in a user's text, and tags that hold the question instead.
_OPENS_FILE = re.compile(
    r"^[ \t]*(?:<(?P<tag>[^\W\d][\w.:-]*)(?:[ \t][^<>\n]*)?>|(?P<fence>`{3,})[^`\n]*$)",
    re.MULTILINE,
)
_ASKING_TAGS = frozenset({*QUESTION_KEYS, *_ASKING_KEYS, "user", "user_question", "user_request"})
_MOST_OPENINGS = 100  # in one text: a request waits
_LEAST_OF_FILE = 8  # spaces
_LEAST_OF_FIELD = 4  # spaces of a field that is a sentence
_MOST_TEXTS_IN = 32  # of a list, or of a record
_DEPTH = 5
_MOST_VALUES = 100
_MOST_STATEMENTS = 2_000  # values of an answer
_MOST_DOCUMENTS = 10_000  # of a list: a lazy one may have no end
# Lists and dictionaries as `str()` writes them; Python parses this much in milliseconds.
_WRITTEN = re.compile(r"""(?:[\[{]['"{(]|\[Document\()(?:[^\\]++|\\[\\'"nrtxuU])*+""")
_MOST_WRITTEN = 64 * 1024  # characters
_MOST_COMMAS = 500
_EMPTY_RESPONSE = "Empty Response"
# Answers of LangChain's agents that reached a limit.
_LIMIT_REACHED = re.compile(
    r"(?:Model|Tool|'[^'\n]+' tool) call limits? (?:exceeded|reached): [^\n]+"
    r"|Sorry, need more steps to process this request\."
    r"|Agent stopped due to (?:iteration limit or time limit|max iterations)\."
)
_LABEL = re.compile(r"Response \d+: ")
_DASHES = re.compile(r"\n-{5,}\n")

Role = str
"""`user`, `assistant`, `tool` or `system`."""

ROLES: Mapping[str, Role] = {
    name: role
    for role, names in {
        "user": "user human",
        "assistant": "assistant ai model bot chatbot chat tool-call tool_call",
        "tool": "tool tool-response tool_response function ipython",
        "system": "system developer",
    }.items()
    for name in names.split()
}
"""Roles of messages, by the names that applications and providers give them."""


class Message(NamedTuple):
    """One message of a conversation.

    Attributes:
        role: `user`, `assistant`, `tool` or `system`. Texts of the framework itself (hand-offs,
            feedback) and errors of tools are `system`, which is never evidence.
        texts: Its texts, one by one; reasoning, images and tool calls are skipped.
        is_call: Whether it calls tools, and so is not an answer.
        artifact: Object that a tool kept with its text.
        documents: Texts of the documents in it for the model to cite.
    """

    role: Role
    texts: tuple[str, ...]
    is_call: bool = False
    artifact: Any = None
    documents: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Its texts, joined."""
        return "".join(self.texts)


class Found(NamedTuple):
    """A text and its source: `input.messages`, `output.answer`, ...

    Attributes:
        text: The text.
        where: Its source.
        files: Texts that came with a question.
    """

    text: str
    where: str
    files: Sequence[str] = ()


def _as_written(text: str) -> Any:
    """Value that `str()` wrote as a text, None for any other; a document becomes its fields."""
    is_short = len(text) <= _MOST_WRITTEN and text.count(",") <= _MOST_COMMAS
    if not is_short or not _WRITTEN.fullmatch(text):
        return None

    def value(node: ast.expr) -> Any:
        if isinstance(node, ast.List):
            return [value(each) for each in node.elts]
        if isinstance(node, ast.Tuple):  # a document with its score
            return tuple(value(each) for each in node.elts)
        if not isinstance(node, ast.Call):
            return ast.literal_eval(node)
        fields = {}
        for keyword in node.keywords:
            with contextlib.suppress(ValueError):  # metadata may hold objects
                fields[keyword.arg] = value(keyword.value)
        return fields

    try:
        return value(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def text_blocks(content: Any) -> tuple[str, ...]:
    """Texts of a message's content, one by one; joining them would merge documents."""
    content = plain(content)
    if isinstance(content, str):
        return (content,)
    texts = []
    for block in map(plain, content) if isinstance(content, _LISTS) else ():
        text = block
        if isinstance(block, Mapping):
            text = plain(block.get("text")) if block.get("type", "text") == "text" else None
        if isinstance(text, str):
            texts.append(text)
    return tuple(texts)


def document_blocks(content: Any) -> tuple[str, ...]:
    """Texts of the documents in a message's content, as models that cite get them.

    Anthropic's `document` and `search_result`, LangChain's `text-plain`; files are skipped.
    """
    texts: tuple[str, ...] = ()
    content = plain(content)
    for block in map(plain, content) if isinstance(content, _LISTS) else ():
        if not isinstance(block, Mapping):
            continue
        kind, source = block.get("type"), plain(block.get("source"))
        if kind == "document" and isinstance(source, Mapping):
            texts += text_blocks(source.get("data" if source.get("type") == "text" else "content"))
        elif kind == "search_result":
            texts += text_blocks(block.get("content"))
        elif kind == "text-plain":
            texts += text_blocks(block.get("text"))
    return texts


def models_words(answer: str) -> str:
    """Answer without a framework's own texts around it or instead of it.

    LlamaIndex's `Accumulate` labels replies and puts dashes between them; where there was nothing
    to ask a model about, its synthesizers return "Empty Response". LangChain's agents say so if
    they reached a limit.
    """
    if answer == _EMPTY_RESPONSE or _LIMIT_REACHED.fullmatch(answer):
        return ""
    if not answer.startswith("Response 1: "):
        return answer
    parts = [_LABEL.sub("", part, count=1) for part in _DASHES.split(answer) if _LABEL.match(part)]
    if len(parts) < len(_DASHES.split(answer)):
        return answer  # a model's own dashes
    return "\n\n".join(part for part in parts if part.strip() and part != _EMPTY_RESPONSE)


def without_answers(passages: list[Passage], answers: Sequence[str]) -> list[Passage]:
    """Passages without those that LlamaIndex's multi-question engines make of answers."""
    if not answers:
        return passages
    ends = tuple(f"{name}: {answer}" for answer in answers for name in ("Response", "Answer"))
    return [each for each in passages if not each.text.rstrip().endswith(ends)]


def asked_in(message: Message) -> str:
    """Question in a user's message: what is left without files and texts next to it."""
    return _split_question(message.texts)[0]


def _split_question(texts: Sequence[str]) -> tuple[str, list[str]]:
    """Question in the blocks of a user's message, and the files and other texts next to it.

    A block that ends its sentence is a text of its own, and so is a long one next to a block that
    asks; others are pieces of one.
    """
    if len(texts) == 1:  # most of them
        return _split_files(texts[0])
    split = [_split_files(text) for text in texts]
    files = [file for _, held in split for file in held]
    blocks = [rest for rest, _ in split if rest.strip()]
    asking = [block for block in blocks if block.rstrip().endswith(ASKS)]
    if len(asking) == 1 and all(block in asking or _is_file(block) for block in blocks):
        return asking[0], files + [block for block in blocks if block not in asking]
    for at in range(len(blocks) - 1, 0, -1):
        if blocks[at - 1].rstrip(" \t").endswith((".", "!", ":", "。", "\n", ">", "`", "|")):
            return "".join(blocks[at:]), files + blocks[:at]
    return "".join(blocks), files


def _is_file(text: str) -> bool:
    return "\n" in text.strip() or text.count(" ") >= _LEAST_OF_FILE


def _split_files(text: str) -> tuple[str, list[str]]:
    """Split a text into the question and its files: elements and fenced texts on their own lines.

    `<question>` and the like hold the question.
    """
    files: list[str] = []
    if "<" not in text and "```" not in text:
        return text, files
    kept, at = list[str](), 0
    for opening in islice(_OPENS_FILE.finditer(text), _MOST_OPENINGS):
        tag = opening["tag"]
        closing = f"</{tag}>" if tag else opening["fence"]
        end = text.find(closing, opening.end()) if opening.start() >= at else -1
        inside = text[opening.end() : max(end, opening.end())]
        is_asked = bool(tag) and tag.casefold() in _ASKING_TAGS
        if is_asked and end >= 0:
            kept += [text[at : opening.start()], inside]
        elif _is_file(inside):
            kept.append(text[at : opening.start()])
            files.append(inside.strip())
        else:
            continue
        at = end + len(closing)
    parts = [part.strip() for part in (*kept, text[at:])]
    return "\n\n".join(filter(None, parts)) if kept else text, files


def _labelled(path: Sequence[str], text: str) -> str:
    return f"{' '.join(path).replace('_', ' ')}: {text}"


def question_in(texts: Sequence[str], where: str) -> Found | None:
    """Question in the texts of a user's message, with its files; None if they are empty."""
    asked, files = _split_question(texts)
    return Found(asked.strip(), where, files) if asked.strip() or files else None


def texts_in(value: Any, depth: int = 4, *, numbers: bool = False) -> Iterator[str]:
    """The texts in the arguments of a tool's call, or in a record; of a long list the first.

    Args:
        value: The arguments or the record.
        depth: How many containers deep to look.
        numbers: Whether numbers count as texts.
    """
    value = plain(value)
    if isinstance(value, str):
        yield value
    elif numbers and type(value) in _NUMBERS:
        yield str(value)
    elif depth and type(value) in _LISTS and value and type(value[0]) not in _NUMBERS:
        for each in islice(value, _MOST_TEXTS_IN):
            yield from texts_in(each, depth - 1, numbers=numbers)
    elif depth and isinstance(value, dict):
        for each in islice(value.values(), _MOST_TEXTS_IN):
            yield from texts_in(each, depth - 1, numbers=numbers)


def score_in(metadata: Mapping[str, Any] | None) -> float | None:
    """Score that a reranker, or the application, put into a document's metadata."""
    for key in _SCORE_KEYS:
        score = metadata.get(key) if metadata else None
        if score is not None:
            try:
                return float(score)  # NumPy's numbers too
            except (TypeError, ValueError, OverflowError):
                continue
    return None


def _exchanges(held: Any) -> list[tuple[str, str]] | None:
    """The messages of `[(question, answer), ...]`, as classic chains take a conversation."""
    messages: list[tuple[str, str]] = []
    held = plain(held)
    for pair in map(plain, held) if isinstance(held, _LISTS) else ():
        if not isinstance(pair, tuple) or len(pair) != 2:
            return None
        if not all(isinstance(text, str) for text in pair):  # LangChain's own kind of string too
            return None
        messages += zip(("user", "assistant"), map(plain, pair), strict=True)
    return messages or None


def _message(role: Role, content: Any, *, is_call: bool = False) -> Message:
    texts, documents = text_blocks(content), document_blocks(content)
    if role == "tool":
        return Message(role, texts + documents, is_call)
    return Message(role, texts, is_call, documents=documents)


class Reader:
    """Reads inputs and outputs of steps; adapters override it for their objects."""

    def message(self, value: Any) -> Message | None:
        """Message in the forms people write by hand: `(role, text)` and `{role, content}`."""
        value = plain(value)
        if isinstance(value, _LISTS):
            role = None
            if len(value) == 2 and isinstance(value[0], str):
                role = ROLES.get(plain(value[0]))
            return None if role is None else _message(role, value[1])
        if isinstance(value, Mapping) and isinstance(value.get("role"), str):
            role = ROLES.get(plain(value["role"]), "assistant")
            return _message(role, value.get("content"), is_call=bool(value.get("tool_calls")))
        return None

    def passage(self, value: Any) -> Passage | None:
        """A document; a dictionary is one if it has a `page_content`."""
        value = plain(value)
        if isinstance(value, Passage):
            return value
        if isinstance(value, ContextChunk):
            own_id = None if value.id is None else str(value.id)
            return Passage(value.text, own_id, value.score, value.metadata)
        if isinstance(value, Mapping) and isinstance(value.get("page_content"), str):
            return self._passage_in(value, "page_content")
        return None

    def fields(self, value: Any) -> Mapping[Any, Any] | None:
        """The fields of a mapping or of an object of the application's own, else None."""
        value = plain(value)
        # A dictionary is known at once; any other mapping takes ten times as long.
        if isinstance(value, (dict, Mapping)):
            return value
        if isinstance(value, BaseModel):
            return vars(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return None

    def at(self, value: Any, path: str) -> Any:
        """The value under a path, such as `data.answer`; of lists, the values of their items."""
        fields = self.fields(value)
        if fields is None:
            value = plain(value)
            items = value if isinstance(value, _LISTS) else ()
            found = [held for each in items if (held := self.at(each, path)) is not None]
            return found or None
        if path in fields:
            return fields[path]
        key, _, rest = path.partition(".")
        return self.at(fields.get(key), rest) if rest else None

    # Questions

    def question(self, value: Any, where: str = "input") -> Found | None:
        """User's question of this turn in an application's inputs, or None."""
        value = plain(value)
        if isinstance(value, str):
            asked = self._asked_in_json(value, where) if "{" in value else None
            return asked or question_in((value,), where)
        message = self.message(value)
        if message is not None:
            return question_in(message.texts, where)
        fields = self.fields(value)
        if fields is None:
            return self._asked(value, where)
        for key in QUESTION_KEYS:
            found = self.question(fields[key], f"{where}.{key}") if key in fields else None
            if found:
                return found
        if self.messages(fields):
            return self._asked(fields, f"{where}.messages")
        return self._only_question(fields, where) or self._asked_below(fields, where)

    def _only_question(self, fields: Mapping[Any, Any], where: str) -> Found | None:
        """The only text that can be a question, or one under a key that asks."""
        texts = {
            key: str.strip(held)
            for key, held in islice(fields.items(), _MOST_VALUES)
            if isinstance(held, str)
            and str.strip(held)
            and key not in CONTEXT_KEYS
            and key not in ANSWER_KEYS[:-1]  # "text" may ask as well
        }
        asking = [key for key in texts if str(key).casefold().endswith(_ASKING_ENDS)]
        asking = asking[:1] if len(asking) == 1 else [key for key in _ASKING_KEYS if key in texts]
        for key in asking if len(texts) > 1 else ():
            return Found(texts[key], f"{where}.{key}")
        if not _MANNER_KEYS.isdisjoint(texts):
            texts = {
                key: text
                for key, text in texts.items()
                if key not in _MANNER_KEYS and (key not in _TEXT_KEYS or text.endswith(ASKS))
            }
        # A lone one, or the only one of several words.
        if len(texts) > 1:
            texts = {key: text for key, text in texts.items() if key not in NO_QUESTION_KEYS}
        if len(texts) > 1:
            texts = {key: text for key, text in texts.items() if len(text.split()) > 1}
        for key, text in texts.items() if len(texts) == 1 else ():
            if not str(key).endswith("id"):
                return Found(text, f"{where}.{key}")
        return None

    def _asked_in_json(self, text: str, where: str) -> Found | None:
        """The question in the body of a request."""
        if text.lstrip()[:1] != "{":
            return None
        with contextlib.suppress(ValueError, RecursionError):
            held = json.loads(text)
            return self.question(held, where) if isinstance(held, dict) else None
        return None

    def _asked_below(self, fields: Mapping[Any, Any], where: str) -> Found | None:
        """The question in the only field that holds one."""
        if where.count(".") >= _DEPTH:
            return None
        held = (
            self.question(each, f"{where}.{key}")
            for key, each in islice(fields.items(), _MOST_VALUES)
            if isinstance(each, Mapping) and key not in CONTEXT_KEYS
        )
        found = [each for each in held if each is not None]
        return found[0] if len(found) == 1 else None

    def echoed_question(self, value: Any, where: str = "output") -> Found | None:
        """The question as the application returned it, under a key that says so.

        An unknown key will not do: the text next to it may be the answer.
        """
        fields = self.fields(value)
        if fields is None:
            return None
        for key in QUESTION_KEYS:
            held = fields.get(key)
            if isinstance(held, str) and str.strip(held):
                return Found(str.strip(held), f"{where}.{key}")
        return self._asked(fields, f"{where}.messages")

    def _asked(self, conversation: Any, where: str) -> Found | None:
        """The question in the user's last message; files may come in messages next to it."""
        found, files = None, list[str]()
        for each in reversed(self.messages(conversation) or ()):
            message = self.message(each)
            if message is None or message.role != "user":
                if message is not None and message.role == "assistant" and (found or files):
                    break
                continue
            asked, held = _split_question(message.texts)
            if found is None and asked.strip():
                found, held = asked.strip(), held[:]
            elif found is not None and _is_file(asked):
                held = [*held, asked]
            files += held
        return None if found is None else Found(found, where, files)

    # Answers

    def answer(self, value: Any, where: str = "output") -> Found | None:  # noqa: PLR0911 - one a shape
        """Text that a person reads in an application's output, or None."""
        value = plain(value)  # a chain's parser may return LangChain's own kind of text
        if isinstance(value, str):
            return Found(value, where) if value.strip() else None
        message = self.message(value)
        if message is not None:
            is_said = message.role in {"assistant", "system"} and message.text
            return Found(message.text, where) if is_said else None
        fields = self.fields(value) or {}
        if fields.get("structured_response") is not None:
            return self.answer_text(fields["structured_response"], f"{where}.structured_response")
        if fields.keys() == _WITH_RAW:  # LangChain's structured output, with what it was read from
            return self.answer_text(fields["parsed"], f"{where}.parsed")
        messages = self.messages(fields or value)
        last = self.message(messages[-1]) if messages else None
        # The assistant's final message of this turn; there is none while it calls tools.
        is_said = last is not None and last.role == "assistant" and not last.is_call and last.text
        found = self._under(_SURE_ANSWER_KEYS, fields, where)
        if found is None and not is_said:
            # A service may wrap its answer, and say "success" of it.
            found = self._wrapped(fields, where) or self._under(UNSURE_ANSWER_KEYS, fields, where)
        if found:
            return found
        if messages:
            if last is None or not is_said:
                return None
            return Found(last.text, f"{where}.messages" if fields else where)
        # A state holds much; an object of the application's own is what it answered with.
        return self.answer_text(value, where) if fields and not isinstance(value, Mapping) else None

    def _under(self, keys: Sequence[str], fields: Mapping[Any, Any], where: str) -> Found | None:
        found = (self.answer_text(fields[k], f"{where}.{k}") for k in keys if k in fields)
        return next(filter(None, found), None)

    def _wrapped(self, fields: Mapping[Any, Any], where: str) -> Found | None:
        for key, held in islice(fields.items(), _MOST_VALUES):
            if isinstance(held, Mapping) and key not in _NO_STATEMENTS:
                found = self._under(_SURE_ANSWER_KEYS, plain(held), f"{where}.{key}")
                if found:
                    return found
        return None

    def answer_text(self, value: Any, where: str = "output") -> Found | None:
        """Answer value as text: what a person reads of it, field by field.

        An answer includes its other statements, such as key points or a price: an invented one must
        not pass because of the others. A value of very many parts is data, not an answer.
        """
        value = plain(value)
        if value is None or isinstance(value, str) or self.message(value) is not None:
            return None if value is None else self.answer(value, where)
        if isinstance(value, _LISTS):
            if self.messages(value):
                return self.answer(value, where)
            # A list of documents answers only if it has a text as well.
            may_say = not self.passages(value) or any(isinstance(each, str) for each in value)
        else:
            may_say = self.fields(value) is not None
        if not may_say:
            return None
        left = repeat(object(), _MOST_STATEMENTS)
        stated = self._statements(value, (), left)
        if not stated or not next(left, None):
            return None
        named = {path[0] for path, _ in stated if path}
        main = next((key for key in (*ANSWER_KEYS, "content") if key in named), None)
        if len(stated) == 1:
            ((path, text),) = stated
            is_said = not path or path[-1] == main or len(text.split()) > 2
            text = text if is_said else _labelled(path, text)
            return Found(text, ".".join([where, *path]))
        lines = [
            text if path[:1] in {(main,), ()} else _labelled(path, text)
            for path, text in sorted(stated, key=lambda each: each[0][:1] != (main,))
        ]
        return Found("\n\n".join(lines), where)  # paragraphs: each is a claim of its own

    def _statements(
        self, value: Any, around: tuple[int, ...], left: Iterator[object]
    ) -> list[tuple[tuple[str, ...], str]]:
        """The texts and numbers in an answer, with the names of the fields that lead to each.

        Args:
            value: The answer, or a part of it.
            around: The ids of what it is in: an object may hold itself.
            left: Has an item for each value that may still be looked at.
        """
        inside = (*around, id(value))
        value = plain(value)
        if isinstance(value, str):
            return [((), value.strip())] if value.strip() else []
        is_plain = value is not None and not isinstance(value, bool)
        is_source = is_plain and self.passage(value) is not None  # returned with the answer
        if not is_plain or is_source or len(around) > _DEPTH or inside[-1] in around:
            return []
        if isinstance(value, (int, float)):
            return [((), str(value))]
        if isinstance(value, (list, tuple, set, frozenset)):
            return [
                each
                for held, _ in zip(value, left, strict=False)
                for each in self._record(self._statements(held, inside, left))
            ]
        fields = self.fields(value)
        if fields is None:
            # Dates, enumerations, decimals; an object's address says nothing.
            text = str(value)
            return [] if text.startswith("<") or " object at 0x" in text else [((), text)]
        return [
            ((str(key), *path), text)
            for (key, held), _ in zip(fields.items(), left, strict=False)
            if key not in _NO_STATEMENTS
            for path, text in self._statements(held, inside, left)
        ]

    @staticmethod
    def _record(
        stated: list[tuple[tuple[str, ...], str]],
    ) -> list[tuple[tuple[str, ...], str]]:
        """One statement of the short fields of a record in a list, which belong together."""
        if len(stated) < 2 or any(
            len(path) != 1 or text.count(" ") >= _LEAST_OF_FIELD for path, text in stated
        ):
            return stated
        (first, text), *others = stated
        return [(first, ", ".join([text, *(_labelled(path, each) for path, each in others)]))]

    # Conversations

    def messages(self, value: Any) -> Sequence[Any] | None:
        """Conversation that a value is, or holds under `messages`; not read yet."""
        if isinstance(value, Mapping):
            value = plain(value).get("messages")
        value = plain(value)
        if not isinstance(value, _LISTS) or not value:
            return None
        return value if self.message(value[0]) is not None else None

    def earlier(self, inputs: Any) -> Sequence[Any] | None:
        """Conversation in an application's inputs, perhaps with its question."""
        held = inputs = plain(inputs)
        # Most requests have no conversation; they pay for a few looks into a dictionary only.
        if not isinstance(inputs, _LISTS):
            fields = self.fields(inputs) or {}
            for key in _HISTORY_KEYS:
                held = fields.get(key)
                if held is not None and (messages := self.messages(held) or _exchanges(held)):
                    return messages
            held = plain(fields.get("messages"))
        if not isinstance(held, _LISTS) or len(held) < 2:
            return None
        return held if self.message(held[0]) is not None else None

    def this_turn(self, conversation: Any) -> list[Message]:
        """Messages after the user's last one: a state may hold every turn so far."""
        turn: list[Message] = []
        for each in reversed(self.messages(conversation) or ()):
            message = self.message(each)
            if message is not None and message.role == "user":
                break
            if message is not None:
                turn.append(message)
        return turn[::-1]

    def tool_results(self, value: Any) -> list[Passage]:
        """Tool results in this turn of a conversation, before a model's answer."""
        turn = self.this_turn(value)
        while turn and turn[-1].role != "assistant":
            turn.pop()
        return [
            passage
            for message in turn
            if message.role == "tool"
            for passage in self.tool_result(message)
        ]

    # Passages

    def tool_result(self, value: Any) -> list[Passage]:
        """Result of a tool: its documents if it kept them, else its text, block by block."""
        message = value if isinstance(value, Message) else self.message(value)
        if message is not None:
            if message.role != "tool":
                return []
            kept = self.passages(message.artifact)
            return kept or [hit for text in message.texts for hit in self.hits(text)]
        return self.hits(value) if isinstance(value, str) else self.passages(value)

    def hits(self, text: str) -> list[Passage]:
        """Hits in the text of a tool that lists them; for other texts, the whole text.

        They are listed as JSON, or as the `str()` of a list of dictionaries or documents.
        """
        todo, text = [], plain(text)
        if text.lstrip()[:1] in {"{", "["}:
            with contextlib.suppress(ValueError, RecursionError):
                todo = [(json.loads(text), True)]
            if not todo:
                todo = [(_as_written(text.strip()), True)]
        for value, may_be_texts in todo:  # which grows by what is inside
            found = self.listed(value)
            if found and (may_be_texts or not isinstance(value[0], str)):
                return found
            if isinstance(value, dict) and len(todo) < _MOST_VALUES:
                # Texts among a record's other fields are its own, as the items of an order are.
                todo += [(v, len(value) == 1 or k in HIT_KEYS) for k, v in value.items()]
        return [Passage(text)] if text.strip() else []

    def passages(self, value: Any) -> list[Passage]:
        """Every document inside a value: in lists, mappings, pairs with a score, tool messages."""
        return self._passages(value, _DEPTH, repeat(object(), _MOST_DOCUMENTS))

    def _passages(self, value: Any, depth: int, left: Iterator[object]) -> list[Passage]:
        value = plain(value)
        if value is None or isinstance(value, (str, int, float)):
            return []
        passage = self._document(value)
        if passage is not None or depth == 0:
            return [] if passage is None else [passage]
        inner: Iterable[Any]
        if isinstance(value, (list, tuple, set, frozenset)):
            inner = value
            if self.messages(value):
                inner = [message.artifact for message in self.this_turn(value)]
        elif (message := self.message(value)) is not None:
            inner = [message.artifact]
        else:
            inner = (self.fields(value) or {}).values()
        return [
            passage
            for each, _ in zip(inner, left, strict=False)
            for passage in self._passages(each, depth - 1, left)
        ]

    def by_key(self, value: Any) -> dict[Any, list[Passage]]:
        """The lists of documents right under a mapping's keys; an empty list is one too."""
        lists = {key: self.document_list(held) for key, held in (self.fields(value) or {}).items()}
        return {key: passages for key, passages in lists.items() if passages is not None}

    def document_list(self, value: Any) -> list[Passage] | None:
        """A list of documents, or of pairs of a document and a score; None if it is another."""
        value = plain(value)
        if not isinstance(value, _LISTS):
            return None
        passages: list[Passage] = []
        for item in islice(value, _MOST_DOCUMENTS):
            passage = self.passage(item)
            if passage is None and isinstance(item, tuple):
                passage = self._document(item)
            if passage is None:
                return None
            passages.append(passage)
        return passages

    def context(self, value: Any) -> list[Passage] | None:
        """Context that an application provides; empty if it says there was none."""
        fields = self.fields(value) or {}
        lists = [self.listed(fields[key]) for key in CONTEXT_KEYS if key in fields]
        found = [passages for passages in lists if passages is not None]
        return next(filter(None, found), found[0] if found else None)

    def listed(self, value: Any) -> list[Passage] | None:
        """A list of documents, texts or dictionaries with a text; None if it is another."""
        passages: list[Passage] = []
        value = plain(value)
        held: Iterable[Any] = value if isinstance(value, _LISTS) else (None,)
        for item in map(plain, islice(held, _MOST_DOCUMENTS)):
            passage = Passage(item) if isinstance(item, str) else self._document(item)
            for key in _TEXT_KEYS if passage is None and isinstance(item, Mapping) else ():
                if passage is None and isinstance(item.get(key), str):
                    passage = self._passage_in(item, key)
            if passage is None:
                return None
            passages.append(passage)
        return passages

    def context_texts(self, value: Any) -> list[str]:
        """The texts under a mapping's context keys."""
        fields = self.fields(value) or {}
        held = [plain(fields[key]) for key in CONTEXT_KEYS if key in fields]
        return [text for text in held if isinstance(text, str) and text.strip()]

    def _document(self, value: Any) -> Passage | None:
        """A document, or a pair of one and its score."""
        value = plain(value)
        if not isinstance(value, tuple) or len(value) != 2:
            return self.passage(value)
        passage = self.passage(value[0])
        try:
            return None if passage is None else passage._replace(score=float(value[1]))
        except (TypeError, ValueError, OverflowError):
            return None

    @staticmethod
    def _passage_in(value: Mapping[Any, Any], key: str) -> Passage:
        own_id, metadata = value.get("id"), value.get("metadata")
        metadata = metadata if isinstance(metadata, Mapping) else None
        score = score_in(metadata)
        return Passage(
            plain(value[key]),
            str(own_id) if isinstance(own_id, (str, int)) and own_id != "" else None,
            score_in(value) if score is None else score,
            dict(metadata) if metadata else None,
        )
