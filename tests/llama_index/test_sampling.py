"""Real engines chosen for their tags, their errors and their nodes' scores."""

import pytest
from llama_index.core.instrumentation.dispatcher import instrument_tags
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode
from opentelemetry.sdk.trace import TracerProvider

from llama_index.evaluation.ragaliq import attach, detach
from ragaliq import Monitor, OnError, OnFeedback, OnLowScore, OnTag, Sampling

QUESTION = "How long do refunds take?"


@pytest.fixture
def chosen_by(judge):
    """Attaches a monitor on which nothing but these rules chooses a run."""
    monitors = []

    def build(*rules):
        results = []
        monitor = Monitor(
            judge=judge, sampling=Sampling(rate=0.0, rules=rules), on_result=results.append
        )
        monitors.append(monitor)
        attach(monitor, pipeline="shop")

        def reasons():
            assert monitor.flush(10)
            return [result.run.sampling_reason for result in results]

        return monitor, reasons

    yield build
    detach()
    for monitor in monitors:
        monitor.close(5)


@pytest.mark.parametrize("tags", [{"tags": ["beta", "x"]}, {"beta": True}, {"kind": "beta"}])
def test_an_engine_with_a_tag(chosen_by, engine, tags):
    monitor, reasons = chosen_by(OnTag(["beta", "kind=beta"]))
    with instrument_tags(tags):
        engine().query(QUESTION)
    with instrument_tags({"beta": False, "session_id": "beta"}):
        engine().query(QUESTION)
    assert reasons() == ["tag"]
    assert monitor.stats().outcomes == {"evaluated": 1, "sampled_out": 1}


async def test_an_engine_in_which_something_failed(chosen_by, engine, scripted_llm):
    monitor, reasons = chosen_by(OnError())

    def fail(prompt):
        raise TimeoutError

    class Fallback(CustomQueryEngine):
        async def acustom_query(self, query_str: str):
            try:
                return await engine(llm=scripted_llm(reply=fail)).aquery(query_str)
            except TimeoutError:
                return await engine().aquery(query_str)

        def custom_query(self, query_str: str):
            raise NotImplementedError

    await Fallback().aquery(QUESTION)
    await engine().aquery(QUESTION)
    assert reasons() == ["error"]
    assert monitor.stats().outcomes == {"evaluated": 1, "sampled_out": 1}


def test_an_engine_whose_nodes_scored_low(chosen_by, engine, retriever_class):
    def find(question):
        score = 0.1 if "refunds" in question else 0.9
        return [NodeWithScore(node=TextNode(text="Refunds take five days."), score=score)]

    monitor, reasons = chosen_by(OnLowScore(0.3))
    asked = engine(retriever=retriever_class(find))
    asked.query(QUESTION)
    str(engine(retriever=retriever_class(find), streaming=True).query(QUESTION))
    asked.query("When do you open?")
    assert reasons() == ["low_score", "low_score"]
    assert monitor.stats().outcomes == {"evaluated": 2, "sampled_out": 1}


def test_a_complaint_by_the_trace_the_query_was_in(chosen_by, engine):
    monitor, reasons = chosen_by(OnFeedback())
    with TracerProvider().get_tracer("app").start_as_current_span("request") as span:
        engine().query(QUESTION)
    engine().query(QUESTION)
    assert reasons() == []
    assert monitor.feedback(f"{span.get_span_context().trace_id:032x}", value=False)
    assert reasons() == ["feedback"]
    assert monitor.stats().sampling == {"held": 1}
