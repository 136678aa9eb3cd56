"""Messages, documents and tool results in the formats of traces."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragaliq.capture.texts import (
    HIT_KEYS,
    QUESTION_KEYS,
    ROLES,
    Found,
    Message,
    Reader,
    document_blocks,
    score_in,
)
from ragaliq.core.passages import Passage

_CONTENT = ("parts", "content", "contents", "blocks")
# What LangChain's own machinery tells a model in a tool's place.
_FRAMEWORK_SAYS = re.compile(
    r"Returning structured response|Updated todo list to |\[cleared\]"
    r"|Successfully (?:transferred|handed off) (?:back )?to [\w -]+\.?$"
)
# What resumes a LangGraph run is an answer to a question of the run's own.
_COMMAND = {"graph", "update", "resume", "goto"}
# What other frameworks call them: CrewAI, smolagents, Haystack, the AI SDK, OpenAI's agents.
_MORE_QUESTION_KEYS = (
    *("task", "prompt", "new_message", "user_prompt", "user_message", "topic"),
    *("str_or_query_bundle", "query_bundle"),
)
_MORE_ANSWER_KEYS = ("raw", "final_output", "completion", "output_message")
_MOST_NESTED = 12
_DEPTH = 3


class SpanReader(Reader):
    """Reads the values of spans: plain data, in any provider's or framework's format."""

    def message(self, value: Any) -> Message | None:
        """A message; None if it is not one.

        A message that only carries tool results is a tool's, whatever its role.
        """
        if isinstance(value, list):
            # Python's tuples are JSON's lists: only one that begins with a role is a message.
            role = _role(value[0]) if len(value) == 2 else None
            return None if role is None else Message(role, tuple(_blocks(value[1])[0]))
        if not isinstance(value, Mapping):
            return None
        if value.get("type") == "function_call_output":  # OpenAI's Responses
            return Message("tool", _result_texts([value.get("output")]))
        fields = _unwrapped(value)
        role = _role(fields.get("role") or fields.get("type"))
        if role is None or not any(name in fields for name in (*_CONTENT, "tool_calls")):
            return None
        content = next((fields[name] for name in _CONTENT if fields.get(name) is not None), None)
        said, calls, results = _blocks(content)
        texts = tuple(said)
        if role == "tool" or (results and not any(text.strip() for text in said)):
            role = "tool"
            texts = _result_texts(results) if results else tuple(map(_as_shown, said))
            is_failed = fields.get("status") == "error"
            if is_failed or any(map(is_langgraphs, texts)):
                role = "system"
        extra = fields.get("additional_kwargs")
        if role == "user" and isinstance(extra, Mapping) and extra.get("ragaliq") == "feedback":
            role = "system"  # a guard's
        documents = () if role == "tool" else document_blocks(content)
        is_call = bool(fields.get("tool_calls") or calls)
        return Message(role, texts, is_call, fields.get("artifact"), documents)

    def passage(self, value: Any) -> Passage | None:
        """A document as LangChain and LlamaIndex write it, in Python and in JavaScript."""
        if not isinstance(value, Mapping):
            return None
        node, fields = value.get("node"), value.get("kwargs")
        if isinstance(node, Mapping) and isinstance(node.get("text"), str):
            own_id = _identifier(node.get("id_", node.get("id")))
            return Passage(node["text"], own_id, number(value.get("score")))
        if not isinstance(fields, Mapping) or value.get("type") != "constructor":
            fields = value
        text = next((t for key in _TEXT_KEYS[:2] if isinstance(t := fields.get(key), str)), None)
        if text is None:
            return None
        metadata = fields.get("metadata")
        metadata = metadata if isinstance(metadata, Mapping) else None
        score = score_in(metadata)
        score = score_in(fields) if score is None else score
        return Passage(text, _identifier(fields.get("id")), score, metadata or None)

    def fields(self, value: Any) -> Mapping[Any, Any] | None:
        """Members of an object."""
        return value if isinstance(value, Mapping) and set(value) != _COMMAND else None

    def named_question(self, value: Any, where: str = "input", depth: int = 0) -> Found | None:
        """Question in an application's inputs, if a field marks it as one.

        A single text may be anything: the name of a model, a session, a system prompt.
        """
        fields = self.fields(value)
        if fields is None or self.message(value) is not None or depth > _DEPTH:
            return self.question(value, where) if depth == 0 or fields is not None else None
        for key in (*QUESTION_KEYS, *_MORE_QUESTION_KEYS):
            found = self.question(fields[key], f"{where}.{key}") if key in fields else None
            if found:
                return found
        if self.messages(fields):
            return self.question(fields, where)
        inner = ((k, v) for k, v in fields.items() if isinstance(v, Mapping))
        found_inside = (self.named_question(v, f"{where}.{k}", depth + 1) for k, v in inner)
        return next((each for each in found_inside if each), None)

    def answer(self, value: Any, where: str = "output") -> Found | None:
        """Text that a person reads in an application's output, or None."""
        found = super().answer(value, where)
        if found is None and isinstance(value, Mapping):
            keys = (key for key in _MORE_ANSWER_KEYS if value.get(key))
            texts = (self.answer_text(value[key], f"{where}.{key}") for key in keys)
            found = next((each for each in texts if each), None)
        return found

    def messages(self, value: Any) -> Sequence[Any] | None:
        """Conversation in a value; Google calls it contents."""
        if isinstance(value, Mapping):
            value = value.get("messages", value.get("contents"))
        # LangChain's models are called with several conversations, of which spans show one.
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
            value = value if self.message(value[0]) is not None else value[0]
        return super().messages(value)

    def conversation(self, value: Any) -> list[Message]:
        """The messages of a conversation, read; those of unknown form are skipped."""
        read = (self.message(each) for each in self.messages(value) or ())
        return [message for message in read if message is not None]

    def tool_result(self, value: Any) -> list[Passage]:
        """Result of a tool: its documents if it kept them, else its texts, decoded."""
        if isinstance(value, Message):
            return super().tool_result(value)
        message = self.message(value)
        return (
            results_of(value)
            if message is None
            else super().tool_result(message._replace(role="tool"))
        )


def _unwrapped(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fields of a message, in any wrapper."""
    for name in ("data", "kwargs", "message"):
        inner = value.get(name)
        if isinstance(inner, Mapping) and ("content" in inner or "role" in inner):
            kind, path = value.get("type"), value.get("id")
            if kind == "constructor" and isinstance(path, list) and path:
                kind = path[-1]  # the name of LangChain's class
            return {"type": kind, **inner}
    content = value.get("content")
    # Google's candidates and events.
    return content if isinstance(content, Mapping) and "parts" in content else value


def _role(named: object) -> str | None:
    if not isinstance(named, str):
        return None
    return ROLES.get(named.lower().removesuffix("chunk").removesuffix("message"))


def is_langgraphs(text: str) -> bool:
    """Return true for a text that LangGraph itself wrote as a tool's result."""
    return _FRAMEWORK_SAYS.match(text) is not None


def completion_prompt(inputs: Any) -> str:
    """Prompt of a model's completion; empty for a chat."""
    fields = inputs if isinstance(inputs, Mapping) else {}
    for held in (fields.get("args"), fields.get("prompts"), [fields.get("prompt")]):
        if isinstance(held, list) and held and isinstance(held[0], str):
            return held[0]
    return ""


def is_understood(asked: Any) -> bool:
    """True if every message of a prompt, and every part of it, has a known format."""
    listed = READER.messages(asked)
    if listed is None:
        return not asked or isinstance(asked, str)
    return all(map(_is_message_understood, listed))


def _is_message_understood(value: Any) -> bool:
    message = READER.message(value)
    # What a tool said is never nothing: it was of a form that the span does not show.
    is_shown = message is not None and (message.role != "tool" or bool(message.text.strip()))
    return is_shown and _has_known_parts(value)


def _has_known_parts(message: Any) -> bool:
    fields = _unwrapped(message) if isinstance(message, Mapping) else {"content": message[1]}
    content = next((fields[name] for name in _CONTENT if fields.get(name) is not None), None)
    kinds = (
        block.get("type", block.get("block_type"))
        for block in (content if isinstance(content, list) else ())
        if isinstance(block, Mapping)
    )
    return all(kind is None or _named(kind) in _KNOWN_TYPES for kind in kinds)


def _named(kind: object) -> str:
    return str(kind).replace("-", "_")


_TEXT_TYPES = {"text", "input_text", "output_text"}
_CALL_TYPES = {"tool_call", "tool_use", "function_call"}
_RESULT_TYPES = {"tool_call_response", "tool_result", "function_response", "function_call_output"}
_KNOWN_TYPES = frozenset(
    # Without a text for the answer: thoughts, pictures, sound.
    {*_TEXT_TYPES, *_CALL_TYPES, *_RESULT_TYPES, "reasoning", "thinking", "redacted_thinking"}
    | {"image", "image_url", "input_image", "audio", "input_audio", "video", "media"}
    | {"document", "search_result", "text_plain"}
)
_RESULT_KEYS = ("response", "result", "output", "content")


def _blocks(content: Any) -> tuple[list[str], list[Any], list[Any]]:
    """Texts, tool calls and tool results of a message.

    Each provider has its own blocks: `{"type": "text"}` (OpenAI, Anthropic, OpenTelemetry), or the
    kind as a key (`{"text": ...}`, `{"functionResponse": ...}`; Google, Amazon).
    """
    texts: list[str] = []
    calls: list[Any] = []
    results: list[Any] = []
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            texts.append(block)
        if not isinstance(block, Mapping):
            continue
        kind = block.get("type", block.get("block_type"))
        kind = _named(kind) if isinstance(kind, str) else kind
        text = block.get("text", block.get("content"))
        if kind is None and not isinstance(text, str):
            for key, held in block.items():
                name = str(key).replace("_", "").lower()
                if name in {"functionresponse", "toolresult"} and isinstance(held, Mapping):
                    results.append(held.get("response", held.get("content")))
                elif name in {"functioncall", "tooluse"}:
                    calls.append(held)
        elif not isinstance(kind, str | None):
            continue
        elif kind in _RESULT_TYPES:
            held = (block[key] for key in _RESULT_KEYS if block.get(key) is not None)
            results += list(held)[:1]
        elif kind in _CALL_TYPES:
            calls.append(block)
        elif (kind is None or kind in _TEXT_TYPES) and isinstance(text, str):
            texts.append(text)
    return texts, calls, results


_ARGUMENTS = ("arguments", "args", "input")


def arguments_of(value: Any, depth: int = 0) -> Iterator[str]:
    """Texts in the arguments of a message's tool calls."""
    if depth > _MOST_NESTED:
        return
    if isinstance(value, list):
        for each in value:
            yield from arguments_of(each, depth + 1)
    elif isinstance(value, Mapping):
        for name, held in value.items():
            if name in _ARGUMENTS:
                yield from _strings(decoded(held), depth)
            elif isinstance(held, Mapping | list):
                yield from arguments_of(held, depth + 1)


def _strings(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list) and depth <= _MOST_NESTED:
        if isinstance(value, Mapping):
            # An object as such may be the answer: a structured one.
            yield json.dumps(value, ensure_ascii=False)
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(each, depth + 1)


# --- what tools return ----------------------------------------------------------------------------

# Where tools and stores keep lists of hits, or one text, in what they return.
_WRAPPERS = (
    *("result", "results", "output", "response", "value", "data", "hits", "documents", "docs"),
    *("items", "matches", "chunks", "passages", "retrievalResults", "structuredContent"),
    *("contexts", "search_results", "points", "objects", "records"),
)
_TEXT_KEYS = ("page_content", "pageContent", "text", "content", "snippet", "body", "passage")
_HIT_TEXTS = (*_TEXT_KEYS, "chunk", "document")
_HIT_INNER = (
    *("document", "node", "_source", "payload", "content", "fields", "properties", "chunk"),
    "metadata",  # Pinecone's hits have no text elsewhere
)
_HIT_IDS = ("id", "_id", "id_", "file_id", "doc_id", "document_id", "chunk_id", "node_id")
PROMPT_VARIABLES = "llm.prompt_template.variables"
_HIT_SCORES = ("score", "_score", "relevance_score", "similarity")


def asked_last(messages: Sequence[Message]) -> str | None:
    """User's last message in a prompt."""
    return next((m.text for m in reversed(messages) if m.role == "user" and m.text), None)


def decoded(text: Any) -> Any:
    """Decode a text that is JSON of an object, a list or a text; else return it."""
    if isinstance(text, str) and text.lstrip()[:1] in {"{", "[", '"'}:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def results_of(value: Any) -> list[Passage]:
    """Passages of a tool's result: one for each hit, or its text.

    JSON is decoded, since a model reads its texts and not its escapes. Objects of unknown shape
    stay JSON.
    """
    read = decoded(value)
    if not isinstance(read, str | Mapping | list) or not read:
        return []
    if isinstance(read, str):
        return READER.hits(read)
    return list(_hits(read, 0)) or [
        Passage(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    ]


def _result_texts(values: Sequence[Any]) -> tuple[str, ...]:
    return tuple(passage.text for held in values for passage in results_of(held))


def _as_shown(text: str) -> str:
    """Text of a tool's message as a model read it: without the escapes of JSON around all of it."""
    read = decoded(text)
    return read if isinstance(read, str) else text


def hit(item: Any) -> Passage | None:
    """Hit in an object: its text, id and score.

    The text is empty if the object only has an id; None if it has neither.
    """
    if not isinstance(item, Mapping):
        return None
    document = READER.passage(item)
    if document is not None:
        return document
    text = _text_in(item, 0)
    around = (item, *(item[key] for key in _HIT_INNER if isinstance(item.get(key), Mapping)))
    ids = (_identifier(each.get(key)) for each in around for key in _HIT_IDS)
    scores = (number(each.get(key)) for each in around for key in _HIT_SCORES)
    own_id = next((own for own in ids if own is not None), None)
    if text is None and own_id is None:
        return None
    return Passage(text or "", own_id, next((s for s in scores if s is not None), None))


def _hits(value: Any, depth: int) -> Iterator[Passage]:
    value = decoded(value)
    if isinstance(value, str):
        if value.strip():
            yield Passage(value)
    elif depth > _MOST_NESTED:
        return
    elif isinstance(value, list):
        for item in value:
            yield from _hits(item, depth + 1)
    elif isinstance(value, Mapping):
        if READER.message(value) is not None:
            yield from READER.tool_result(value)
            return
        for key in _WRAPPERS:
            # `value` next to a type is a text of the AI SDK's; alone it may be anything.
            is_wrapper = value.get(key) and (key != "value" or "type" in value)
            # Texts among a record's other fields are its own, as the items of an order are.
            held = value.get(key) if len(value) > 1 and key not in HIT_KEYS else None
            if isinstance(held, list) and held and all(isinstance(each, str) for each in held):
                is_wrapper = False
            found = list(_hits(value[key], depth + 1)) if is_wrapper else []
            if found:
                yield from found
                return
        content = value.get("content")
        if isinstance(content, list) and not any(key in value for key in _HIT_IDS):
            yield from _hits(content, depth + 1)  # MCP: a result of several texts
            return
        found_here = hit(value)
        if found_here is not None and found_here.text.strip():
            yield found_here


def _text_in(item: Mapping[str, Any], depth: int) -> str | None:
    for key in _HIT_TEXTS:
        if isinstance(item.get(key), str):
            return str(item[key])
    for key in _HIT_INNER:
        inner = item.get(key)
        found = _text_in(inner, depth + 1) if isinstance(inner, Mapping) and depth < 3 else None
        if found is None and key == "content" and "type" not in item and isinstance(inner, list):
            found = "".join(_blocks(inner)[0]) or None
        if found is not None:
            return found
    return None


def _identifier(value: Any) -> str | None:
    """Document's id as a text, in any store's format; None without one."""
    is_id = isinstance(value, str | int) and not isinstance(value, bool) and value != ""
    return str(value) if is_id else None


def number(value: Any) -> float | None:
    """A score; None for what is not a number."""
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


READER = SpanReader()
