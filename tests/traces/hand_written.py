"""Spans written by hand, as instrumentations of any language may write them."""

import itertools
import json

from ragaliq.traces import SpanEvent, TraceSpan, cases_of_trace

TRACE, ROOT = "a" * 32, "1" * 16
QUESTION = "How long do refunds take?"
ANSWER = "Refunds take five days."
TEXTS = ["Refunds take five days.", "Shops open at nine."]

_numbers = itertools.count(1)


def span(kind=None, *, parent=None, name="step", at=(0, 100), scope="", error="", **more):
    """A span of an OpenInference kind; `at` is its start and end."""
    attributes = {"openinference.span.kind": kind} if kind else {}
    attributes |= more.pop("attributes", {})
    events = more.pop("events", ())
    if error:
        events = (SpanEvent(name="exception", attributes={"exception.type": error}),)
    return TraceSpan(
        trace_id=more.pop("trace", TRACE),
        span_id=more.pop("id", f"{next(_numbers):016x}"),
        parent_id=getattr(parent, "span_id", parent),
        name=name,
        start_ns=at[0],
        end_ns=at[1],
        is_error=bool(error),
        attributes=attributes,
        events=events,
        scope=scope,
        **more,
    )


def io(question=None, answer=None):
    """The attributes of input and output; what is no text is JSON."""
    attributes = {}
    for side, value in (("input", question), ("output", answer)):
        if isinstance(value, str):
            attributes[f"{side}.value"] = value
        elif value is not None:
            attributes[f"{side}.value"] = json.dumps(value)
            attributes[f"{side}.mime_type"] = "application/json"
    return attributes


def documents(texts=TEXTS, prefix="retrieval.documents"):
    attributes = {}
    for number, text in enumerate(texts):
        attributes[f"{prefix}.{number}.document.content"] = text
        attributes[f"{prefix}.{number}.document.id"] = f"doc-{TEXTS.index(text)}"
    return attributes


def chain(question=QUESTION, answer=ANSWER, *, attributes=(), **more):
    held = io(question, answer) | dict(attributes)
    return span("CHAIN", attributes=held, **{"id": ROOT, **more})


def request(own_id=ROOT, **more):
    """What is around a run, and is no step of it."""
    return span(name="GET /ask", id=own_id, **more)


def retriever(parent=ROOT, texts=TEXTS, *, at=(10, 20), query=QUESTION, **more):
    attributes = io(query) | documents(texts)
    return span("RETRIEVER", parent=parent, at=at, attributes=attributes, **more)


def tool(answer, *, at=(10, 20), parent=ROOT, **more):
    return span("TOOL", parent=parent, at=at, attributes=io("r", answer), **more)


def model(parent=ROOT, reply=ANSWER, *, asked=QUESTION, at=(30, 40), **more):
    attributes = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": asked,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": reply,
    }
    return span("LLM", parent=parent, at=at, attributes=attributes, **more)


def genai(operation, *, parent=ROOT, at=(0, 100), events=(), **attributes):
    """A step by OpenTelemetry's convention; what is no text is JSON."""
    held = {"gen_ai.operation.name": operation}
    for name, value in attributes.items():
        full = "gen_ai." + name.replace("__", ".")
        held[full] = value if isinstance(value, str) else json.dumps(value)
    return span(parent=parent, at=at, attributes=held, events=events)


def message(role, text):
    return [{"role": role, "parts": [{"type": "text", "content": text}]}]


def chat(reply=ANSWER, *, asked=QUESTION, parent=ROOT, at=(30, 40), **more):
    said = {"input__messages": message("user", asked)}
    said["output__messages"] = message("assistant", reply)
    return genai("chat", parent=parent, at=at, **said | more)


def only(spans):
    """The one run of a trace."""
    (found,) = cases_of_trace(spans)
    return found


def triple(found):
    """Question, texts and answer of a run that must have a case."""
    assert found.reason == ""
    log = found.log
    return log.query, [passage.text for passage in log.found_context.passages], log.response


def reason(spans):
    found = only(spans)
    assert found.log is None
    return found.reason
