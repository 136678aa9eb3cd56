"""Steps of a run in spans as OpenLLMetry writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragaliq.traces import names
from ragaliq.traces.content import Content, content_of, numbered
from ragaliq.traces.documents import listed_passages
from ragaliq.traces.genai import OPERATIONS, read_model
from ragaliq.traces.genai import step_of as genai_step
from ragaliq.traces.span import TraceSpan
from ragaliq.traces.step import Kind, Step

__all__ = ["step_of"]

_KINDS = {
    "workflow": Kind.CHAIN,
    "agent": Kind.AGENT,
    "task": Kind.CHAIN,
    "tool": Kind.TOOL,
}
_SEQUENCE_STEP = "seq:step:"


def step_of(span: TraceSpan) -> Step:
    """Read a span that has Traceloop's attributes."""
    kind = _kind(span)
    if kind is Kind.LLM:
        return _model(span)
    inputs = content_of(span.attributes.get(names.TRACELOOP_INPUT), is_json=True)
    outputs = content_of(span.attributes.get(names.TRACELOOP_OUTPUT), is_json=True)
    step = Step(
        span=span,
        kind=kind,
        inputs=_inner(inputs, "inputs"),
        outputs=_inner(outputs, "outputs"),
        is_hidden=inputs.value is None and outputs.value is None,
        is_cut=inputs.is_cut or outputs.is_cut or span.dropped_attributes > 0,
    )
    if isinstance(inputs.value, Mapping):
        _read_call(step, inputs.value)
    if step.kind is Kind.RETRIEVER:
        held = step.outputs.get("documents") if isinstance(step.outputs, Mapping) else step.outputs
        step.passages = listed_passages(held)
    return step


def _kind(span: TraceSpan) -> Kind:
    operation = OPERATIONS.get(span.text(names.OPERATION))
    return operation or _KINDS.get(span.text(names.TRACELOOP_KIND), Kind.OTHER)


def _read_call(step: Step, call: Mapping[str, Any]) -> None:
    tags = call.get("tags")
    if isinstance(tags, list):
        step.is_first = step.span.text(names.TRACELOOP_KIND) == "workflow"
        step.follows = any(isinstance(t, str) and t.startswith(_SEQUENCE_STEP) for t in tags)
    extra = call.get("kwargs")
    if isinstance(extra, Mapping) and extra.get("run_type") == "prompt":
        step.kind = Kind.PROMPT


def _inner(content: Content, name: str) -> Any:
    """What a call was given or returned, out of the record that Traceloop makes of it."""
    value = content.value
    if not isinstance(value, Mapping):
        return value
    if name in value:
        return value[name]
    given, named = value.get("args"), value.get("kwargs")
    if isinstance(given, list) and isinstance(named, Mapping):  # a decorated function
        return named or (given[0] if len(given) == 1 else given)
    return value


def _model(span: TraceSpan) -> Step:
    step = genai_step(span)
    if step.inputs is None and step.outputs is None:
        # Before there was one attribute for all messages.
        step.inputs = numbered(span, "gen_ai.prompt") or None
        step.outputs = numbered(span, "gen_ai.completion") or None
        read_model(step)
        step.is_hidden = step.inputs is None and step.outputs is None
    return step
