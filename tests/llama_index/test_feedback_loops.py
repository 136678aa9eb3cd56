"""What judges and evaluators run is nobody's traffic, whoever watches the process."""

import asyncio

import pytest
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.evaluation import (
    ContextRelevancyEvaluator,
    RelevancyEvaluator,
)
from llama_index.core.evaluation import FaithfulnessEvaluator as LlamaFaithfulness
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.settings import Settings

from asking_judge import AskingJudge
from llama_index.evaluation.ragaliq import FaithfulnessEvaluator, GuardedQueryEngine, attach
from ragaliq import (
    Monitor,
    RAGTestCase,
    evaluate,
    evaluate_async,
    suppress,
)

pytestmark = pytest.mark.filterwarnings(r"ignore:asyncio_module\(\) is deprecated")

QUESTION = "How long do refunds take?"
ANSWER = "Refunds take five days."
CASE = RAGTestCase(query=QUESTION, context=[ANSWER], response=ANSWER)


@pytest.fixture(params=["query", "aquery", "stream", "to_thread", "stream_chat"])
def judge(request, engine, retriever, llm, may_block):
    built = engine(streaming=request.param == "stream")
    chat = ContextChatEngine.from_defaults(
        retriever=retriever,
        llm=llm,
        memory=ChatMemoryBuffer.from_defaults(token_limit=3000, tokenizer_fn=str.split),
    )

    async def ask():
        if request.param in {"query", "stream"}:
            str(built.query(QUESTION))
        elif request.param == "aquery":
            await built.aquery(QUESTION)
        elif request.param == "to_thread":
            await asyncio.to_thread(built.query, QUESTION)
        else:
            list(chat.stream_chat(QUESTION).response_gen)

    return AskingJudge(ask)


@pytest.fixture(params=["background", "inline"])
def live(request, judge):
    built = Monitor(judge=judge, mode=request.param)
    attach(built)
    yield built
    built.close(1.0)


def test_a_judge_made_of_engines_is_not_captured_in_live_mode(live, judge, engine):
    asyncio.run(engine().aquery(QUESTION))
    assert live.flush(30)
    assert live.stats().outcomes == {"evaluated": 1}
    assert (live.stats().started, judge.asked) == (1, 3)


def test_nor_offline(handler, monitor, judge):
    evaluate([CASE], judge=judge)
    asyncio.run(evaluate_async([CASE], judge=judge))
    assert FaithfulnessEvaluator(judge).evaluate(QUESTION, ANSWER, [ANSWER]).passing
    assert judge.asked == 8
    assert monitor.stats().started == 0


def test_nor_in_a_guard(handler, monitor, judge, engine):
    guarded = GuardedQueryEngine(engine(), judge=judge)
    assert guarded.query(QUESTION).response == ANSWER
    assert judge.asked == 2
    assert monitor.outcomes == {}
    guarded.guard.monitor.close(1.0)


@pytest.fixture
def evaluators(llm, monkeypatch):
    """LlamaIndex's own evaluators that ask query engines of theirs."""
    monkeypatch.setattr(Settings, "_embed_model", MockEmbedding(embed_dim=3))
    return [LlamaFaithfulness(llm), RelevancyEvaluator(llm), ContextRelevancyEvaluator(llm)]


def test_llama_indexs_own_evaluators_are_not_captured(handler, monitor, evaluators):
    for evaluator in evaluators:
        assert evaluator.evaluate(QUESTION, ANSWER, [ANSWER]).query == QUESTION
        asyncio.run(evaluator.aevaluate(QUESTION, ANSWER, [ANSWER]))
    assert monitor.stats().started == 0


async def test_what_an_application_asks_is_captured_beside_them(
    handler, monitor, evaluators, engine
):
    await asyncio.gather(
        evaluators[0].aevaluate(QUESTION, ANSWER, [ANSWER]), engine().aquery(QUESTION)
    )
    assert monitor.only == (QUESTION, [ANSWER, "The shop opens at nine."], ANSWER)


def test_whatever_else_is_left_out_by_suppress(handler, monitor, engine):
    with suppress():
        engine().query(QUESTION)
    assert monitor.stats().started == 0
