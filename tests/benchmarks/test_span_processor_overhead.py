"""What the span processor adds to each span, next to a processor that does nothing.

The spans are those of a usual request: a web request's with, inside it, a chain, a retriever with
four documents of 800 characters, a prompt, a model and a parser, with the attributes that
OpenInference writes; and, apart, five plain spans that are no business of ours. Nothing is read or
judged while the clock runs: grace is long, and what is kept is let go between passes.
"""

import pytest
from held_back import HeldBack
from interleaved import compare
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from ragaliq.traces import RagaliqSpanProcessor

CALLS, ROUNDS, PASSES = 4, 100, 5
TEXTS = [f"Document {n}. ".ljust(800, "x") for n in range(4)]
CONTEXT = "\n\n".join(TEXTS)
QUESTION, ANSWER = "How long do refunds take?", "Five days."
DOCUMENTS = {
    f"retrieval.documents.{n}.document.{part}": value
    for n, text in enumerate(TEXTS)
    for part, value in (("content", text), ("metadata", "{}"), ("id", str(n)))
}
MESSAGES = {
    "llm.input_messages.0.message.role": "system",
    "llm.input_messages.0.message.content": CONTEXT,
    "llm.input_messages.1.message.role": "user",
    "llm.input_messages.1.message.content": QUESTION,
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.content": ANSWER,
    "llm.model_name": "m",
    "llm.token_count.total": 900,
}
STEPS = [
    ("RETRIEVER", "retriever", QUESTION, CONTEXT, DOCUMENTS),
    ("PROMPT", "prompt", CONTEXT, CONTEXT, {}),
    ("LLM", "model", CONTEXT, ANSWER, MESSAGES),
    ("CHAIN", "parser", ANSWER, ANSWER, {}),
]
SPANS = 6

NONE, AGAIN = "empty processor", "empty processor, again"
ALL, NOTHING = "ragaliq at 100 %", "ragaliq at 0 %"
# Share of what a span takes with the empty processor, in a quiet pass; measured 0.7, 0.25, 0.25.
AT_MOST = {("rag", ALL): 1.0, ("rag", NOTHING): 0.4, ("plain", ALL): 0.4, ("plain", NOTHING): 0.4}


def provider_with(processor):
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    return provider


def rag(provider):
    tracer = provider.get_tracer("openinference.instrumentation.langchain")
    web = provider.get_tracer("opentelemetry.instrumentation.fastapi")

    def answer():
        with web.start_as_current_span("POST /ask"), tracer.start_as_current_span("rag") as root:
            for kind, name, given, said, more in STEPS:
                with tracer.start_as_current_span(name) as span:
                    span.set_attributes(content(kind, given, said) | more)
            root.set_attributes(content("CHAIN", QUESTION, ANSWER))

    return answer


def content(kind, given, said):
    return {"openinference.span.kind": kind, "input.value": given, "output.value": said}


def plain(provider):
    tracer = provider.get_tracer("opentelemetry.instrumentation.sqlalchemy")
    held = {"db.system": "postgresql", "db.statement": "SELECT 1", "server.port": 5432}

    def query():
        for _ in range(SPANS):
            with tracer.start_as_current_span("SELECT", attributes=held):
                pass

    return query


@pytest.mark.benchmark
@pytest.mark.parametrize("kind", [rag, plain], ids=["rag", "plain"])
def test_a_span_costs_a_part_of_its_own_time(kind, report):
    rates = {ALL: HeldBack(1.0), NOTHING: HeldBack(0.0)}
    processors = {
        name: RagaliqSpanProcessor(
            each.monitor, grace=3600, max_age=7200, max_traces=100_000, max_bytes=2**30
        )
        for name, each in rates.items()
    }
    variants = {name: kind(provider_with(SpanProcessor())) for name in (NONE, AGAIN)}
    variants |= {name: kind(provider_with(each)) for name, each in processors.items()}
    found = compare(
        variants, calls=CALLS, rounds=ROUNDS, passes=PASSES, between=rates[ALL].catch_up
    )
    name = kind.__name__
    lines = found.table(f"{SPANS} {name} spans")
    per_span = {each: 1e6 * found.added(each) / SPANS for each in rates}
    lines += [f"  {each}: {cost:.1f} us a span" for each, cost in per_span.items()]
    report(lines)

    assert all(each.errors == 0 for each in processors.values())
    for each in rates.values():
        each.end(found.calls if name == "rag" else 0)
    for each in rates:
        assert found.added(each) <= AT_MOST[name, each] * found.base
