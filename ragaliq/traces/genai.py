"""Steps of a run in spans that follow OpenTelemetry's convention for generative AI."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ragaliq.core.draft import Passage
from ragaliq.traces import names
from ragaliq.traces.chat import Message, last_question, message_of, messages_of
from ragaliq.traces.content import content_of
from ragaliq.traces.documents import identifier, number, tool_passages
from ragaliq.traces.span import TraceSpan
from ragaliq.traces.step import Kind, Step

__all__ = ["OPERATIONS", "read_model", "step_of"]

OPERATIONS = {
    "chat": Kind.LLM,
    "text_completion": Kind.LLM,
    "generate_content": Kind.LLM,
    "embeddings": Kind.EMBEDDING,
    "execute_tool": Kind.TOOL,
    "retrieval": Kind.RETRIEVER,
    "vector_db_retrieve": Kind.RETRIEVER,
    "rerank": Kind.RERANKER,
    "invoke_agent": Kind.AGENT,
    "invoke_workflow": Kind.CHAIN,
    "execute_task": Kind.CHAIN,
    "evaluation": Kind.EVALUATOR,
}
_TEXT_KEYS = ("content", "text", "page_content", "document")
_DETAILS = "gen_ai.client.inference.operation.details"
# What the convention's first versions wrote, one event a message.
_ASKED = ("gen_ai.system.message", "gen_ai.user.message", "gen_ai.assistant.message")
_CHOICE = "gen_ai.choice"


def step_of(span: TraceSpan) -> Step:
    """Read a span that has `gen_ai.operation.name`."""
    operation = span.text(names.OPERATION)
    kind = OPERATIONS.get(operation, Kind.OTHER)
    step = Step(span=span, kind=kind, is_cut=span.dropped_attributes > 0)
    if kind in {Kind.RETRIEVER, Kind.RERANKER}:
        step.inputs = span.attributes.get(names.GENAI_QUERY)
        step.passages = _documents(step)
    elif kind is Kind.TOOL:
        result = content_of(span.attributes.get(names.GENAI_TOOL_RESULT), is_json=False)
        step.outputs, step.is_hidden = _told(result.value), result.value is None
    else:
        _read_messages(step)
    return step


def read_model(step: Step) -> None:
    """Read what a model was asked and said off the messages of its span."""
    asked, said = messages_of(step.inputs), messages_of(step.outputs)
    step.asked = last_question(asked) if asked else None
    step.reply = next((m.text for m in said or () if m.text), None)


def _read_messages(step: Step) -> None:
    attributes = dict(step.span.attributes)
    for event in step.span.events:
        if event.name == _DETAILS:
            attributes |= {k: v for k, v in event.attributes.items() if k not in attributes}
    given = content_of(attributes.get(names.GENAI_INPUT), is_json=True)
    said = content_of(attributes.get(names.GENAI_OUTPUT), is_json=True)
    step.inputs, step.outputs = given.value, said.value
    step.is_cut = step.is_cut or given.is_cut or said.is_cut
    if step.inputs is None and step.outputs is None:
        _read_events(step)
    step.is_hidden = step.inputs is None and step.outputs is None
    if step.kind is Kind.LLM:
        read_model(step)


def _read_events(step: Step) -> None:
    asked: list[Any] = []
    said: list[Any] = []
    for event in step.span.events:
        if event.name in _ASKED:
            asked.append({"role": event.name.split(".")[1], **event.attributes})
        elif event.name == _CHOICE:
            held = content_of(event.attributes.get("message"), is_json=True).value
            fields = held if isinstance(held, Mapping) else {"content": held}
            said.append({"role": "assistant", **event.attributes, **fields})
    step.inputs, step.outputs = _said(asked), _said(said)


def _said(events: list[Any]) -> list[Any] | None:
    found: list[Message | None] = [message_of(event) for event in events]
    return [e for e, m in zip(events, found, strict=True) if m is not None] or None


def _told(result: Any) -> Any:
    # An object is what a model is shown as JSON; messages and documents are read as such.
    is_object = isinstance(result, Mapping | list) and not tool_passages(result)
    return json.dumps(result, ensure_ascii=False) if is_object else result


def _documents(step: Step) -> list[Passage] | None:
    held = content_of(step.span.attributes.get(names.GENAI_DOCUMENTS), is_json=True)
    step.is_cut = step.is_cut or held.is_cut
    if not isinstance(held.value, list):
        step.is_hidden = True
        return None
    passages = []
    for item in held.value:
        fields = item if isinstance(item, Mapping) else {"content": item}
        texts = [fields[key] for key in _TEXT_KEYS if isinstance(fields.get(key), str)]
        if texts:
            own_id = identifier(fields.get("id"))
            passages.append(Passage(texts[0], own_id, number(fields.get("score"))))
        else:
            step.is_hidden = True  # ids and scores only
    return None if step.is_hidden and not passages else passages
