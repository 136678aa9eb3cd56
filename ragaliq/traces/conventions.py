"""Reading of spans as steps of a run, by any convention.

A convention is data: a `Convention` names the attributes of its spans, the kinds of step by their
values, and the attributes with inputs and outputs, a search's documents, a model's prompt and its
reply. If attributes are not enough, because values are spread over several or written for people,
the record names a small reader.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

from ragaliq.capture.provided import passages_inside, provided_passages
from ragaliq.capture.texts import Message
from ragaliq.core.passages import Passage
from ragaliq.traces import llama_index
from ragaliq.traces.mapping import SpanRule, rule_for
from ragaliq.traces.messages import (
    PROMPT_VARIABLES,
    READER,
    arguments_of,
    asked_last,
    completion_prompt,
    decoded,
    hit,
    is_understood,
    results_of,
)
from ragaliq.traces.span import SpanEvent, TraceSpan

KIND = "openinference.span.kind"
OPERATION = "gen_ai.operation.name"
TRACELOOP_KIND, TRACELOOP_INPUT = "traceloop.span.kind", "traceloop.entity.input"
REQUEST_TYPE = "llm.request.type"
VERCEL = "ai.operationId"
SPRING = "spring.ai.kind"
MLFLOW, LANGFUSE = "mlflow.spanType", "langfuse.observation.type"
LOGFIRE = "logfire.msg_template"
METADATA = "metadata"
SESSIONS = (
    *("session.id", "gen_ai.conversation.id", "langfuse.session.id"),
    *("spring.ai.chat.client.conversation.id", "conversation.id", "genkit:sessionId"),
    *("langsmith.metadata.thread_id", "langsmith.metadata.session_id"),
)
RESPONSE_ID = "gen_ai.response.id"
MODELS = ("gen_ai.response.model", "llm.model_name", "gen_ai.request.model")
FINISH_REASONS = "gen_ai.response.finish_reasons"
REDACTED = "__REDACTED__"
"""What OpenInference writes in place of content that was switched off."""

# Instrumentations by their scope.
LANGCHAIN_SCOPES = (
    "openinference.instrumentation.langchain",
    "opentelemetry.instrumentation.langchain",
    "opentelemetry.instrumentation.genai.langchain",
)
FRAMEWORKS: dict[str, Literal["langchain", "llama_index"]] = {
    **dict.fromkeys(LANGCHAIN_SCOPES, "langchain"),
    llama_index.SCOPE: "llama_index",
}
"""Those that ragaliq attaches to, by who made a span."""
OWN_SCOPE = "ragaliq"


class Kind(Enum):
    """Kind of a step."""

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


RUNS = {Kind.CHAIN, Kind.AGENT}
"""What a run may be, and what it is made of around models, tools and retrievers."""


@dataclass(slots=True, kw_only=True, eq=False)
class Step:
    """One step of a run.

    Attributes:
        span: The span.
        kind: Its kind.
        convention: The convention that it follows.
        inputs: Its inputs.
        outputs: Its outputs.
        found: Documents of a retriever or reranker, without text if the span has ids only; None if
            not recorded.
        given: Documents that a reranker chose from.
        messages: A model's prompt.
        reply: A model's reply; None if not recorded.
        also: Texts in the arguments of a model's tool calls.
        provided: Documents that a model's provider found for its reply.
        is_first: Whether its framework marks it as the first of a run, wherever it is nested.
        variables: Variables of a model's prompt template.
        rules: Rules for one product that were applied to it.
        is_partial: Whether a part of a model's prompt was not understood or not recorded: absent
            texts may have been in it.
        is_hidden: Whether its content was switched off.
        is_cut: Whether its content is incomplete.
        cut_at: Lengths at which JSON in it was truncated: texts of such a length may be truncated
            too.
        children: The steps inside it, in the order they started.
        index: Its position among the steps of its root, in depth-first order.
        last: The highest position inside it.
    """

    span: TraceSpan
    kind: Kind
    convention: str = ""
    inputs: Any = None
    outputs: Any = None
    found: list[Passage] | None = None
    given: list[Passage] = field(default_factory=list)
    messages: Sequence[Message] = ()
    reply: str | None = None
    also: tuple[str, ...] = ()
    provided: Sequence[Passage] = ()
    is_first: bool = False
    variables: Mapping[str, object] = field(default_factory=dict)
    rules: list[str] = field(default_factory=list)
    is_partial: bool = False
    is_hidden: bool = False
    is_cut: bool = False
    cut_at: frozenset[int] = frozenset()
    children: list[Step] = field(default_factory=list)
    index: int = 0
    last: int = 0

    @property
    def passages(self) -> list[Passage] | None:
        """Passages of a retriever or reranker; None if the span has no text of them."""
        is_told = not self.found or any(passage.text for passage in self.found)
        return self.found if is_told else None

    @property
    def asked(self) -> str | None:
        """User's last message in a model's prompt."""
        return asked_last(self.messages)


def step_of(span: TraceSpan, mapping: Sequence[SpanRule] = ()) -> Step:
    """Read a span; without a known convention it is of kind `NONE`.

    Args:
        span: The span.
        mapping: Mapping of the application's own spans; it takes precedence over the conventions.
    """
    if span.scope == OWN_SCOPE or span.scope.startswith(OWN_SCOPE + "."):
        return Step(span=span, kind=Kind.EVALUATOR)
    rule = rule_for(mapping, span.name, span.attributes) if mapping else None
    return _step_by_convention(span) if rule is None else _step_by_rule(span, rule)


RULE_KINDS = {
    "chain": Kind.CHAIN,
    "agent": Kind.AGENT,
    "retriever": Kind.RETRIEVER,
    "reranker": Kind.RERANKER,
    "tool": Kind.TOOL,
    "model": Kind.LLM,
}


def _step_by_rule(span: TraceSpan, rule: SpanRule) -> Step:
    step = _step_by_convention(span)
    step.kind = RULE_KINDS.get(rule.kind, step.kind)
    step.convention = step.convention or "mapping"
    asked, said, found = (
        decoded(span.attributes.get(name)) for name in (rule.question, rule.answer, rule.documents)
    )
    if step.kind is Kind.LLM:
        if rule.question or rule.answer:
            _set_model(step, asked, said)
        return step
    step.inputs = step.inputs if asked is None else asked
    step.outputs = step.outputs if said is None else said
    passages = None if found is None else results_of(found)
    if step.kind in {Kind.RETRIEVER, Kind.RERANKER}:
        step.found = step.found if passages is None else passages
        step.is_hidden = step.passages is None
    elif step.kind is Kind.TOOL:
        step.outputs = step.outputs if found is None else found
    elif passages is not None:
        contexts = [passage._asdict() for passage in passages]
        step.outputs = {"answer": said, "contexts": contexts}
    return step


@dataclass(frozen=True, slots=True, kw_only=True)
class Convention:
    """Rules of one convention: how to recognise its spans, and where their content is.

    An attribute's name that ends in `.*` means all attributes with this prefix, as an object. Of
    several names the first that a span has counts. Values may be JSON.

    Attributes:
        name: Name of the convention.
        marks: Attributes that only its spans have, at least one each.
        scope: Prefix of its instrumentations' names, if the marks are not enough.
        said_by: Attributes whose values name the kind of a span; by default the marks.
        kinds: Kinds by such a value, in lower case and up to a `{`; the first known one counts.
        other: Kind for any other value; `NONE` for spans that are not steps.
        given: Attributes with a step's input; for a model, its prompt.
        said: Attributes with its output; for a model, its reply; for a search, its documents.
        read: Function for what these attributes cannot express.
    """

    name: str
    marks: tuple[str, ...]
    kinds: Mapping[str, Kind]
    scope: str = ""
    said_by: tuple[str, ...] = ()
    other: Kind = Kind.CHAIN
    given: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    read: Callable[[TraceSpan, Convention], Step] | None = None

    def covers(self, attributes: Mapping[str, object], scope: str) -> bool:
        """Check whether a span with one of its marks follows the convention."""
        if not scope.startswith(self.scope):
            return False
        return self.other is not Kind.NONE or self.kind(attributes) is not Kind.NONE

    def kind(self, attributes: Mapping[str, object]) -> Kind:
        """Kind of a span."""
        values = (decoded(attributes.get(name)) for name in self.said_by or self.marks)
        said = (str(held).partition("{")[0].strip().lower() for held in values if held is not None)
        return next((self.kinds[each] for each in said if each in self.kinds), self.other)


def convention_of(attributes: Mapping[str, object], scope: str = "") -> Convention | None:
    """Convention of a span; None for other spans."""
    if MARKS.isdisjoint(attributes):
        return VECTOR_STORES if VECTOR_STORES.covers(attributes, scope) else None
    held = MARKS.intersection(attributes).union(VECTOR_STORES.marks)
    marked = {place: each for mark in held for place, each in _BY_MARK[mark]}
    for place in sorted(marked):
        if marked[place].covers(attributes, scope):
            return marked[place]
    return None


def kind_of(attributes: Mapping[str, object], scope: str = "") -> Kind:
    """Kind of a span by its attributes; `NONE` for other spans."""
    convention = convention_of(attributes, scope)
    return Kind.NONE if convention is None else _kind(convention, attributes)


def _kind(convention: Convention, attributes: Mapping[str, object]) -> Kind:
    kind = convention.kind(attributes)
    return Kind.OTHER if kind is Kind.RETRIEVER and _is_write(attributes) else kind


def _step_by_convention(span: TraceSpan) -> Step:
    convention = convention_of(span.attributes, span.scope)
    if convention is not None:
        return (convention.read or _plain)(span, convention)
    if any(is_hit(event.name) for event in span.events):
        return _vector_store(span, VECTOR_STORES)
    return Step(span=span, kind=Kind.NONE)


def _first(attributes: Mapping[str, object], names: Sequence[str]) -> object:
    """Value of the first existing attribute of several; `prefix.*` gives an object."""
    for name in names:
        if name.endswith(".*"):
            start = name[:-1]
            held = {k[len(start) :]: v for k, v in attributes.items() if k.startswith(start)}
            if held:
                return held
        elif attributes.get(name) is not None:
            return attributes[name]
    return None


# --- values of attributes -------------------------------------------------------------------------

_MOST_NUMBERED = 10_000
"""A list of more is not a list of documents or messages."""


class _Content:
    """Content of an attribute: a text, or its decoded JSON; None for nothing."""

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


def _step(
    span: TraceSpan, convention: Convention, given: object = None, said: object = None
) -> Step:
    """Step from a span with its input and output, each an attribute or a `_Content`."""
    inputs, outputs = (c if isinstance(c, _Content) else _Content(c) for c in (given, said))
    is_empty = inputs.value is None and outputs.value is None
    return Step(
        span=span,
        kind=_kind(convention, span.attributes),
        convention=convention.name,
        inputs=inputs.value,
        outputs=outputs.value,
        is_hidden=inputs.is_hidden or outputs.is_hidden or is_empty,
        is_cut=inputs.is_cut or outputs.is_cut or span.dropped_attributes > 0,
        cut_at=frozenset(len(each.value) for each in (inputs, outputs) if each.is_cut),
    )


def _numbered(span: TraceSpan, prefix: str) -> list[dict[str, object]]:
    """List whose items are spread over attributes: `prefix.0.name`, `prefix.1.name`, ...

    Missing numbers leave no gap. The same list may be in one attribute, as JSON or not; there
    `{"document": {"content": ...}}` means `document.content`.
    """
    items: dict[int, dict[str, object]] = {}
    start = prefix + "."
    for name, value in span.attributes.items():
        if name.startswith(start):
            digits, dot, rest = name[len(start) :].partition(".")
            if dot and digits.isdecimal() and len(digits) < 8 and len(items) < _MOST_NUMBERED:
                items.setdefault(int(digits), {})[rest] = value
    if items:
        return [items[index] for index in sorted(items)]
    whole = _Content(span.attributes.get(prefix)).value
    listed: list[dict[str, object]] = []
    for item in whole[:_MOST_NUMBERED] if isinstance(whole, list) else ():
        if isinstance(item, Mapping):
            listed.append({})
            for name, value in item.items():
                if isinstance(value, Mapping) and name in {"document", "message"}:
                    listed[-1] |= {f"{name}.{inner}": held for inner, held in value.items()}
                else:
                    listed[-1][str(name)] = value
    return listed


def _set_model(step: Step, asked: Any, said: Any) -> None:
    """Set a model's prompt and reply, from messages in any format."""
    if isinstance(asked, str):
        asked = [{"role": "user", "content": asked}]
    step.messages = READER.conversation(asked)
    step.is_partial = not is_understood(asked)
    if isinstance(said, str):
        step.reply = said
        return
    listed = said if isinstance(said, list) else [said] if isinstance(said, Mapping) else []
    found = [message for each in listed if (message := READER.message(each)) is not None]
    texts = (message.text for message in found if message.role != "tool")
    step.reply = next((text for text in texts if text), "" if found else None)
    step.also = tuple(text for each in listed for text in arguments_of(each))


def _set_found(step: Step, found: Sequence[Passage | None]) -> None:
    """Set a search's documents from hits; None is an unknown hit."""
    step.is_hidden = not all(passage and passage.text for passage in found)
    known = [passage for passage in found if passage is not None]
    step.found = known if known or not step.is_hidden else None


def _first_reply(outputs: Any) -> Any:
    """First reply in a LangChain or OpenAI result; None in others."""
    first: Any = None
    if isinstance(outputs, Mapping):
        first = outputs.get("generations", outputs.get("choices"))
    while isinstance(first, list) and first:
        first = first[0]
    return first


def _provided(outputs: Any) -> list[Passage]:
    """Documents that a model's provider found for its reply, from the result."""
    first = _first_reply(outputs)
    held = first.get("message", first) if isinstance(first, Mapping) else outputs
    fields = held.get("kwargs", held) if isinstance(held, Mapping) else {}
    if not isinstance(fields, Mapping):
        return []
    content = fields.get("content", fields.get("output"))
    more = (fields.get("additional_kwargs"), fields.get("response_metadata"))
    return provided_passages(content, fields, *more)


def _set_reply(step: Step, outputs: Any) -> None:
    """The reply in a LangChain or OpenAI result, or whatever else a span holds as its output."""
    first = _first_reply(outputs)
    if isinstance(first, Mapping):
        held = first.get("message", first)
        message = READER.message(held)
        text = message.text if message is not None else first.get("text")
        step.reply = text if isinstance(text, str) and text.strip() else None
        step.also = step.also or tuple(arguments_of(held))
    else:
        found = READER.answer(outputs)
        step.reply = found.text if found is not None else None


# --- OpenInference --------------------------------------------------------------------------------

_DSPY = "openinference.instrumentation.dspy"
# What LangChain4j's instrumentation writes on an AI service's spans in place of their content.
_NOTHING_SAID = ("Execution Started", "Execution Completed", "LLM REQUEST")


def _openinference(span: TraceSpan, convention: Convention) -> Step:
    step = _step(span, convention, _side(span, "input"), _side(span, "output"))
    step.is_hidden = REDACTED in (span.text("input.value"), span.text("output.value"))
    is_llama_index = span.scope == llama_index.SCOPE
    if span.scope == _DSPY and span.name.startswith("finish."):
        step.kind = Kind.OTHER  # the tool by which ReAct ends says `Completed.`
        step.rules.append("dspy.finish")
    if any(span.text(f"{side}.value") in _NOTHING_SAID for side in ("input", "output")):
        step.rules.append("langchain4j.phrases")
    if is_llama_index and step.kind is Kind.LLM and not llama_index.is_call(span):
        step.kind = Kind.OTHER
        step.rules.append("llama_index.methods")
    elif is_llama_index and step.kind is Kind.TOOL:
        step.outputs = llama_index.tool_message(step.outputs)
        step.rules.append("llama_index.tool_output")
    elif step.kind is Kind.RETRIEVER:
        step.found = _openinference_documents(step, "retrieval.documents", step.outputs)
    elif step.kind is Kind.RERANKER:
        step.found = _openinference_documents(step, "reranker.output_documents", step.outputs)
        step.given = _openinference_documents(step, "reranker.input_documents", None)
    elif step.kind is Kind.LLM:
        asked, said = (
            [_openinference_message(item, step) for item in _numbered(span, f"llm.{side}_messages")]
            for side in ("input", "output")
        )
        prompts = [item.get("prompt.text") for item in _numbered(span, "llm.prompts")]
        prompt: Any = "\n".join(text for text in prompts if isinstance(text, str))
        variables = _Content(span.attributes.get(PROMPT_VARIABLES)).value
        step.variables = variables if isinstance(variables, Mapping) else {}
        shown: Any = asked or prompt or completion_prompt(step.inputs) or step.inputs
        # The request itself may have blocks that the attributes lack.
        _set_model(step, step.inputs if _length(step.inputs) > _length(shown) else shown, said)
        _set_documents(step, _Content(span.attributes.get("llm.invocation_parameters")).value)
        if is_llama_index:
            _add_documents(step, llama_index.citable_texts(step.inputs))
        if step.reply is None:
            _set_reply(step, step.outputs)
        step.provided = _provided(step.outputs)
    elif step.kind is Kind.PROMPT and not isinstance(step.inputs, Mapping):
        variables = _Content(span.attributes.get(PROMPT_VARIABLES)).value
        step.inputs = variables if isinstance(variables, Mapping) else step.inputs
    if is_llama_index and step.found is not None:
        step.found = llama_index.scored(step.found, step.outputs)
    return step


def _length(conversation: Any) -> int:
    """Characters that a model was shown in a conversation."""
    messages = READER.conversation(conversation) if not isinstance(conversation, str) else ()
    return sum(len(text) for m in messages for text in (*m.texts, *m.documents))


def _set_documents(step: Step, parameters: Any) -> None:
    """The documents that a model was called with next to its messages, as Cohere's takes them."""
    given = parameters.get("documents") if isinstance(parameters, Mapping) else None
    _add_documents(step, [passage.text for passage in passages_inside(given)] if given else ())


def _add_documents(step: Step, texts: Sequence[str]) -> None:
    if texts and step.messages:
        *before, last = step.messages
        step.messages = [*before, last._replace(documents=(*last.documents, *texts))]


def _side(span: TraceSpan, side: str) -> _Content:
    held, mime = span.attributes.get(f"{side}.value"), span.text(f"{side}.mime_type")
    if held in _NOTHING_SAID or (held == "null" and span.scope in LANGCHAIN_SCOPES):
        return _Content(None)
    is_json = mime == "application/json"
    if not mime and span.scope not in (*LANGCHAIN_SCOPES, llama_index.SCOPE):
        # Several instrumentations do not write the type.
        text = held if isinstance(held, str) else ""
        is_json = text[:1] in {"{", "["} and text.rstrip()[-1:] in {"}", "]"}
    return _Content(held, is_json=is_json)


def _openinference_documents(step: Step, prefix: str, outputs: Any) -> list[Passage]:
    returned = outputs.get("documents") if isinstance(outputs, Mapping) else outputs
    listed = READER.document_list(returned)
    if listed:
        return listed  # LangChain's, with the ids that the attributes lack
    step.is_cut = step.is_cut or isinstance(_Content(step.span.attributes.get(prefix)).value, str)
    passages = []
    for item in _numbered(step.span, prefix):
        held = {name.removeprefix("document."): value for name, value in item.items()}
        text, metadata = held.get("content"), decoded(held.get("metadata"))
        text = text if isinstance(text, str) and text != REDACTED else None
        found = hit({"content": text, "id": held.get("id"), "score": held.get("score")})
        if found is not None:
            known = metadata if isinstance(metadata, Mapping) and metadata else None
            passages.append(found._replace(metadata=known))
        step.is_hidden = step.is_hidden or (text is None and bool({"id", "content"} & held.keys()))
    return passages


def _openinference_message(item: Mapping[str, object], step: Step) -> dict[str, object]:
    text = item.get("message.content", item.get("content"))
    if not text:
        blocks = [v for k, v in item.items() if k.endswith(".message_content.text")]
        # AutoGen's results of tools, each an object with its text.
        held = (decoded(v) for k, v in item.items() if k.startswith("function."))
        results = [result.get("content") for result in held if isinstance(result, Mapping)]
        blocks += results
        step.rules += ["autogen.results"] if results else []
        text = "".join(block for block in blocks if isinstance(block, str))
    calls = [v for name, v in item.items() if name.endswith("tool_call.function.arguments")]
    return {
        "role": item.get("message.role", item.get("role")),
        "content": text,
        "tool_calls": [{"function": {"arguments": each}} for each in calls],
    }


# --- OpenTelemetry's convention for generative AI -------------------------------------------------

_DETAILS = "gen_ai.client.inference.operation.details"
# What the convention's first versions wrote, one event a message.
_ASKED = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_CHOICE = "gen_ai.choice"
# And what Spring AI and others wrote, one event a side.
_CONTENTS = {
    "gen_ai.content.prompt": ("user", "gen_ai.prompt"),
    "gen_ai.content.completion": ("assistant", "gen_ai.completion"),
}


def _genai(span: TraceSpan, convention: Convention) -> Step:
    attributes = span.attributes
    step = _step(span, convention)
    if step.kind in {Kind.RETRIEVER, Kind.RERANKER}:
        documents = _Content(attributes.get("gen_ai.retrieval.documents"))
        step.inputs = attributes.get("gen_ai.retrieval.query.text")
        step.is_cut = step.is_cut or documents.is_cut
        listed = documents.value if isinstance(documents.value, list) else [None]
        _set_found(step, [Passage(item) if isinstance(item, str) else hit(item) for item in listed])
    elif step.kind is Kind.TOOL:
        step.outputs = attributes.get("gen_ai.tool.call.result")
        if step.outputs is None:
            results = [e.attributes for e in span.events if e.name in {_CHOICE, *_ASKED}]
            step.outputs = results[-1].get("message") if results else None
        step.is_hidden = step.outputs is None
    else:
        _set_genai_messages(step)
    return step


def _set_genai_messages(step: Step) -> None:
    attributes = dict(step.span.attributes)
    for event in step.span.events:
        if event.name == _DETAILS:
            attributes |= {k: v for k, v in event.attributes.items() if k not in attributes}
    given, said = (
        _Content(next((attributes[name] for name in names if name in attributes), None))
        for names in (
            ("gen_ai.input.messages", "pydantic_ai.all_messages"),
            ("gen_ai.output.messages", "final_result"),
        )
    )
    step.is_cut = step.is_cut or given.is_cut or said.is_cut
    step.inputs, step.outputs = given.value, said.value
    if step.inputs is None and step.outputs is None:
        step.inputs, step.outputs = _messages_in_events(step.span)
    if step.inputs is None and step.outputs is None:
        # Before there was one attribute for all messages; OpenLLMetry's way, and Quarkus'.
        step.inputs, step.outputs = (
            _numbered(step.span, f"gen_ai.{side}")
            or attributes.get(f"gen_ai.{side}", attributes.get(f"gen_ai.content.{side}"))
            for side in ("prompt", "completion")
        )
    step.is_hidden = step.inputs is None and step.outputs is None
    step.variables = _variables(attributes)
    if step.kind is Kind.LLM:
        asked = step.inputs
        system = _Content(attributes.get("gen_ai.system_instructions")).value
        if isinstance(asked, list) and isinstance(system, list):
            asked = [{"role": "system", "content": system}, *asked]
        _set_model(step, asked, step.outputs)


def _variables(attributes: Mapping[str, object]) -> Mapping[str, object]:
    """Variables of a prompt's template."""
    held = _first(attributes, ("gen_ai.prompt.variable.*",))
    return held if isinstance(held, Mapping) else {}


def _messages_in_events(span: TraceSpan) -> tuple[list[Any] | None, list[Any] | None]:
    """Prompt and reply in events; None for what no event has.

    Logfire and Pydantic AI once kept the events in one attribute, as JSON.
    """
    sides: tuple[list[Any], list[Any]] = ([], [])
    listed = decoded(_first(span.attributes, ("events", "all_messages_events")))
    kept = [
        SpanEvent(str(each.get("event.name")), each)
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, Mapping)
    ]
    for event in (*span.events, *kept):
        held = dict(event.attributes)
        content = decoded(held.get("content"))
        if isinstance(content, list):  # blocks, as Strands and others write them
            held["content"] = content
        if event.name in _ASKED:
            sides[0].append({"role": _ASKED[event.name], **held})
        elif event.name == _CHOICE:
            said = _Content(held.pop("message", None)).value
            fields = said if isinstance(said, Mapping) else {"content": said}
            sides[1].append({"role": "assistant", **held, **fields})
        elif event.name in _CONTENTS:
            role, name = _CONTENTS[event.name]
            said = decoded(held.get(name))
            is_list = READER.messages(said) is not None
            side = sides[role == "assistant"]
            side.extend(said if is_list else [{"role": role, "content": said}])
    while kept and not sides[1] and sides[0] and sides[0][-1]["role"] == "assistant":
        sides[1].append(sides[0].pop())  # a reply, by the name of a message
    asked, said = ([m for m in side if READER.message(m) is not None] or None for side in sides)
    return asked, said


# --- OpenLLMetry ----------------------------------------------------------------------------------


def _traceloop(span: TraceSpan, convention: Convention) -> Step:
    step = _step(
        span,
        convention,
        span.attributes.get(TRACELOOP_INPUT),
        span.attributes.get("traceloop.entity.output"),
    )
    if step.kind is Kind.LLM or "gen_ai.input.messages" in span.attributes:
        _set_genai_messages(step)
        return step
    call = step.inputs if isinstance(step.inputs, Mapping) else {}
    tags, extra = call.get("tags"), call.get("kwargs")
    if isinstance(tags, list):
        step.is_first = span.text(TRACELOOP_KIND) == "workflow"
    if isinstance(extra, Mapping) and extra.get("run_type") == "prompt":
        step.kind = Kind.PROMPT
        step.rules.append("traceloop.langchain_prompt")
    elif span.scope == "opentelemetry.instrumentation.llamaindex" and "Retriever." in span.name:
        step.kind = Kind.RETRIEVER  # which it writes as a task
        step.rules.append("traceloop.llama_index_retriever")
    elif span.scope == "opentelemetry.instrumentation.llamaindex" and "Tool." in span.name:
        step.kind = Kind.TOOL
        step.rules.append("traceloop.llama_index_tool")
    step.inputs = _unrecorded(step.inputs, "inputs")
    step.outputs = _unrecorded(step.outputs, "outputs")
    if step.kind is Kind.TOOL:
        step.outputs = llama_index.tool_message(step.outputs)
    if step.kind is Kind.RETRIEVER:
        held = step.outputs.get("documents") if isinstance(step.outputs, Mapping) else step.outputs
        step.found = READER.listed(held)
    return step


def _unrecorded(value: Any, name: str) -> Any:
    """Input or output of a call, extracted from Traceloop's record of it."""
    if isinstance(value, list):
        return [decoded(item) for item in value]  # LlamaIndex's nodes are JSON inside JSON
    if not isinstance(value, Mapping):
        return value
    return value[name] if name in value else _given(value)


def _given(value: Any) -> Any:
    """Input of a decorated function, from its `args` and `kwargs`."""
    if not isinstance(value, Mapping) or set(value) != {"args", "kwargs"}:
        return value
    given, named = value["args"], value["kwargs"]
    if isinstance(given, list) and isinstance(named, Mapping):
        return named or (given[0] if len(given) == 1 else given)
    return value


# --- vector stores: a search, with an event for each hit ------------------------------------------

_DB_RESULT = re.compile(r"db\.(?:\w+\.)?query\.result")
_DB_OPERATION = ("db.operation.name", "db.operation")
_WRITES = frozenset(
    "add insert upsert update upload delete create modify peek count drop flush index".split()
)
"""Operations of a store that find nothing for anybody, by their first word."""


def _is_write(attributes: Mapping[str, object], name: str = "") -> bool:
    # OpenLLMetry's of Qdrant and others name it in the span's name alone: `qdrant.upload_points`.
    operation = _first(attributes, _DB_OPERATION) or name.rpartition(".")[2]
    return str(operation).lower().partition("_")[0] in _WRITES


def is_hit(event: str) -> bool:
    """True if an event of this name is a hit of a vector store's search."""
    return _DB_RESULT.fullmatch(event) is not None


def _vector_store(span: TraceSpan, convention: Convention) -> Step:
    events = [event for event in span.events if is_hit(event.name)]
    step = _step(span, convention)
    step.kind = Kind.RETRIEVER if events else step.kind
    if step.kind is Kind.RETRIEVER and not events and _is_write(span.attributes, span.name):
        step.kind = Kind.OTHER
    elif step.kind is Kind.RETRIEVER:
        hits = [
            hit({name.removeprefix(f"{event.name}."): v for name, v in event.attributes.items()})
            for event in events
        ]
        _set_found(step, hits or [None])
    return step


# --- others ---------------------------------------------------------------------------------------


def _plain(span: TraceSpan, convention: Convention) -> Step:
    """Step from a span with input and output in attributes, as JSON or not."""
    attributes = span.attributes
    step = _step(
        span, convention, _first(attributes, convention.given), _first(attributes, convention.said)
    )
    step.inputs = _given(step.inputs)
    if step.kind in {Kind.RETRIEVER, Kind.RERANKER}:
        step.found = None if step.outputs is None else results_of(step.outputs)
        step.is_hidden = step.found is None
    elif step.kind is Kind.TOOL:
        step.is_hidden = step.outputs is None
    elif step.kind is Kind.LLM:
        is_list = isinstance(step.outputs, list) and READER.messages(step.outputs)
        _set_model(step, step.inputs, step.outputs if is_list else None)
        if isinstance(step.outputs, str):
            step.reply = step.outputs
        elif not is_list:
            _set_reply(step, step.outputs)
    return step


def _vercel(span: TraceSpan, convention: Convention) -> Step:
    step = _plain(span, convention)
    if step.kind is Kind.LLM:
        step.also = tuple(arguments_of(decoded(span.attributes.get("ai.response.toolCalls"))))
        step.reply = step.reply if step.reply is not None or not step.also else ""
    step.is_hidden = step.inputs is None and step.outputs is None
    return step


def _spring(span: TraceSpan, convention: Convention) -> Step:
    """Spring AI's own: clients, advisors, vector stores and tools; its models are GenAI's."""
    found = next((e.attributes for e in span.events if "query.response" in e.name), {})
    step = _plain(span._replace(attributes={**span.attributes, **found}), convention)
    step.span = span
    return step


def _langfuse(span: TraceSpan, convention: Convention) -> Step:
    """Langfuse, whose first span may hold only the whole trace's attributes."""
    step = _plain(span, convention)
    if step.inputs is None and step.outputs is None and span.parent_id is None:
        step.inputs = _Content(span.attributes.get("langfuse.trace.input")).value
        step.outputs = _Content(span.attributes.get("langfuse.trace.output")).value
        step.rules.append("langfuse.trace")
    return step


def _logfire(span: TraceSpan, convention: Convention) -> Step:
    """Logfire's spans of SDKs, which keep a model's messages as OpenTelemetry's convention does."""
    step = _plain(span, convention)
    if step.kind is Kind.LLM and (not step.messages or step.reply is None):
        _set_genai_messages(step)
    return step


def _langtrace(span: TraceSpan, convention: Convention) -> Step:
    """Langtrace's spans: of models by OpenTelemetry's convention, of stores with their hits."""
    if convention.kind(span.attributes) is Kind.RETRIEVER:
        return _vector_store(span, convention)
    step = _step(span, convention)
    _set_genai_messages(step)
    return step


_PLACEHOLDER = re.compile(r"\[tool(?:-result)?: [^\]]*\]")


def _mastra(span: TraceSpan, convention: Convention) -> Step:
    """Mastra, whose prompts lack the calls of tools and what they returned."""
    step = _plain(span, convention)
    whole = [m for m in step.messages if not _PLACEHOLDER.fullmatch(m.text)]
    if len(whole) < len(step.messages):
        step.is_partial = True
        step.rules.append("mastra.placeholders")
    step.messages = whole
    calls = step.outputs.get("toolCalls") if isinstance(step.outputs, Mapping) else None
    step.also = step.also or tuple(arguments_of(calls))
    return step


# --- all of them ----------------------------------------------------------------------------------

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
    "create_agent": Kind.OTHER,
    "evaluation": Kind.EVALUATOR,
}
"""Others, which the convention may add, are chains: what is inside them is looked at."""
_NAMED = {kind.value.lower(): kind for kind in Kind if kind is not Kind.NONE}
KINDS_OF_PRODUCTS = _NAMED | {
    "chat_model": Kind.LLM,
    "generation": Kind.LLM,
    "model": Kind.LLM,
    "parser": Kind.OTHER,
    "guardrail": Kind.OTHER,
    "event": Kind.OTHER,
    "retrieval": Kind.RETRIEVER,
    "embedder": Kind.EMBEDDING,
}
"""What several products call the parts, in lower case."""
_STORES = (
    "astra azure_ai_search chroma chromadb deeplake lancedb marqo milvus pgvector pinecone qdrant "
    "turbopuffer vespa weaviate"
).split()

VECTOR_STORES = Convention(
    name="vector store",
    marks=("db.system.name", "db.system"),
    kinds=dict.fromkeys(_STORES, Kind.RETRIEVER),
    other=Kind.NONE,
    read=_vector_store,
)
CONVENTIONS = (
    Convention(
        name="openinference",
        marks=(KIND,),
        kinds=_NAMED | {"unknown": Kind.CHAIN},
        other=Kind.OTHER,
        read=_openinference,
    ),
    Convention(
        name="langsmith",
        marks=("langsmith.span.kind",),
        kinds=KINDS_OF_PRODUCTS,
        given=("gen_ai.prompt",),
        said=("gen_ai.completion",),
    ),
    Convention(
        name="trulens",
        marks=("ai.observability.span_type",),
        kinds=KINDS_OF_PRODUCTS
        | {"unknown": Kind.CHAIN, "eval": Kind.EVALUATOR, "eval_root": Kind.EVALUATOR},
        given=(
            "ai.observability.record_root.input",
            "ai.observability.retrieval.query_text",
            "ai.observability.call.kwargs.*",
        ),
        said=(
            "ai.observability.record_root.output",
            "ai.observability.retrieval.retrieved_contexts",
            "ai.observability.call.return",
        ),
    ),
    Convention(
        name="genkit",
        marks=("genkit:type",),
        said_by=("genkit:metadata:subtype", "genkit:type"),
        kinds=KINDS_OF_PRODUCTS | {"indexer": Kind.OTHER},
        given=("genkit:input",),
        said=("genkit:output",),
    ),
    Convention(
        name="voltagent",
        marks=("span.type", "entity.type"),
        scope="@voltagent/",
        kinds=KINDS_OF_PRODUCTS | {"memory": Kind.OTHER, "scorer": Kind.EVALUATOR},
        given=("agent.messages", "llm.messages", "input"),
        said=("output",),
    ),
    Convention(
        name="mastra",
        marks=("mastra.span.type",),
        kinds={
            "agent_run": Kind.AGENT,
            "workflow_run": Kind.CHAIN,
            "model_generation": Kind.CHAIN,
            "model_step": Kind.LLM,
            "model_inference": Kind.OTHER,  # of a step, again
            "model_chunk": Kind.OTHER,
            "tool_call": Kind.TOOL,
            "mcp_tool_call": Kind.TOOL,
            "rag_vector_operation": Kind.RETRIEVER,
            "rag_embedding": Kind.EMBEDDING,
            "scorer_run": Kind.EVALUATOR,
        },
        given=(
            "mastra.agent_run.input",
            "mastra.workflow_run.input",
            "mastra.model_generation.input",
            "mastra.model_step.input",
            "gen_ai.tool.call.arguments",
        ),
        said=(
            "mastra.agent_run.output",
            "mastra.workflow_run.output",
            "mastra.model_generation.output",
            "mastra.model_step.output",
            "mastra.rag_vector_operation.output",
            "gen_ai.tool.call.result",
        ),
        read=_mastra,
    ),
    Convention(
        name="langtrace",
        marks=("langtrace.service.type",),
        kinds={"vectordb": Kind.RETRIEVER, "llm": Kind.LLM},
        read=_langtrace,
    ),
    Convention(
        name="logfire",
        marks=(LOGFIRE,),
        scope="logfire.",
        kinds={
            "openai agents trace:": Kind.CHAIN,
            "agent run:": Kind.AGENT,
            "function:": Kind.TOOL,
            "responses api with": Kind.LLM,
            "chat completion with": Kind.LLM,
            "message with": Kind.LLM,
            "embedding creation with": Kind.EMBEDDING,
            "guardrail": Kind.OTHER,
            "handoff:": Kind.OTHER,
        },
        given=("input", "request_data"),  # an agent's requests are noted after their replies
        said=("output", "response_data"),
        read=_logfire,
    ),
    Convention(
        name="crewai",
        marks=("crewai.task.description",),
        kinds={},
        given=("crewai.task.description",),
        said=("traceloop.entity.output",),
    ),
    Convention(
        name="traceloop",
        marks=(TRACELOOP_KIND, TRACELOOP_INPUT, REQUEST_TYPE),
        said_by=(OPERATION, REQUEST_TYPE, TRACELOOP_KIND),
        kinds=OPERATIONS
        | {"completion": Kind.LLM, "workflow": Kind.CHAIN, "agent": Kind.AGENT}
        | {"task": Kind.CHAIN, "tool": Kind.TOOL},
        other=Kind.OTHER,
        read=_traceloop,
    ),
    Convention(
        name="spring",
        marks=(SPRING,),
        kinds={"vector_store": Kind.RETRIEVER, "tool_call": Kind.TOOL},
        given=(
            "db.vector.query.content",
            "spring.ai.tool.call.arguments",
            "spring.ai.chat.client.user.text",
        ),
        said=(
            "db.vector.query.response.documents",
            "spring.ai.tool.call.result",
            "gen_ai.completion",
        ),
        read=_spring,
    ),
    VECTOR_STORES,
    Convention(  # before it followed OpenTelemetry's convention in all its spans
        name="pydantic-ai",
        scope="pydantic-ai",
        marks=("tool_response",),
        kinds={},
        other=Kind.TOOL,
        given=("tool_arguments",),
        said=("tool_response",),
    ),
    Convention(
        name="pydantic-ai",
        scope="pydantic-ai",
        marks=("all_messages_events",),
        kinds={},
        other=Kind.AGENT,
        read=_genai,
    ),
    Convention(name="genai", marks=(OPERATION,), kinds=OPERATIONS, read=_genai),
    Convention(
        name="vercel",
        marks=(VERCEL,),
        kinds={
            "ai.generatetext.dogenerate": Kind.LLM,
            "ai.generateobject.dogenerate": Kind.LLM,
            "ai.streamtext.dostream": Kind.LLM,
            "ai.streamobject.dostream": Kind.LLM,
            "ai.toolcall": Kind.TOOL,
            "ai.embed": Kind.EMBEDDING,
            "ai.embedmany": Kind.EMBEDDING,
            "ai.embed.doembed": Kind.EMBEDDING,
            "ai.embedmany.doembed": Kind.EMBEDDING,
        },
        given=("ai.prompt.messages", "ai.prompt", "ai.toolCall.args"),
        said=("ai.response.text", "ai.response.object", "ai.toolCall.result"),
        read=_vercel,
    ),
    Convention(
        name="mlflow",
        marks=(MLFLOW,),
        kinds=KINDS_OF_PRODUCTS,
        given=("mlflow.spanInputs",),
        said=("mlflow.spanOutputs",),
    ),
    Convention(
        name="langfuse",
        marks=(LANGFUSE,),
        kinds=KINDS_OF_PRODUCTS,
        given=("langfuse.observation.input",),
        said=("langfuse.observation.output",),
        read=_langfuse,
    ),
)
"""The first that covers a span counts: a product's own go before what they build on."""


def by_mark(
    conventions: Sequence[Convention],
) -> Mapping[str, Sequence[tuple[int, Convention]]]:
    """Conventions by each of their marks, with their positions."""
    found: dict[str, list[tuple[int, Convention]]] = {}
    for place, each in enumerate(conventions):
        for mark in each.marks:
            found.setdefault(mark, []).append((place, each))
    return found


_BY_MARK = by_mark(CONVENTIONS)
MARKS = frozenset(_BY_MARK).difference(VECTOR_STORES.marks)
"""Attributes of which a span has one that follows a convention; databases' have others."""
