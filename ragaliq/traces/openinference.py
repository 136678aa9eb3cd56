"""Steps of a run in spans that follow OpenInference's convention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragaliq.core.draft import Passage
from ragaliq.traces import names
from ragaliq.traces.chat import message_of
from ragaliq.traces.content import Content, content_of, numbered
from ragaliq.traces.documents import documents_of, identifier, number, passages_of, tool_passages
from ragaliq.traces.shapes import answer_of
from ragaliq.traces.span import TraceSpan
from ragaliq.traces.step import Kind, Step

__all__ = ["step_of"]

_OTHERS = {"GUARDRAIL": Kind.OTHER, "UNKNOWN": Kind.CHAIN}

_TYPED = (*names.LANGCHAIN_SCOPES, names.LLAMA_INDEX_SCOPE)


def step_of(span: TraceSpan) -> Step:
    """Read a span that has `openinference.span.kind`."""
    inputs, outputs = _content(span, "input"), _content(span, "output")
    step = Step(
        span=span,
        kind=_kind(span),
        inputs=inputs.value,
        outputs=outputs.value,
        is_hidden=inputs.is_hidden or outputs.is_hidden,
        is_cut=inputs.is_cut or outputs.is_cut or span.dropped_attributes > 0,
        cut_at=frozenset(len(each.value) for each in (inputs, outputs) if each.is_cut),
    )
    if step.kind is Kind.RETRIEVER:
        step.passages = _documents(step, names.DOCUMENTS)
    elif step.kind is Kind.RERANKER:
        step.passages = _documents(step, names.RERANKED)
        step.given = _documents(step, names.RERANKED_FROM) or []
    elif step.kind is Kind.LLM:
        _read_model(step)
    elif step.kind is Kind.TOOL and span.scope not in _TYPED:
        _read_tool(step)
    elif step.kind is Kind.PROMPT and not isinstance(step.inputs, Mapping):
        variables = content_of(span.attributes.get(names.PROMPT_VARIABLES), is_json=True)
        step.inputs = variables.value if isinstance(variables.value, Mapping) else step.inputs
    return step


def _kind(span: TraceSpan) -> Kind:
    named = span.text(names.KIND).upper()
    if span.scope == names.LLAMA_INDEX_SCOPE and span.name.endswith(names.HISTORY_WRITERS):
        return Kind.OTHER  # marked as a model's for the stream that they read
    try:
        return Kind(named)
    except ValueError:
        return _OTHERS.get(named, Kind.OTHER)


def _content(span: TraceSpan, side: str) -> Content:
    held = span.attributes.get(f"{side}.value")
    mime = span.text(f"{side}.mime_type")
    # Several instrumentations leave the type out.
    is_typed = bool(mime) or span.scope in _TYPED
    is_json = mime == "application/json" or (not is_typed and _looks_like_json(held))
    if held == "null" and span.scope in names.LANGCHAIN_SCOPES:
        return Content()  # how a chain that returned nothing is written
    return content_of(held, is_json=is_json)


def _looks_like_json(held: object) -> bool:
    return isinstance(held, str) and held[:1] in {"{", "["} and held.rstrip()[-1:] in {"}", "]"}


def _documents(step: Step, prefix: str) -> list[Passage] | None:
    returned = step.outputs.get("documents") if isinstance(step.outputs, Mapping) else step.outputs
    listed = documents_of(returned) if prefix != names.RERANKED_FROM else None
    if listed:
        # LangChain's, with the ids that the attributes leave out.
        return passages_of(listed)
    whole = content_of(step.span.attributes.get(prefix), is_json=True).value
    step.is_cut = step.is_cut or isinstance(whole, str)
    passages = []
    for item in numbered(step.span, prefix):
        text = item.get("document.content", item.get("content"))
        if text == names.REDACTED:
            step.is_hidden = True
        elif isinstance(text, str):
            own_id = identifier(item.get("document.id", item.get("id")))
            score = number(item.get("document.score", item.get("score")))
            passages.append(Passage(text, own_id, score))
        else:
            step.is_hidden = step.is_hidden or "document.id" in item
    return passages


def _read_tool(step: Step) -> None:
    """Take an object for the text it is written as, as the model is shown it."""
    if isinstance(step.outputs, Mapping | list) and step.outputs:
        is_told = message_of(step.outputs) is not None or tool_passages(step.outputs)
        step.outputs = step.outputs if is_told else step.span.attributes.get("output.value")


def _read_model(step: Step) -> None:
    asked = [m for m in map(_message, numbered(step.span, names.INPUT_MESSAGES)) if m]
    said = [m for m in map(_message, numbered(step.span, names.OUTPUT_MESSAGES)) if m]
    step.asked = next((text for role, text in reversed(asked) if role == "user"), None)
    if step.asked is None and isinstance(step.inputs, str):
        step.asked = step.inputs
    step.reply = said[0][1] if said else _generation(step.outputs)


def _message(item: Mapping[str, object]) -> tuple[str, str] | None:
    role = item.get("message.role", item.get("role"))
    text = item.get("message.content", item.get("content"))
    if not isinstance(text, str):
        parts = [held for name, held in item.items() if name.endswith(".message_content.text")]
        text = "".join(part for part in parts if isinstance(part, str))
    if not isinstance(role, str):
        return None
    known = message_of({"role": role, "content": text})
    return None if known is None else (known.role, known.text)


def _generation(outputs: Any) -> str | None:
    """The reply in a LangChain result, or whatever else a model's span holds as its output."""
    generations = outputs.get("generations") if isinstance(outputs, Mapping) else None
    first: Any = generations
    while isinstance(first, list) and first:
        first = first[0]
    if isinstance(first, Mapping):
        message = message_of(first.get("message"))
        text = message.text if message is not None else first.get("text")
        return text if isinstance(text, str) and text.strip() else None
    return answer_of(outputs)
