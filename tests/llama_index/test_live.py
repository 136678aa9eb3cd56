"""From a query engine through a real monitor to a score, in the background or inline."""

import asyncio

import pytest

from llama_index.evaluation.ragaliq import attach, detach
from ragaliq import Monitor, Status
from ragaliq.testing import ScriptedJudge

QUESTION = "How long do refunds take?"


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
    settings = {"judge": judge, "evaluators": ["relevance"], "on_result": results.append}
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
