"""Lines 8 and 15: several questions in one call, another product's span, and metadata."""

import asyncio
import sys
from types import ModuleType, SimpleNamespace

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_parts import ANSWER, HOURS, REFUNDS, Finding, model, rag
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rag_parts import QUESTION

from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq import Monitor, TelemetryOptions
from ragaliq.testing import ScriptedJudge


@pytest.mark.parametrize("is_async", [False, True])
def test_every_item_of_a_mapped_chain_is_a_run_of_its_own(watch, is_async):
    chain = rag(Finding(), model(lambda messages: f"{ANSWER} {messages[-1].text[-9:]}")).map()
    questions = ["Is it one?", "Or is it two?"]
    if is_async:
        asyncio.run(chain.ainvoke(questions, watch.config))
    else:
        chain.invoke(questions, watch.config)
    assert {case.query: case.response[-5:] for case in watch.cases} == {
        "Is it one?": " one?", "Or is it two?": " two?"
    }  # fmt: skip


def test_a_run_that_answers_several_questions_at_once_is_not_mixed_up(watch):
    chain = RunnableLambda(lambda questions: [model().invoke(q).text for q in questions])
    chain.invoke([QUESTION, "And parcels?"], watch.config)
    assert watch.cases == []
    assert dict(watch.monitor.stats().incomplete) == {"several_questions": 1}


def test_langfuses_span_of_an_asynchronous_run_is_its_target(watch, monkeypatch):
    # Langfuse 5.0.4: the handler is not inline, so that its spans are current in other threads.
    monkeypatch.setitem(sys.modules, "langfuse.langchain", ModuleType("langfuse.langchain"))
    context = trace.SpanContext(0xABC, 0xDEF, is_remote=False)

    class Langfuse(BaseCallbackHandler):
        __module__ = "langfuse.langchain.CallbackHandler"

        def __init__(self):
            self._runs = {}

        def on_chain_start(self, serialized, inputs, *, run_id, parent_run_id=None, **kwargs):
            if parent_run_id is None:
                self._runs[run_id] = SimpleNamespace(_otel_span=trace.NonRecordingSpan(context))

    config = {"callbacks": [watch.handler, Langfuse()]}
    asyncio.run(rag(Finding()).ainvoke(QUESTION, config))
    assert watch.cases
    target = watch.results[0].target
    assert (target.span_id, target.source) == (f"{0xDEF:016x}", "langfuse")


def test_metadata_of_documents_and_of_the_run_reach_the_case(watch):
    config = {**watch.config, "metadata": {"tenant": "acme", "ls_provider": "x", "thread_id": "t"}}
    rag(Finding()).invoke(QUESTION, config)
    assert [chunk.metadata for chunk in watch.only.context] == [
        {"source": "0.md", "page": 0},
        {"source": "1.md", "page": 1},
    ]
    assert watch.only.metadata == {"tenant": "acme", "thread_id": "t"}


def test_metadata_that_cannot_be_read_costs_neither_the_run_nor_the_rest(watch):
    class Row:
        """A lazy attribute whose row is gone."""

        def __str__(self):
            raise LookupError("gone")

        __repr__ = __str__

    endless = {"tenant": "acme"}
    endless["self"] = endless
    odd = {"row": Row(), "rows": [[Row()]], "endless": endless, "tenant": "acme"}
    found = [Document(REFUNDS, metadata=odd)]
    chain = rag(RunnableLambda(lambda asked: found))
    chain.invoke(QUESTION, {**watch.config, "metadata": odd})
    assert watch.only.metadata == watch.only.context[0].metadata == {"tenant": "acme"}


def test_with_content_capture_a_record_names_the_document_and_the_tenant():
    records = []

    class Keeping:
        name = "keeping"

        async def write(self, batch):
            records.extend(batch)

        async def aclose(self):
            pass

    monitor = Monitor(judge=ScriptedJudge(), sinks=[Keeping()], capture_content=True)
    config = {"callbacks": [RagaliqCallbackHandler(monitor)], "metadata": {"tenant": "acme"}}
    rag(Finding()).invoke(QUESTION, config)
    assert monitor.close(30)
    (record,) = records
    assert record.case.metadata == {"tenant": "acme"}
    assert record.case.context[0].metadata == {"source": "0.md", "page": 0}
    assert record.case.sources.context == "prompt"


@pytest.mark.parametrize("may_leave", [True, False])
def test_a_contradicted_claim_points_to_its_file_in_telemetry_where_content_may_leave(may_leave):
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monitor = Monitor(
        judge="local",
        metrics=["faithfulness"],
        executor="thread",
        capture_content=may_leave,
        telemetry=TelemetryOptions(tracer_provider=provider),
    )
    config = {"callbacks": [RagaliqCallbackHandler(monitor)], "metadata": {"tenant": "acme"}}
    wrong = model("Refunds take nine days after the parcel has arrived.")
    rag(Finding(texts=[HOURS, REFUNDS]), wrong).invoke(QUESTION, config)
    assert monitor.close(30)
    by_name = {span.name: dict(span.attributes) for span in spans.get_finished_spans()}
    assert by_name["claim contradicted"]["ragaliq.claim.verdict"] == "CONTRADICTED"
    sources = by_name["claim contradicted"].get("ragaliq.claim.document.sources")
    assert sources == (("1.md",) if may_leave else None)
    said = [attributes.get("metadata") for attributes in by_name.values()]
    assert ('{"tenant": "acme"}' in said) == may_leave
    assert may_leave or not any(".md" in str(held) for held in by_name.values())
