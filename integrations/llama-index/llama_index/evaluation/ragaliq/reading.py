"""Reading question, context and answer off LlamaIndex's objects.

Nothing but strings and numbers leaves this module: nodes and responses are live objects which the
application may change or drop after the event that showed them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from inspect import BoundArguments
from types import UnionType
from typing import Any

from llama_index.core.agent.workflow.workflow_events import AgentOutput
from llama_index.core.async_utils import asyncio_run
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    MessageRole,
)
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.chat_engine.types import AgentChatResponse, StreamingAgentChatResponse
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.workflow import Event, StopEvent

from ragaliq import Passage

__all__ = [
    "answer_of",
    "aread_answer",
    "inputs_of",
    "labels_of",
    "output_of",
    "passages_of",
    "payload_of",
    "question_of_call",
    "question_of_run",
    "read_answer",
    "sources_of",
    "text_of",
]

_QUESTION_KEYS = ("user_msg", "query", "question", "query_str", "input", "message", "q", "prompt")
_ANSWER_KEYS = ("answer", "response", "result", "output", "text")
_WITH_SOURCES = (
    Response,
    PydanticResponse,
    StreamingResponse,
    AsyncStreamingResponse,
)


def passages_of(nodes: Iterable[NodeWithScore | BaseNode]) -> list[Passage]:
    """Copy what matters of retrieved nodes; those without text are left out."""
    passages = []
    for node in nodes:
        # The synthesizers put metadata before the text: claims made from it are in the context.
        text = node.get_content(metadata_mode=MetadataMode.LLM)
        if text.strip():
            passages.append(Passage(text, node.node_id, getattr(node, "score", None)))
    return passages


def labels_of(tags: Mapping[str, Any]) -> tuple[str, ...]:
    """What `instrument_tags` says of a run, as labels.

    `{"tags": ["beta"], "is_trial": True, "tier": "gold"}` gives `beta`, `is_trial`, `tier=gold`.
    """
    labels: list[str] = []
    for key, value in tags.items():
        if key == "tags" and isinstance(value, list | tuple | set | frozenset):
            labels += map(str, value)
        elif value is True:
            labels.append(key)
        elif key != "session_id" and isinstance(value, str | int) and value is not False:
            labels.append(f"{key}={value}")
    return tuple(labels)


def text_of(value: Any) -> str:
    """The text of whatever a question is given as; empty if it has none."""
    if isinstance(value, str):
        return value
    if isinstance(value, QueryBundle):
        return value.query_str
    if isinstance(value, ChatMessage):
        return value.content or ""
    return ""


def question_of_call(bound_args: BoundArguments) -> str:
    """What was asked in a call of `query` or `chat`: the first argument, by whatever name."""
    return text_of(next(iter(bound_args.arguments.values()), None))


def question_of_run(bound_args: BoundArguments) -> str:
    """What was asked in a workflow's start event; empty for a run that resumes another."""
    start = bound_args.arguments.get("start_event")
    fields = _fields_of(start) if start is not None else bound_args.arguments.get("kwargs") or {}
    for key in _QUESTION_KEYS:
        if text := text_of(fields.get(key)):
            return text
    for message in reversed(fields.get("chat_history") or ()):
        if isinstance(message, ChatMessage) and message.role == MessageRole.USER:
            return text_of(message)
    return _only_text(fields)


def inputs_of(bound_args: BoundArguments) -> dict[str, Any]:
    """What a run was called with, by name: of a workflow the fields of its start event."""
    given = bound_args.arguments
    start = given.get("start_event")
    if isinstance(start, Event):
        return _fields_of(start)
    return {**{k: v for k, v in given.items() if k != "kwargs"}, **(given.get("kwargs") or {})}


def output_of(result: Any) -> Any:
    """What a run returned: of a workflow what its stop event brings, or that event itself."""
    return result.result if isinstance(result, StopEvent) and result.result is not None else result


def payload_of(result: Any) -> Any:
    """The object that carries the answer: what a workflow's stop event or a dict holds."""
    if isinstance(result, StopEvent):
        return payload_of(_fields_of(result) if result.result is None else result.result)
    if isinstance(result, Mapping):
        for key in _ANSWER_KEYS:
            if result.get(key) is not None:
                return payload_of(result[key])
        return _only_text(result)
    return result


def answer_of(payload: Any) -> str:
    """The answer as text; structured answers as JSON; empty if there is none."""
    for kind, read in _ANSWERS:
        if isinstance(payload, kind):
            text = read(payload)
            # Response classes do not look at what they are given: it may be another response.
            return text if isinstance(text, str) else answer_of(text)
    return ""


def sources_of(payload: Any) -> list[NodeWithScore]:
    """The nodes a response says it was made from, also those its tools returned."""
    if isinstance(payload, AgentChatResponse | StreamingAgentChatResponse):
        # LlamaIndex fills in the nodes of its tools' answers, unless they are asynchronous streams.
        inner = (sources_of(output.raw_output) for output in payload.sources)
        return list(payload.source_nodes) or [node for nodes in inner for node in nodes]
    if isinstance(payload, _WITH_SOURCES):
        return list(payload.source_nodes or ())
    if not isinstance(payload, AgentOutput):
        return []
    nodes: list[NodeWithScore] = []
    for call in payload.tool_calls:
        output = getattr(getattr(call, "tool_output", None), "raw_output", None)
        if isinstance(output, list):
            nodes += [node for node in output if isinstance(node, NodeWithScore)]
        else:
            nodes += sources_of(output)
    return nodes


def read_answer(response: Any) -> str:
    """The whole answer; a stream is read to its end and keeps its text."""
    if isinstance(response, AsyncStreamingResponse):
        return answer_of(asyncio_run(response.get_response()))
    if isinstance(response, StreamingResponse):
        return answer_of(response.get_response())
    return answer_of(response) or _text_like_a_responses(response)


async def aread_answer(response: Any) -> str:
    """`read_answer` for asynchronous code: a synchronous stream does not block the loop."""
    if isinstance(response, AsyncStreamingResponse):
        return answer_of(await response.get_response())
    if isinstance(response, StreamingResponse):
        return answer_of(await asyncio.to_thread(response.get_response))
    return answer_of(response) or _text_like_a_responses(response)


def _text_like_a_responses(response: Any) -> str:
    # Whatever else looks like a response: `evaluate_response` promises no more than that.
    text = getattr(response, "response", None)
    return text if isinstance(text, str) else ""


def _fields_of(event: Any) -> dict[str, Any]:
    # Declared fields and, for events built from keyword arguments, the ones made up on the spot.
    declared = {name: getattr(event, name) for name in type(event).model_fields}
    return {**declared, **event.to_dict()} if isinstance(event, Event) else declared


def _only_text(fields: Mapping[str, Any]) -> str:
    texts = [value for value in fields.values() if isinstance(value, str)]
    return texts[0] if len(texts) == 1 else ""


def _as_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str) if value else ""
    except (TypeError, ValueError):  # keys that are no texts, or an object that holds itself
        return str(value)


def _model_as_json(made: BaseModel) -> str:
    try:
        return made.model_dump_json()
    except (TypeError, ValueError):  # a field that holds what JSON does not know, an array perhaps
        return _as_json(vars(made))


# In this order: some of the classes are pydantic models as well.
_ANSWERS: tuple[tuple[type | UnionType, Callable[[Any], Any]], ...] = (
    (str, str),
    (PydanticResponse, lambda made: made.response),
    (StreamingResponse | AsyncStreamingResponse, lambda made: made.response_txt),
    (Response | AgentChatResponse | StreamingAgentChatResponse, lambda made: made.response),
    (AgentOutput, lambda made: text_of(made.response) or _as_json(made.structured_response)),
    (ChatResponse, lambda made: text_of(made.message)),
    (CompletionResponse, lambda made: made.text),
    (ChatMessage, text_of),
    (BaseModel, _model_as_json),
)
