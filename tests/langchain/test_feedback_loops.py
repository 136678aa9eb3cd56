"""What judges and evaluators run is nobody's traffic, whoever watches the process."""

import asyncio

import pytest
from langchain_classic.evaluation import CriteriaEvalChain, QAEvalChain, load_evaluator
from rag_parts import ANSWER, QUESTION, REFUNDS, model, rag_chain

from asking_judge import AskingJudge
from langchain_ragaliq import RagaliqGuard, attach
from ragaliq import (
    Monitor,
    RAGTestCase,
    evaluate,
    evaluate_async,
)
from ragaliq.testing import ScriptedJudge

pytestmark = pytest.mark.usefixtures("may_block")  # the judges call chains synchronously

CASE = RAGTestCase(query=QUESTION, context=REFUNDS, response=ANSWER)


WAYS = {
    "invoke": lambda chain: asyncio.sleep(0, chain.invoke(QUESTION)),
    "ainvoke": lambda chain: chain.ainvoke(QUESTION),
    "stream": lambda chain: asyncio.sleep(0, list(chain.stream(QUESTION))),
    "abatch": lambda chain: chain.abatch([QUESTION, QUESTION]),
    "to_thread": lambda chain: asyncio.to_thread(chain.invoke, QUESTION),
}


@pytest.fixture(params=WAYS)
def judge(request):
    """Asks a whole RAG chain about everything."""
    chain = rag_chain()
    return AskingJudge(lambda: WAYS[request.param](chain))


@pytest.fixture
def process(new_watch):
    """Watches every chain of the process."""
    watch = new_watch()
    attach(watch.handler)
    return watch


@pytest.mark.parametrize("options", [{}, {"mode": "inline"}])
def test_a_judge_made_of_chains_is_not_captured_in_live_mode(new_watch, judge, options):
    watch = new_watch(judge=judge, **options)
    attach(watch.handler)
    rag_chain().invoke(QUESTION)
    assert watch.stats.outcomes == {"evaluated": 1}
    assert judge.asked == 3


def test_nor_offline(process, judge):
    evaluate([CASE], judge=judge)
    asyncio.run(evaluate_async([CASE], judge=judge))
    assert judge.asked == 6
    assert process.stats.started == 0


def test_nor_in_a_guard(process, judge):
    guard = RagaliqGuard(rag_chain(), judge=judge)
    assert guard.invoke(QUESTION) == ANSWER
    assert guard.guard.monitor.stats().outcomes == {"evaluated": 1}
    guard.guard.monitor.close(1.0)
    assert judge.asked == 2
    assert process.stats.started == 0


def test_a_chain_that_on_result_calls_is_not_captured(new_watch):
    watch = new_watch(metrics=["faithfulness"])
    attach(watch.handler)
    monitor = Monitor(judge=ScriptedJudge(), on_result=lambda result: rag_chain().invoke(QUESTION))
    monitor.evaluate(CASE)
    assert monitor.flush(5)
    assert monitor.stats().callback_errors == 0
    monitor.close(1.0)
    assert watch.stats.started == 0


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_langchains_own_evaluators_are_not_captured(process, mode):
    for evaluator in (
        CriteriaEvalChain.from_llm(model("It is.\nY"), criteria="helpfulness"),
        QAEvalChain.from_llm(model("GRADE: CORRECT")),
        load_evaluator("string_distance"),
    ):
        given = {"prediction": ANSWER}
        given |= {"input": QUESTION} if evaluator.requires_input else {}
        given |= {"reference": ANSWER} if evaluator.requires_reference else {}
        if mode == "sync":
            assert evaluator.evaluate_strings(**given)["score"] is not None
        else:
            assert asyncio.run(evaluator.aevaluate_strings(**given))["score"] is not None
    assert process.stats.started == 0
