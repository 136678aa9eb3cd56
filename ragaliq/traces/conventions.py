"""A span as a step of a run, whatever convention it follows.

Each convention says in its own attributes what a span is, what it was given and what it returned,
and where a call of a model keeps its messages and its reply. One small reader for each:
OpenInference; OpenTelemetry's generative AI convention, as attributes or events; OpenLLMetry with
its numbered prompts and its vector stores; the AI SDK of Vercel; MLflow; Langfuse.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ragaliq.capture.texts import Message
from ragaliq.core.draft import Passage
from ragaliq.traces.messages import (
    READER,
    arguments_of,
    decoded,
    hit,
    identifier,
    number,
    results_of,
)
from ragaliq.traces.span import TraceSpan

__all__ = ["LANGCHAIN_SCOPES", "LLAMA_INDEX_SCOPE", "MARKS", "Kind", "Step", "kind_of", "step_of"]

SESSIONS = ("session.id", "gen_ai.conversation.id", "langfuse.session.id")
RESPONSE_ID = "gen_ai.response.id"

# Who made a span.
LANGCHAIN_SCOPES = (
    "openinference.instrumentation.langchain",
    "opentelemetry.instrumentation.langchain",
    "opentelemetry.instrumentation.genai.langchain",
)
LLAMA_INDEX_SCOPE = "openinference.instrumentation.llama_index"
OWN_SCOPE = "ragaliq"
_TYPED = (*LANGCHAIN_SCOPES, LLAMA_INDEX_SCOPE)

REDACTED = "__REDACTED__"
"""What OpenInference writes in place of content that was switched off."""


class Kind(Enum):
    """The part a step plays."""

    CHAIN = "CHAIN"
    AGENT = "AGENT"
    RETRIEVER = "RETRIEVER"
    RERANKER = "RERANKER"
    LLM = "LLM"
    TOOL = "TOOL"
    PROMPT = "PROMPT"
    EMBEDDING = "EMBEDDING"
    EVALUATOR = "EVALUATOR"
    OTHER = "OTHER"
    NONE = "NONE"  # not a step of a run: the web request's span, a database's, ...


@dataclass(slots=True, kw_only=True, eq=False)
class Step:
    """One step of a run.

    Attributes:
        span: Where it is from.
        kind: What it does.
        convention: By which convention it was read.
        inputs: What it was given.
        outputs: What it returned.
        passages: What a retriever or reranker returned; None where the span does not say.
        given: What a reranker chose from.
        messages: Of a model, its prompt.
        reply: Of a model, what it said; None where the span does not say.
        also: Of a model, the texts in the arguments of tools that it called.
        follows: Whether it is a later step of a sequence; None where the span does not say.
        is_first: Whether its framework says that it is the first of a run, whatever it is inside.
        is_hidden: Whether content of it was switched off.
        is_cut: Whether content of it is incomplete.
        cut_at: The lengths at which JSON in it stops before its end: texts of such a length may
            have been cut as well.
        children: The steps inside it, in the order they started.
        index: Its place among the steps of its root, each before those inside it.
        last: The highest place inside it.
    """

    span: TraceSpan
    kind: Kind
    convention: str = ""
    inputs: Any = None
    outputs: Any = None
    passages: list[Passage] | None = None
    given: list[Passage] = field(default_factory=list)
    messages: Sequence[Message] = ()
    reply: str | None = None
    also: tuple[str, ...] = ()
    follows: bool | None = None
    is_first: bool = False
    is_hidden: bool = False
    is_cut: bool = False
    cut_at: frozenset[int] = frozenset()
    children: list[Step] = field(default_factory=list)
    index: int = 0
    last: int = 0

    @property
    def asked(self) -> str | None:
        """Of a model, the last message of the user."""
        return next((m.text for m in reversed(self.messages) if m.role == "user" and m.text), None)


def step_of(span: TraceSpan) -> Step:
    """Read a span; one that follows no known convention is of the kind `NONE`."""
    if span.scope == OWN_SCOPE or span.scope.startswith(OWN_SCOPE + "."):
        return Step(span=span, kind=Kind.EVALUATOR)
    for mark, read in _READERS.items():
        if mark in span.attributes:
            return read(span)
    if span.events and any(event.name == _DB_RESULT for event in span.events):
        return _vector_store(span)
    return Step(span=span, kind=Kind.NONE)


# --- values of attributes -------------------------------------------------------------------------

_MOST_NUMBERED = 10_000
"""A list of more is not a list of documents or messages."""


class _Content:
    """What an attribute holds: a text, or what the JSON in it stands for; None for nothing."""

    __slots__ = ("is_cut", "is_hidden", "value")

    def __init__(self, held: object, *, is_json: bool = True) -> None:
        self.is_hidden = held == REDACTED
        self.is_cut = False
        self.value: Any = None if self.is_hidden else held
        if is_json and isinstance(self.value, str):
            try:
                self.value = json.loads(self.value)
            except RecursionError:
                self.is_cut = True  # nobody can read it
            except ValueError:
                # A text that begins like JSON is taken for some: it must also have ended like it.
                start, end = self.value.lstrip()[:1], self.value.rstrip()[-1:]
                self.is_cut = start in {"{", "["} and end not in {"}", "]"}


def numbered(span: TraceSpan, prefix: str) -> list[dict[str, object]]:
    """A list whose items are spread over attributes: `prefix.0.name`, `prefix.1.name`, ...

    Numbers that are missing leave no gap.
    """
    items: dict[int, dict[str, object]] = {}
    start = prefix + "."
    for name, value in span.attributes.items():
        if not name.startswith(start):
            continue
        digits, dot, rest = name[len(start) :].partition(".")
        if dot and digits.isdecimal() and len(digits) < 8 and len(items) < _MOST_NUMBERED:
            items.setdefault(int(digits), {})[rest] = value
    if items:
        return [items[index] for index in sorted(items)]
    # The same list where somebody kept it in one attribute, as JSON or as it is.
    whole = _Content(span.attributes.get(prefix)).value
    found = whole if isinstance(whole, list) else []
    return [_flat(item) for item in found[:_MOST_NUMBERED] if isinstance(item, Mapping)]


def _flat(item: Mapping[str, Any]) -> dict[str, object]:
    """`{"document": {"content": ...}}` as `{"document.content": ...}`."""
    flat: dict[str, object] = {}
    for name, value in item.items():
        if isinstance(value, Mapping) and name in {"document", "message"}:
            flat |= {f"{name}.{inner}": held for inner, held in value.items()}
        else:
            flat[str(name)] = value
    return flat


def _set_model(step: Step, asked: Any, said: Any) -> None:
    """What a model was asked and said, from messages in whatever format."""
    if isinstance(asked, str):
        asked = [{"role": "user", "content": asked}]
    step.messages = READER.conversation(asked)
    replies = [said] if isinstance(said, Mapping) else said
    if isinstance(replies, str):
        step.reply = replies
        return
    listed = replies if isinstance(replies, list) else ()
    found = [message for each in listed if (message := READER.message(each)) is not None]
    texts = (message.text for message in found if message.role != "tool")
    step.reply = next((text for text in texts if text), "" if found else None)
    step.also = tuple(text for each in listed for text in arguments_of(each))


# --- OpenInference --------------------------------------------------------------------------------

_HISTORY_WRITERS = ("write_response_to_history", "awrite_response_to_history")
_OPENINFERENCE_KINDS = {kind.value: kind for kind in Kind} | {"UNKNOWN": Kind.CHAIN}


def _openinference(span: TraceSpan) -> Step:
    kind = kind_of(span.attributes)
    if span.scope == LLAMA_INDEX_SCOPE and span.name.endswith(_HISTORY_WRITERS):
        kind = Kind.OTHER  # marked as a model's for the stream that they read
    inputs, outputs = _side(span, "input"), _side(span, "output")
    step = Step(
        span=span,
        kind=kind,
        convention="openinference",
        inputs=inputs.value,
        outputs=outputs.value,
        is_hidden=inputs.is_hidden or outputs.is_hidden,
        is_cut=inputs.is_cut or outputs.is_cut or span.dropped_attributes > 0,
        cut_at=frozenset(len(each.value) for each in (inputs, outputs) if each.is_cut),
    )
    if kind is Kind.RETRIEVER:
        step.passages = _openinference_documents(step, "retrieval.documents", outputs.value)
    elif kind is Kind.RERANKER:
        step.passages = _openinference_documents(step, "reranker.output_documents", outputs.value)
        step.given = _openinference_documents(step, "reranker.input_documents", None)
    elif kind is Kind.LLM:
        _openinference_model(step)
    elif kind is Kind.PROMPT and not isinstance(step.inputs, Mapping):
        variables = _Content(span.attributes.get(PROMPT_VARIABLES)).value
        step.inputs = variables if isinstance(variables, Mapping) else step.inputs
    return step


def _side(span: TraceSpan, side: str) -> _Content:
    held = span.attributes.get(f"{side}.value")
    mime = span.text(f"{side}.mime_type")
    # Several instrumentations leave the type out.
    is_typed = bool(mime) or span.scope in _TYPED
    is_json = mime == "application/json" or (not is_typed and _looks_like_json(held))
    if held == "null" and span.scope in LANGCHAIN_SCOPES:
        return _Content(None)  # how a chain that returned nothing is written
    return _Content(held, is_json=is_json)


def _looks_like_json(held: object) -> bool:
    return isinstance(held, str) and held[:1] in {"{", "["} and held.rstrip()[-1:] in {"}", "]"}


def _openinference_documents(step: Step, prefix: str, outputs: Any) -> list[Passage]:
    returned = outputs.get("documents") if isinstance(outputs, Mapping) else outputs
    listed = READER.document_list(returned)
    if listed:
        return listed  # LangChain's, with the ids that the attributes leave out
    step.is_cut = step.is_cut or isinstance(_Content(step.span.attributes.get(prefix)).value, str)
    passages = []
    for item in numbered(step.span, prefix):
        text = item.get("document.content", item.get("content"))
        if text == REDACTED:
            step.is_hidden = True
        elif isinstance(text, str):
            own_id = identifier(item.get("document.id", item.get("id")))
            score = number(item.get("document.score", item.get("score")))
            metadata = decoded(item.get("document.metadata"))
            known = metadata if isinstance(metadata, Mapping) and metadata else None
            passages.append(Passage(text, own_id, score, known))
        else:
            step.is_hidden = step.is_hidden or "document.id" in item
    return passages


def _openinference_model(step: Step) -> None:
    asked = numbered(step.span, "llm.input_messages")
    said = numbered(step.span, "llm.output_messages")
    prompts = [item.get("prompt.text") for item in numbered(step.span, "llm.prompts")]
    _set_model(
        step,
        list(map(_openinference_message, asked)) or "\n".join(_texts(prompts)) or step.inputs,
        list(map(_openinference_message, said)),
    )
    if step.reply is None:
        _set_reply(step, step.outputs)


def _openinference_message(item: Mapping[str, object]) -> dict[str, object]:
    text = item.get("message.content", item.get("content"))
    if not text:
        text = "".join(_texts(v for k, v in item.items() if k.endswith(".message_content.text")))
    calls = [v for name, v in item.items() if name.endswith("tool_call.function.arguments")]
    return {
        "role": item.get("message.role", item.get("role")),
        "content": text,
        "tool_calls": [{"function": {"arguments": each}} for each in calls],
    }


def _set_reply(step: Step, outputs: Any) -> None:
    """The reply in a LangChain or OpenAI result, or whatever else a span holds as its output."""
    first: Any = None
    if isinstance(outputs, Mapping):
        first = outputs.get("generations", outputs.get("choices"))
    while isinstance(first, list) and first:
        first = first[0]
    if isinstance(first, Mapping):
        held = first.get("message", first)
        message = READER.message(held)
        text = message.text if message is not None else first.get("text")
        step.reply = text if isinstance(text, str) and text.strip() else None
        step.also = step.also or tuple(arguments_of(held))
    else:
        found = READER.answer(outputs)
        step.reply = found.text if found is not None else None


def _texts(values: Any) -> Iterator[str]:
    return (value for value in values if isinstance(value, str))


# --- OpenTelemetry's convention for generative AI -------------------------------------------------

OPERATIONS = {
    "chat": Kind.LLM,
    "text_completion": Kind.LLM,
    "generate_content": Kind.LLM,
    "embeddings": Kind.EMBEDDING,
    "execute_tool": Kind.TOOL,
    "retrieval": Kind.RETRIEVER,
    "vector_db_retrieve": Kind.RETRIEVER,
    "search_memory": Kind.RETRIEVER,
    "rerank": Kind.RERANKER,
    "invoke_agent": Kind.AGENT,
    "invoke_workflow": Kind.CHAIN,
    "execute_task": Kind.CHAIN,
    "create_agent": Kind.OTHER,
    "evaluation": Kind.EVALUATOR,
}
"""Others, which the convention may add, are chains: what is inside them is looked at."""

_DETAILS = "gen_ai.client.inference.operation.details"
# What the convention's first versions wrote, one event a message.
_ASKED = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_CHOICE = "gen_ai.choice"
# And what Spring AI writes, one event a side.
_PROMPT_EVENT, _COMPLETION_EVENT = "gen_ai.content.prompt", "gen_ai.content.completion"


def _genai(span: TraceSpan) -> Step:
    kind = kind_of(span.attributes)
    step = Step(span=span, kind=kind, convention="genai", is_cut=span.dropped_attributes > 0)
    if kind in {Kind.RETRIEVER, Kind.RERANKER}:
        step.inputs = span.attributes.get("gen_ai.retrieval.query.text")
        step.passages = _genai_documents(step)
    elif kind is Kind.TOOL:
        step.outputs = span.attributes.get("gen_ai.tool.call.result")
        if step.outputs is None:
            results = [e.attributes for e in span.events if e.name in {_CHOICE, *_ASKED}]
            step.outputs = results[-1].get("message") if results else None
        step.is_hidden = step.outputs is None
    else:
        _genai_messages(step)
    return step


def _genai_messages(step: Step) -> None:
    attributes = dict(step.span.attributes)
    for event in step.span.events:
        if event.name == _DETAILS:
            attributes |= {k: v for k, v in event.attributes.items() if k not in attributes}
    given = _Content(attributes.get("gen_ai.input.messages", attributes.get(_ALL_MESSAGES)))
    said = _Content(attributes.get("gen_ai.output.messages", attributes.get("final_result")))
    step.inputs, step.outputs = given.value, said.value
    step.is_cut = step.is_cut or given.is_cut or said.is_cut
    if step.inputs is None and step.outputs is None:
        _genai_events(step)
    if step.inputs is None and step.outputs is None:
        # Before there was one attribute for all messages; OpenLLMetry's way.
        step.inputs = numbered(step.span, "gen_ai.prompt") or attributes.get("gen_ai.prompt")
        step.outputs = numbered(step.span, "gen_ai.completion") or attributes.get(
            "gen_ai.completion"
        )
    step.is_hidden = step.inputs is None and step.outputs is None
    if step.kind is Kind.LLM:
        asked = step.inputs
        system = _Content(attributes.get("gen_ai.system_instructions")).value
        if isinstance(asked, list) and isinstance(system, list):
            asked = [{"role": "system", "content": system}, *asked]
        _set_model(step, asked, step.outputs)


_ALL_MESSAGES = "pydantic_ai.all_messages"


def _genai_events(step: Step) -> None:
    asked: list[Any] = []
    said: list[Any] = []
    for event in step.span.events:
        if event.name in _ASKED:
            asked.append({"role": _ASKED[event.name], **_parsed(event.attributes)})
        elif event.name == _CHOICE:
            held = _Content(event.attributes.get("message")).value
            fields = held if isinstance(held, Mapping) else {"content": held}
            said.append({"role": "assistant", **_parsed(event.attributes), **fields})
        elif event.name == _PROMPT_EVENT:
            asked.append({"role": "user", "content": event.attributes.get("gen_ai.prompt")})
        elif event.name == _COMPLETION_EVENT:
            held = event.attributes.get("gen_ai.completion")
            said.append({"role": "assistant", "content": held})
    step.inputs = [each for each in asked if READER.message(each) is not None] or None
    step.outputs = [each for each in said if READER.message(each) is not None] or None


def _parsed(attributes: Mapping[str, object]) -> dict[str, Any]:
    """An event's attributes, with the content blocks that Strands and others write as JSON."""
    held = dict(attributes)
    content = decoded(held.get("content"))
    return held | {"content": content} if isinstance(content, list) else held


def _genai_documents(step: Step) -> list[Passage] | None:
    held = _Content(step.span.attributes.get("gen_ai.retrieval.documents"))
    step.is_cut = step.is_cut or held.is_cut
    if not isinstance(held.value, list):
        step.is_hidden = True
        return None
    passages = []
    for item in held.value:
        found = Passage(item) if isinstance(item, str) else hit(item)
        if found is None:
            step.is_hidden = True  # ids and scores only
        else:
            passages.append(found)
    return None if step.is_hidden and not passages else passages


# --- OpenLLMetry ----------------------------------------------------------------------------------

_TRACELOOP_KINDS = {
    "workflow": Kind.CHAIN,
    "agent": Kind.AGENT,
    "task": Kind.CHAIN,
    "tool": Kind.TOOL,
}
_SEQUENCE_STEP = "seq:step:"
_DB_RESULT = "db.query.result"


def _traceloop(span: TraceSpan) -> Step:
    kind = kind_of(span.attributes)
    if kind is Kind.LLM or "gen_ai.input.messages" in span.attributes:
        is_cut = span.dropped_attributes > 0
        step = Step(span=span, kind=kind, convention="traceloop", is_cut=is_cut)
        _genai_messages(step)
        return step
    inputs = _Content(span.attributes.get(TRACELOOP_INPUT))
    outputs = _Content(span.attributes.get(TRACELOOP_OUTPUT))
    step = Step(
        span=span,
        kind=kind,
        convention="traceloop",
        inputs=_inner(inputs.value, "inputs"),
        outputs=_inner(outputs.value, "outputs"),
        is_hidden=inputs.value is None and outputs.value is None,
        is_cut=inputs.is_cut or outputs.is_cut or span.dropped_attributes > 0,
    )
    if isinstance(inputs.value, Mapping):
        _read_call(step, inputs.value)
    if step.kind is Kind.RETRIEVER:
        held = step.outputs.get("documents") if isinstance(step.outputs, Mapping) else step.outputs
        step.passages = READER.listed(held)
    return step


def _read_call(step: Step, call: Mapping[str, Any]) -> None:
    tags = call.get("tags")
    if isinstance(tags, list):
        step.is_first = step.span.text(TRACELOOP_KIND) == "workflow"
        step.follows = any(isinstance(t, str) and t.startswith(_SEQUENCE_STEP) for t in tags)
    extra = call.get("kwargs")
    if isinstance(extra, Mapping) and extra.get("run_type") == "prompt":
        step.kind = Kind.PROMPT


def _inner(value: Any, name: str) -> Any:
    """What a call was given or returned, out of the record that Traceloop makes of it."""
    if not isinstance(value, Mapping):
        return value
    if name in value:
        return value[name]
    given, named = value.get("args"), value.get("kwargs")
    if isinstance(given, list) and isinstance(named, Mapping):  # a decorated function
        return named or (given[0] if len(given) == 1 else given)
    return value


def _vector_store(span: TraceSpan) -> Step:
    """A vector store's search, with an event for each hit."""
    passages, is_hidden = [], False
    for event in span.events:
        if event.name == _DB_RESULT:
            held = {k.removeprefix(_DB_RESULT + "."): v for k, v in event.attributes.items()}
            text = held.get("document")
            if isinstance(text, str):
                own_id, score = identifier(held.get("id")), number(held.get("score"))
                passages.append(Passage(text, own_id, score))
            else:
                is_hidden = True
    return Step(
        span=span,
        kind=Kind.RETRIEVER,
        convention="traceloop",
        passages=None if is_hidden and not passages else passages,
        is_hidden=is_hidden,
    )


# --- the AI SDK of Vercel -------------------------------------------------------------------------

_AI_MODELS = ("doGenerate", "doStream")


def _vercel(span: TraceSpan) -> Step:
    attributes = span.attributes
    kind = kind_of(attributes)
    said = attributes.get("ai.response.text") or attributes.get("ai.response.object")
    step = Step(span=span, kind=kind, convention="vercel", is_cut=span.dropped_attributes > 0)
    if kind is Kind.TOOL:
        step.inputs = _Content(attributes.get("ai.toolCall.args")).value
        step.outputs = attributes.get("ai.toolCall.result")
    elif kind is Kind.LLM:
        _set_model(step, _Content(attributes.get("ai.prompt.messages")).value, said)
        step.also = tuple(arguments_of(decoded(attributes.get("ai.response.toolCalls"))))
        step.reply = step.reply if step.reply is not None or not step.also else ""
        step.outputs = said
    elif kind is Kind.CHAIN:
        step.inputs, step.outputs = _Content(attributes.get("ai.prompt")).value, said
    step.is_hidden = step.inputs is None and step.outputs is None and not step.messages
    return step


# --- MLflow and Langfuse --------------------------------------------------------------------------

_MLFLOW_KINDS = {
    "CHAT_MODEL": Kind.LLM,
    "LLM": Kind.LLM,
    "RETRIEVER": Kind.RETRIEVER,
    "RERANKER": Kind.RERANKER,
    "TOOL": Kind.TOOL,
    "AGENT": Kind.AGENT,
    "EMBEDDING": Kind.EMBEDDING,
    "PARSER": Kind.OTHER,
    "EVALUATOR": Kind.EVALUATOR,
    "GENERATION": Kind.LLM,
    "GUARDRAIL": Kind.OTHER,
    "EVENT": Kind.OTHER,
}
"""By their names in capitals; others are chains."""


def _mlflow(span: TraceSpan) -> Step:
    return _plain(
        span, kind_of(span.attributes), "mlflow", "mlflow.spanInputs", "mlflow.spanOutputs"
    )


def _langfuse(span: TraceSpan) -> Step:
    kind = kind_of(span.attributes)
    prefix = "langfuse.observation."
    step = _plain(span, kind, "langfuse", f"{prefix}input", f"{prefix}output")
    if step.inputs is None and step.outputs is None and span.parent_id is None:
        step.inputs = _Content(span.attributes.get("langfuse.trace.input")).value
        step.outputs = _Content(span.attributes.get("langfuse.trace.output")).value
    return step


def _plain(span: TraceSpan, kind: Kind, convention: str, given: str, said: str) -> Step:
    """A span with what it was given and returned in two attributes, as JSON."""
    inputs, outputs = _Content(span.attributes.get(given)), _Content(span.attributes.get(said))
    step = Step(
        span=span,
        kind=kind,
        convention=convention,
        inputs=inputs.value,
        outputs=outputs.value,
        is_hidden=inputs.value is None and outputs.value is None,
        is_cut=inputs.is_cut or outputs.is_cut or span.dropped_attributes > 0,
    )
    if kind in {Kind.RETRIEVER, Kind.RERANKER}:
        step.passages = None if outputs.value is None else results_of(outputs.value)
    elif kind is Kind.LLM:
        _set_model(step, inputs.value, None)
        if isinstance(outputs.value, str):
            step.reply = outputs.value
        else:
            _set_reply(step, outputs.value)
    return step


# --- which of them --------------------------------------------------------------------------------

KIND = "openinference.span.kind"
OPERATION = "gen_ai.operation.name"
TRACELOOP_KIND, TRACELOOP_INPUT = "traceloop.span.kind", "traceloop.entity.input"
TRACELOOP_OUTPUT = "traceloop.entity.output"
VERCEL = "ai.operationId"
MLFLOW = "mlflow.spanType"
LANGFUSE = "langfuse.observation.type"
PROMPT_VARIABLES = "llm.prompt_template.variables"
METADATA = "metadata"

_READERS: dict[str, Callable[[TraceSpan], Step]] = {
    KIND: _openinference,
    TRACELOOP_KIND: _traceloop,
    TRACELOOP_INPUT: _traceloop,
    "llm.request.type": _traceloop,
    OPERATION: _genai,
    VERCEL: _vercel,
    MLFLOW: _mlflow,
    LANGFUSE: _langfuse,
}
MARKS = frozenset(_READERS)
"""Attributes that only spans of language model work have."""


def kind_of(attributes: Mapping[str, object]) -> Kind:
    """The part that a span with one of the marks plays, by its attributes."""
    held = attributes.get(KIND)
    if held is not None:
        return _OPENINFERENCE_KINDS.get(str(held).upper(), Kind.OTHER)
    held, traceloop = attributes.get(OPERATION), attributes.get(TRACELOOP_KIND)
    if held is not None and (traceloop is None or held in OPERATIONS):
        return OPERATIONS.get(str(held), Kind.CHAIN)
    if attributes.get("llm.request.type") in ("chat", "completion"):
        return Kind.LLM
    if traceloop is not None:
        return _TRACELOOP_KINDS.get(str(traceloop), Kind.OTHER)
    held = attributes.get(VERCEL)
    if held is not None:
        return _vercel_kind(str(held))
    held = attributes.get(MLFLOW, attributes.get(LANGFUSE))
    return Kind.OTHER if held is None else _MLFLOW_KINDS.get(str(decoded(held)).upper(), Kind.CHAIN)


def _vercel_kind(operation: str) -> Kind:
    if operation.startswith("ai.embed"):
        return Kind.EMBEDDING
    if operation.endswith(_AI_MODELS):
        return Kind.LLM
    return Kind.TOOL if operation == "ai.toolCall" else Kind.CHAIN
