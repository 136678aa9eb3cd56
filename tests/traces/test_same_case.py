"""An instrumented application gives the same case through the handler and through its traces."""

from __future__ import annotations

import json

import pytest
from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import create_retriever_tool
from openinference.instrumentation import TraceConfig
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import SpanLimits
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from otlp import FORMS
from rag_parts import (
    PROMPT,
    QUESTION,
    SHIPPING,
    BrokenRetriever,
    FixedRetriever,
    calling,
    joined,
    model,
    rag_chain,
    retrieval_chain,
)

from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq.datasets import read_cases
from ragaliq.errors import DatasetError
from ragaliq.traces.origin import run_of

# OpenInference reads a message's text in the old way.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Library(BaseRetriever):
    """Documents with everything that documents can have, one of them twice."""

    def _get_relevant_documents(self, query, *, run_manager):
        return [
            Document(page_content="Refunds take five days. äöü \u2028", id="d1"),
            Document(page_content="Shops open at nine.", id="d2", metadata={"score": 0.25}),
            Document(page_content="Refunds take five days. äöü \u2028", id="d3"),
        ]


def reranked():
    best = RunnableLambda(lambda docs: docs[::-1][:1])
    sources = {"context": Library() | best | joined, "question": RunnablePassthrough()}
    return sources | PROMPT | model()


def in_parallel():
    sources = {"a": Library(), "b": FixedRetriever(texts=SHIPPING), "question": lambda q: q}
    merged = RunnablePassthrough.assign(context=lambda s: joined(s["a"] + s["b"]))
    return sources | merged | PROMPT | model()


def agent():
    from langchain.agents import create_agent

    tool = create_retriever_tool(Library(), "library", "Finds texts.")
    return create_agent(model(calling("library", query="refunds"), "Five days."), [tool])


def prompted():
    prompt = ChatPromptTemplate.from_template("{context} {question}")
    return RunnableLambda(lambda q: {"context": "Known.", "question": q}) | prompt | model()


APPS = {
    "chain": lambda: (rag_chain(Library()), QUESTION),
    "retrieval chain": lambda: (retrieval_chain(Library()), {"input": QUESTION}),
    "reranked": lambda: (reranked(), QUESTION),
    "two retrievers": lambda: (in_parallel(), QUESTION),
    "ensemble": lambda: (
        rag_chain(EnsembleRetriever(retrievers=[Library(), FixedRetriever()])),
        QUESTION,
    ),
    "fallback": lambda: (rag_chain(BrokenRetriever().with_fallbacks([Library()])), QUESTION),
    "agent": lambda: (agent(), {"messages": [("user", QUESTION)]}),
    "prompt variable": lambda: (prompted(), QUESTION),
}


def as_bytes(case):
    """Everything of a case but how it is called."""
    held = case.model_dump(mode="json", exclude={"id", "tags", "metadata"})
    return json.dumps(held).encode()


@pytest.fixture
def _instrumented(tracing):
    LangChainInstrumentor().instrument(tracer_provider=tracing.provider, skip_dep_check=True)
    yield
    LangChainInstrumentor().uninstrument()


@pytest.mark.usefixtures("_instrumented")
@pytest.mark.parametrize("app", APPS)
def test_a_langchain_application(app, tracing, watched, written):
    handler = RagaliqCallbackHandler(watched.monitor)
    chain, question = APPS[app]()
    chain.invoke(question, {"callbacks": [handler]})
    (live,) = watched.cases()

    for name, form in FORMS.items():
        (case,) = read_cases(written(name, form(tracing.spans())))
        assert as_bytes(case) == as_bytes(live), name
        assert case.has_context


@pytest.mark.usefixtures("_instrumented")
def test_a_langchain_application_that_streams(tracing, watched, written):
    handler = RagaliqCallbackHandler(watched.monitor)
    list(rag_chain(Library()).stream(QUESTION, {"callbacks": [handler]}))
    (live,) = watched.cases()

    (case,) = read_cases(written("t.pb", FORMS["traces.pb"](tracing.spans())))
    assert as_bytes(case) == as_bytes(live)


@pytest.mark.usefixtures("_instrumented")
def test_a_stream_that_is_broken_off_gives_no_case_in_either_way(tracing, watched, written):
    handler = RagaliqCallbackHandler(watched.monitor)
    rag_chain(Library()).invoke(QUESTION)
    stream = rag_chain(Library()).stream(QUESTION, {"callbacks": [handler]})
    next(stream)
    stream.close()
    assert watched.cases() == []
    assert watched.monitor.stats().incomplete == {"truncated": 1}

    reader = read_cases(written("t.pb", FORMS["traces.pb"](tracing.spans())))
    assert len(list(reader)) == 1
    assert reader.left_out == {"truncated": 1}


@pytest.mark.usefixtures("_instrumented")
def test_what_the_exporter_really_sends(tracing, watched, written, received):
    tracing.provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(received.url)))
    rag_chain(Library()).invoke(QUESTION, {"callbacks": [RagaliqCallbackHandler(watched.monitor)]})
    (live,) = watched.cases()

    sent = [len(body).to_bytes(4, "big") + body for body in received.bodies]
    assert len(sent) == len(tracing.spans())
    (case,) = read_cases(written("received.bin", b"".join(sent)))
    assert as_bytes(case) == as_bytes(live)


def left_out(tracing, written, **config):
    """Why the trace of an application gives no case."""
    LangChainInstrumentor().instrument(tracer_provider=tracing.provider, **config)
    try:
        rag_chain(Library()).invoke(QUESTION)
    finally:
        LangChainInstrumentor().uninstrument()
    reader = read_cases(written("t.pb", FORMS["traces.pb"](tracing.spans())))
    with pytest.raises(DatasetError, match="can be evaluated"):
        list(reader)
    return dict(reader.left_out)


@pytest.mark.parametrize("hidden", ["hide_inputs", "hide_outputs"])
def test_hidden_content_is_no_content(tracing, written, hidden):
    config = TraceConfig(**{hidden: True})
    assert left_out(tracing, written, config=config) == {"content_hidden": 1}


@pytest.mark.parametrize(
    "limits", [SpanLimits(max_span_attributes=6), SpanLimits(max_span_attribute_length=60)]
)
def test_what_the_sdk_cut_is_no_case(limits, tracing, written):
    tracing.provider._span_limits = limits
    assert left_out(tracing, written) == {"attributes_cut": 1}


@pytest.mark.usefixtures("_instrumented")
def test_the_results_speak_of_the_same_span(tracing, watched, written):
    handler = RagaliqCallbackHandler(watched.monitor)
    rag_chain(Library()).invoke(QUESTION, {"callbacks": [handler]})
    assert watched.cases()
    (root,) = [span for span in tracing.spans() if span.parent is None]
    (live,) = watched.results
    assert live.target.span_id == f"{root.context.span_id:016x}"

    (case,) = read_cases(written("t.pb", FORMS["traces.pb"](tracing.spans())))
    run = run_of(case, run_id="r", pipeline="")
    assert run.target == live.target
    assert (run.pipeline, run.framework) == (live.run.pipeline, live.run.framework)
    assert case.id == f"{root.context.trace_id:032x}-{root.context.span_id:016x}"
