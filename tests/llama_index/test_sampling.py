"""Runs chosen for their tags, errors and scores, and scored by a real monitor."""

import asyncio

import pytest
from llama_index.core.instrumentation.dispatcher import instrument_tags
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode
from opentelemetry.sdk.trace import TracerProvider

from llama_index.evaluation.ragaliq import attach, detach
from ragaliq import Monitor, OnError, OnFeedback, OnLowScore, OnTag, Sampling, Status
from ragaliq.testing import ScriptedJudge

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


@pytest.fixture
def results():
    return []


@pytest.fixture
def live(judge, results):
    with Monitor(judge=judge, on_result=results.append) as monitor:
        attach(monitor, pipeline="shop")
        yield monitor
        detach()


def test_an_answer_is_scored_claim_by_claim(live, results, engine):
    engine().query(QUESTION)
    assert live.flush(timeout=10.0)
    (result,) = results
    faithfulness = result.results["faithfulness"]
    assert (faithfulness.score, faithfulness.status) == (1.0, Status.SCORED)
    assert faithfulness.claims[0].supporting_chunk_ids == ("n0",)
    assert (result.pipeline, result.run.framework) == ("shop", "llama_index")
    assert result.run.run_id.startswith("RetrieverQueryEngine.query-")


def test_one_of_llama_indexs_models_may_judge(engine, scripted_llm, results):
    judge = scripted_llm(reply=lambda prompt: '{"score": 0.75, "reasoning": "to the point"}')
    settings = {"judge": judge, "metrics": ["relevance"], "on_result": results.append}
    handler = attach(**settings)
    assert attach(**settings) is handler
    with handler.monitor as monitor:
        engine().query(QUESTION)
        assert monitor.flush(timeout=10.0)
    assert [result.results["relevance"].score for result in results] == [0.75]
    assert monitor.stats().started == 1


def test_the_handler_explains_its_latest_runs(engine, judge, results):
    handler = attach(judge=judge, on_result=results.append)
    engine().query(QUESTION)
    assert handler.monitor.flush(timeout=10.0)
    (result,) = results
    explained = handler.explain(result.run.run_id)
    assert explained.outcome == "submitted"
    assert (explained.sources.question, explained.sources.context) == (
        "input.str_or_query_bundle",
        "prompt",
    )
    assert explained.contexts == tuple(result.case.context_texts)
    assert handler.explain("another") is None
    handler.monitor.close(1.0)


def test_inline_the_result_is_there_or_can_be_awaited(engine):
    async def request(question):
        await engine().aquery(question)
        return (await inline.result()).case.query

    async def requests():
        return await asyncio.gather(*map(request, "abc"))

    with Monitor(judge=ScriptedJudge(), mode="inline") as inline:
        attach(inline)
        assert asyncio.run(requests()) == ["a", "b", "c"]
        engine(streaming=True).query("streamed").get_response()
        assert inline.last_result.case.query == "streamed"
