"""What judges and evaluators run is nobody's traffic, whoever watches the process."""

from __future__ import annotations

import asyncio

import pytest
from langchain_classic.evaluation import CriteriaEvalChain, QAEvalChain, load_evaluator
from rag_parts import ANSWER, QUESTION, REFUNDS, model, rag_chain

from langchain_ragaliq import RagaliqGuard, attach
from ragaliq import (
    ClaimsResult,
    ClaimVerdict,
    JudgeResult,
    LLMJudge,
    Monitor,
    RAGTestCase,
    evaluate,
    evaluate_async,
)
from ragaliq.testing import ScriptedJudge

pytestmark = pytest.mark.usefixtures("may_block")  # the judges call chains synchronously

CASE = RAGTestCase(query=QUESTION, context=REFUNDS, response=ANSWER)


class ChainJudge(LLMJudge):
    """Asks a whole RAG chain about everything, the way `how` says."""

    name = "chain"

    def __init__(self, how):
        self._chain = rag_chain()
        self._how = how
        self.asked = 0

    async def _ask(self):
        self.asked += 1
        if self._how == "invoke":
            self._chain.invoke(QUESTION)
        elif self._how == "ainvoke":
            await self._chain.ainvoke(QUESTION)
        elif self._how == "stream":
            list(self._chain.stream(QUESTION))
        elif self._how == "abatch":
            await self._chain.abatch([QUESTION, QUESTION])
        else:
            await asyncio.to_thread(self._chain.invoke, QUESTION)

    async def extract_claims(self, response):
        await self._ask()
        return ClaimsResult(claims=[response], tokens_used=1)

    async def verify_claim(self, claim, context):
        await self._ask()
        return ClaimVerdict(verdict="SUPPORTED")

    async def evaluate_relevance(self, query, response):
        await self._ask()
        return JudgeResult(score=1.0, reasoning="", tokens_used=1)


@pytest.fixture(params=["invoke", "ainvoke", "stream", "abatch", "to_thread"])
def judge(request):
    return ChainJudge(request.param)


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


def test_nor_when_asked_directly_on_the_applications_loop(process, judge):
    monitor = Monitor(judge=judge, evaluators=["faithfulness"])
    asyncio.run(monitor.aevaluate(CASE))
    assert monitor.stats().outcomes == {"evaluated": 1}
    monitor.close(1.0)
    assert process.stats.started == 0


def test_a_chain_that_on_result_calls_is_not_captured(new_watch):
    watch = new_watch(evaluators=["faithfulness"])
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
