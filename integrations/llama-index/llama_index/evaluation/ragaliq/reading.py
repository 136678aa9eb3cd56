"""Readers of question, context and answer in LlamaIndex's objects.

Only strings and numbers leave this module: the application may change or drop nodes and responses
after their event.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from inspect import BoundArguments
from itertools import islice
from typing import Any, TypeVar

from llama_index.core.agent.workflow.workflow_events import AgentOutput
from llama_index.core.async_utils import asyncio_run
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CitableBlock,
    CitationBlock,
    CompletionResponse,
    MessageRole,
    TextBlock,
    ToolCallBlock,
)
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.chat_engine.types import AgentChatResponse, StreamingAgentChatResponse
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.workflow import Event, StopEvent

from ragaliq import Passage
from ragaliq.capture import (
    ANSWER_KEYS,
    QUESTION_KEYS,
    Found,
    Message,
    Reader,
    asked_in,
    models_words,
    plain,
    question_in,
    score_in,
    texts_in,
)

__all__ = ["READER", "LlamaIndexReader"]

T = TypeVar("T")

_RESPONSES = (
    Response,
    PydanticResponse,
    StreamingResponse,
    AsyncStreamingResponse,
    AgentChatResponse,
    StreamingAgentChatResponse,
)
_NODES = (NodeWithScore, BaseNode)  # made once: a step may hand on hundreds
_MOST_FIELDS, _MOST_TEXTS = 64, 16  # of an event that are looked at
_MOST_NODES = 10_000  # of a list: a lazy one may have no end


class LlamaIndexReader(Reader):
    """Reads LlamaIndex's messages, nodes, responses and events."""

    def message(self, value: Any) -> Message | None:
        """Message: a `ChatMessage`, or one of the base class."""
        if not isinstance(value, ChatMessage):
            return super().message(value)
        texts = tuple(plain(block.text) for block in value.blocks if isinstance(block, TextBlock))
        is_call = any(isinstance(block, ToolCallBlock) for block in value.blocks)
        is_call = is_call or bool(plain(value.additional_kwargs.get("tool_calls")))
        documents = tuple(
            plain(piece.text)
            for block in value.blocks
            if isinstance(block, CitableBlock)
            for piece in block.content
            if isinstance(piece, TextBlock)
        )
        role = _ROLES.get(value.role, "assistant")
        if role == "tool":
            return Message(role, texts + documents, is_call)
        return Message(role, texts, is_call, documents=documents)

    def passage(self, value: Any) -> Passage | None:
        """A node, as the model sees it."""
        if isinstance(value, (NodeWithScore, BaseNode)):
            return passage_of(value)
        return super().passage(value)

    def fields(self, value: Any) -> Mapping[Any, Any] | None:
        """The fields of an event, also those made up on the spot, and what the base class knows."""
        if type(value) is dict:  # which is known at once
            return value
        if isinstance(value, QueryBundle):
            return {"query_str": plain(value.query_str)}
        return fields_of(value) if isinstance(value, Event) else super().fields(value)

    def answer_text(self, value: Any, where: str = "output") -> Found | None:
        """The text that a person reads, of responses too."""
        for kind, read in _ANSWERS:
            if isinstance(value, kind):
                held = plain(read(value))
                # Response classes do not look at what they are given: it may be another response.
                if not isinstance(held, str):
                    return self.answer_text(held, where)
                words = models_words(held)
                return Found(words, where) if words else None
        return super().answer_text(value, where)

    def listed(self, value: Any) -> list[Passage] | None:
        """List as in the base class; nodes without text are skipped."""
        value = plain(value)
        if isinstance(value, (list, tuple)):
            nodes = (NodeWithScore, BaseNode)
            value = [v for v in value if not isinstance(v, nodes) or passage_of(v)]
        return super().listed(value)


_ROLES = {
    MessageRole.USER: "user",
    MessageRole.TOOL: "tool",
    MessageRole.FUNCTION: "tool",
    MessageRole.SYSTEM: "system",
    MessageRole.DEVELOPER: "system",
}
READER = LlamaIndexReader()


# Nodes


def passage_of(node: NodeWithScore | BaseNode) -> Passage | None:
    """Convert a retrieved node to a passage; None if it has no text."""
    # The synthesizers put metadata before the text: claims made from it are in the context.
    text, shown_as = plain(node.get_content(metadata_mode=MetadataMode.LLM)), ""
    if not text.strip():
        return None
    metadata = node.metadata
    if "sql_query" in metadata and "col_keys" in metadata:
        shown_as = plain(node.get_content(metadata_mode=MetadataMode.NONE))
        text = _rows(text, metadata)
    return Passage(text, node.node_id, _score_of(node), metadata, shown_as)


def passages_of(nodes: Iterable[NodeWithScore | BaseNode]) -> list[Passage]:
    """Convert retrieved nodes to passages; those without text are skipped."""
    return [passage for node in nodes if (passage := passage_of(node)) is not None]


def _score_of(node: NodeWithScore | BaseNode) -> float | None:
    score = getattr(node, "score", None)
    return score if type(score) is float else score_in({"score": score})


def nodes_listed(value: Any) -> list[NodeWithScore | BaseNode]:
    """Nodes in a list; the first ones of very many."""
    held = plain(value)
    items = islice(held, _MOST_NODES) if isinstance(held, (list, tuple)) else ()
    return [each for each in items if type(each) is NodeWithScore or isinstance(each, _NODES)]


def _rows(text: str, metadata: Mapping[str, Any]) -> str:
    """Rows of a database in a line with columns and query, without which values are meaningless."""
    columns, rows = metadata["col_keys"], metadata.get("result")
    if isinstance(rows, Sequence) and not isinstance(rows, str) and columns:
        named = (
            ", ".join(f"{column}: {value}" for column, value in zip(columns, row, strict=False))
            for row in rows
        )
        text = "; ".join(named)
    return f"{text} (rows of: {' '.join(metadata['sql_query'].split())})"


def nodes_in(event: Any) -> list[NodeWithScore | BaseNode]:
    """Nodes in the lists of a workflow's event."""
    found: list[NodeWithScore | BaseNode] = []
    # On the request path: `fields_of` asks pydantic for the fields, which takes twice as long.
    given = (*vars(event).values(), *event.to_dict().values()) if isinstance(event, Event) else ()
    for held in map(plain, islice(given, _MOST_FIELDS)):
        if type(held) is list and held and isinstance(held[0], _NODES):
            found += nodes_listed(held)
    return found


def sources_of(payload: Any) -> list[NodeWithScore | BaseNode]:
    """Source nodes of a response, including those of its tools."""
    if isinstance(payload, (AgentChatResponse, StreamingAgentChatResponse)):
        # LlamaIndex fills in the nodes of its tools' answers, unless they are asynchronous streams.
        inner = (sources_of(output.raw_output) for output in payload.sources)
        return nodes_listed(payload.source_nodes) or [node for nodes in inner for node in nodes]
    if isinstance(payload, _RESPONSES):
        return nodes_listed(payload.source_nodes)
    return []


def shown_passages(nodes: Any) -> list[Passage]:
    """Passages of retrieved nodes as plain code puts them into a prompt: without metadata."""
    return [
        Passage(text, each.node_id, _score_of(each), each.metadata)
        for each in nodes_listed(nodes)
        if (text := plain(each.get_content(metadata_mode=MetadataMode.NONE))).strip()
    ]


def fields_handed_on(given: Any) -> Iterator[tuple[str, Any]]:
    """Fields of an event, or arguments, by name; the first of very many."""
    fields = fields_of(given) if isinstance(given, Event) else given
    return islice(fields.items() if isinstance(fields, Mapping) else (), _MOST_FIELDS)


def texts_inside(value: Any) -> Iterator[str]:
    """Texts in a field of an event; the first ones of records."""
    return islice(texts_in(value, 3), _MOST_TEXTS)


def query_of(bound_args: BoundArguments) -> str:
    """Query of a retriever."""
    return text_of(next(iter(bound_args.arguments.values()), ""))


# Questions


def text_of(value: Any) -> str:
    """Text of a question of any type; empty if it has none."""
    if isinstance(value, QueryBundle):
        return str(plain(value.query_str))
    value = plain(value)
    if isinstance(value, str):
        return value
    if isinstance(value, ChatMessage):
        message = READER.message(value)
        return "" if message is None else asked_in(message)
    return ""


def question_of_call(given: Mapping[str, Any]) -> Found:
    """Question in a call of `query` or `chat`: the first argument, of any name."""
    name, value = next(iter(given.items()), ("", None))
    return _asked(value, f"input.{name}") or Found("", f"input.{name}")


def _asked(value: Any, where: str) -> Found | None:
    """Question of any type with its files; None if it has none."""
    if isinstance(value, ChatMessage) and (message := READER.message(value)) is not None:
        return question_in(message.texts, where)
    return question_in((text_of(value),), where)


def question_of_function(given: Mapping[str, Any]) -> Found | None:
    """Question in a call of an application's function; a single word may be a path or an id."""
    found = READER.question(given)
    if found is None or " " in found.text or not found.text.isascii():
        return found
    return found if found.where.rpartition(".")[2] in QUESTION_KEYS else None


def question_of_run(given: Mapping[str, Any]) -> Found:
    """Question in a workflow's start event; empty for a run that resumes another."""
    for key in ("user_msg", "q", "prompt"):
        if found := _asked(given.get(key), f"input.{key}"):
            return found
    history = given.get("chat_history")
    return READER.question({**given, "messages": history} if history else given) or Found("", "")


def inputs_of(bound_args: BoundArguments) -> dict[str, Any]:
    """Inputs of a run by name: for a workflow the fields of its start event."""
    given = bound_args.arguments
    start, others = given.get("start_event"), given.get("kwargs") or {}
    if start is not None and isinstance(start, Event):
        return fields_of(start)
    if "start_event" in given:
        return dict(others)
    return {**{k: v for k, v in given.items() if k != "kwargs"}, **others}


def labels_of(tags: Mapping[str, Any]) -> tuple[str, ...]:
    """Labels of a run from `instrument_tags`.

    `{"tags": ["beta"], "is_trial": True, "tier": "gold"}` gives `beta`, `is_trial`, `tier=gold`.
    """
    labels: list[str] = []
    for key, value in tags.items():
        if key == "tags" and isinstance(value, (list, tuple, set, frozenset)):
            labels += map(str, value)
        elif value is True:
            labels.append(key)
        elif key != "session_id" and isinstance(value, (str, int)) and value is not False:
            labels.append(f"{key}={plain(value)}")
    return tuple(labels)


# Calls of models


def prompt_of(bound_args: BoundArguments) -> list[Message]:
    """Prompt in a call of `chat` or `complete`."""
    given = bound_args.arguments
    messages = given.get("messages")
    if messages is None:
        args, kwargs = given.get("args") or (None,), given.get("kwargs") or {}
        prompt = plain(given.get("prompt", kwargs.get("prompt", args[0])))
        return [Message("user", (prompt,))] if isinstance(prompt, str) else []
    read = (READER.message(message) for message in messages)
    return [message for message in read if message is not None]


def reply_of(response: Any) -> tuple[str, list[str]] | None:
    """Reply of a model, and the texts in its tool calls' arguments; None for a stream."""
    if isinstance(response, CompletionResponse):
        return response.text, []
    if not isinstance(response, ChatResponse):
        return None
    message = response.message
    arguments: list[Any] = [
        block.tool_kwargs for block in message.blocks if isinstance(block, ToolCallBlock)
    ]
    arguments += message.additional_kwargs.get("tool_calls") or ()
    return message.content or "", [text for given in arguments for text in _texts_in(given)]


def cited_blocks(response: ChatResponse, *, is_streamed: bool = False) -> list[dict[str, Any]]:
    """Texts of a reply with the citations of each, as in Anthropic's API.

    LlamaIndex's client puts citations after their text; in a streamed reply, before it.
    """
    blocks: list[dict[str, Any]] = []
    waiting: list[dict[str, Any]] = []
    for block in response.message.blocks:
        if isinstance(block, CitationBlock):
            cited = block.cited_content
            citation = {
                "cited_text": cited.text if isinstance(cited, TextBlock) else "",
                "title": block.title,
                "source": block.source,
                **block.additional_location_info,
            }
            if is_streamed or not blocks:
                waiting.append(citation)
            else:
                blocks[-1]["citations"].append(citation)
        elif isinstance(block, TextBlock):
            # Its texts are lines of the answer.
            text = f"\n{block.text}" if blocks else block.text
            blocks.append({"type": "text", "text": text, "citations": waiting})
            waiting = []
    if blocks:
        blocks[-1]["citations"] += waiting
    return blocks if any(block["citations"] for block in blocks) else []


def metadata_of(response: ChatResponse | CompletionResponse) -> list[Any]:
    """Parts of a response that may hold its provider's search results."""
    held = [response.raw, response.additional_kwargs]
    if not isinstance(response, CompletionResponse):
        held.append(response.message.additional_kwargs)
    return held


def model_name_of(model: Any) -> str | None:
    """Name of a model; None where it has none."""
    with suppress(Exception):  # some look their context window up by the name
        name = model.metadata.model_name
        return name if isinstance(name, str) and name != "unknown" else None
    return None


def _texts_in(value: Any, depth: int = 5) -> list[str]:
    """Texts and numbers inside a tool call's arguments, in any client's format."""
    value = plain(value)
    if isinstance(value, str):
        if value[:1] in "{[":
            try:
                return _texts_in(json.loads(value), depth - 1) if depth else []
            except ValueError:
                pass
        return [value]
    if type(value) in {int, float}:
        return [str(value)]
    if not depth:
        return []
    if isinstance(value, Mapping):
        value = list(value.values())
    elif not isinstance(value, (list, tuple)):
        value = list(getattr(value, "__dict__", {}).values())
    return [text for item in value for text in _texts_in(item, depth - 1)]


# Answers


def output_of(result: Any) -> Any:
    """Output of a run: for a workflow its stop event's result, or the event itself."""
    return result.result if isinstance(result, StopEvent) and result.result is not None else result


def payload_of(result: Any) -> Any:
    """Object with the answer: from a workflow's stop event or a dictionary."""
    if isinstance(result, _RESPONSES):  # asked first: of the other classes it takes much longer
        return result
    if isinstance(result, StopEvent):
        return payload_of(fields_of(result) if result.result is None else result.result)
    if isinstance(result, Mapping):
        result = plain(result)
        held = [result[key] for key in ANSWER_KEYS if result.get(key) is not None]
        # A response, or what a service says of it; what else an answer states is read with it.
        return next((each for each in held if isinstance(each, _RESPONSES)), result)
    return result


def answer_of(payload: Any) -> str:
    """Text that a person reads, also of a structured answer; empty if there is none."""
    if isinstance(payload, Mapping):
        found = READER.answer(payload) or READER.answer_text(payload)
    else:
        found = READER.answer_text(payload)
    return "" if found is None else found.text


def read_answer(response: Any) -> str:
    """Read the whole answer; a stream is read to its end and keeps its text."""
    if isinstance(response, AsyncStreamingResponse):
        return answer_of(asyncio_run(response.get_response()))
    if isinstance(response, StreamingResponse):
        return answer_of(response.get_response())
    if isinstance(response, StreamingAgentChatResponse):
        return "".join(response.response_gen)
    return answer_of(response) or _text_like_a_responses(response)


async def aread_answer(response: Any) -> str:
    """`read_answer` for asynchronous code: a synchronous stream does not block the loop."""
    if isinstance(response, AsyncStreamingResponse):
        return answer_of(await response.get_response())
    if isinstance(response, StreamingResponse):
        return answer_of(await asyncio.to_thread(response.get_response))
    if isinstance(response, StreamingAgentChatResponse):
        if response.achat_stream is None and response.chat_stream is not None:
            return await asyncio.to_thread(read_answer, response)
        return "".join([piece async for piece in response.async_response_gen()])
    return answer_of(response) or _text_like_a_responses(response)


def _text_like_a_responses(response: Any) -> str:
    # Whatever else looks like a response: `evaluate_response` promises no more than that.
    text = getattr(response, "response", None)
    return text if isinstance(text, str) else ""


async def value_of(value: Any) -> Any:
    """Await a value if needed, so that both kinds of calls share their code."""
    return await value if inspect.isawaitable(value) else value


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        return ended.value  # type: ignore[no-any-return]
    raise RuntimeError("a synchronous call must not wait")


def fields_of(event: Any) -> dict[str, Any]:
    """Declared fields of an event, and those added by keyword arguments."""
    declared = {name: getattr(event, name) for name in type(event).model_fields}
    return {**declared, **event.to_dict()} if isinstance(event, Event) else declared


# In this order: some of the classes are pydantic models as well.
_ANSWERS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    (str, lambda text: text),
    ((StreamingResponse, AsyncStreamingResponse), lambda made: made.response_txt),
    (
        (PydanticResponse, Response, AgentChatResponse, StreamingAgentChatResponse),
        lambda made: made.response,
    ),
    (AgentOutput, lambda made: text_of(made.response) or made.structured_response),
    (ChatResponse, lambda made: text_of(made.message)),
    (CompletionResponse, lambda made: made.text),
    (ChatMessage, text_of),
)
