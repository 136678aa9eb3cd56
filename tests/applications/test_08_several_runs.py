"""Line 8: several questions in one call, and another product's span as the target."""

import asyncio
import sys
from types import ModuleType, SimpleNamespace

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableLambda
from langchain_parts import ANSWER, Finding, model, rag
from opentelemetry import trace
from rag_parts import QUESTION


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
