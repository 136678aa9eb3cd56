"""Line 11: evaluators given other kinds of inputs, and the application's own model as the judge."""

import json

import pytest
from langchain_parts import Finding, judging, rag
from langchain_parts import model as langchain_model
from llama_index.core.base.response.schema import Response
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index_parts import Model
from rag_parts import QUESTION

from langchain_ragaliq import RagaliqCallbackHandler, RagaliqGuard
from llama_index.evaluation.ragaliq import (
    FaithfulnessEvaluator,
    HallucinationEvaluator,
    RelevancyEvaluator,
)
from ragaliq import ConfigurationError, ContextChunk
from ragaliq.testing import ScriptedJudge

CONTEXTS = ["Refunds take five days.", "The shop opens at nine."]
SUPPORTED = "Refunds take five days."
EVALUATORS = [FaithfulnessEvaluator, HallucinationEvaluator, RelevancyEvaluator]


@pytest.fixture
def judge(loop_of_synchronous_calls):
    return ScriptedJudge(relevance=0.9)


def nodes():
    return [NodeWithScore(node=TextNode(text=text)) for text in CONTEXTS]


def test_contexts_may_be_chunks_with_ids_or_one_text(judge):
    chunks = [ContextChunk(text=text, id=f"doc-{place}") for place, text in enumerate(CONTEXTS)]
    result = FaithfulnessEvaluator(judge).evaluate(QUESTION, SUPPORTED, chunks)
    twice = FaithfulnessEvaluator(judge).evaluate(QUESTION, SUPPORTED, [chunks[0], chunks[0]])

    assert result.claims[0].supporting_chunk_ids == ("doc-0",)
    assert result.contexts == CONTEXTS
    assert FaithfulnessEvaluator(judge).evaluate(QUESTION, SUPPORTED, SUPPORTED).score == 1.0
    assert (twice.invalid_result, twice.score) == (True, None)


async def test_objects_are_read_where_texts_are_expected(judge):
    response = Response(SUPPORTED, source_nodes=nodes())
    given = {"query": QueryBundle(QUESTION), "response": response}
    for evaluator_class in EVALUATORS:
        evaluator = evaluator_class(judge)
        for result in (
            evaluator.evaluate(**given),
            await evaluator.aevaluate(**given),
            evaluator.evaluate(**given, contexts=nodes()),
        ):
            assert (result.passing, result.contexts) == (True, CONTEXTS)
            assert (result.query, result.response) == (QUESTION, SUPPORTED)


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"query": 5}, "query must be a text or a QueryBundle, not int"),
        ({"response": 5}, "response must be a text or a response object, not int"),
        ({"contexts": 5}, "contexts must be texts or nodes, not int"),
        ({"contexts": [5]}, "contexts must be texts or nodes, not int"),
    ],
)
async def test_what_is_no_text_makes_an_invalid_result_that_says_so(given, wrong, judge):
    evaluator = FaithfulnessEvaluator(judge)
    given = {"query": QUESTION, "response": SUPPORTED, "contexts": CONTEXTS, **given}
    for result in (evaluator.evaluate(**given), await evaluator.aevaluate(**given)):
        assert (result.invalid_result, result.score) == (True, None)
        assert result.invalid_reason == f"malformed input: {wrong}"
    assert judge.calls == []


def graded(prompt):
    assert any(text in prompt for text in (SUPPORTED, *CONTEXTS))
    form = prompt.rsplit("\n\n", 1)[1]
    if '"verdicts"' in form:
        verdict = {"claim_id": "c1", "reason": "r", "evidence": "", "chunk_ids": [0]}
        return json.dumps({"verdicts": [{**verdict, "verdict": "SUPPORTED", "confidence": 0.9}]})
    if '"claims"' in form:
        return json.dumps({"claims": [SUPPORTED]})
    return json.dumps({"score": 0.75, "reasoning": "to the point"})


@pytest.mark.usefixtures("may_block")  # the first such judge of a process imports prices
@pytest.mark.parametrize("as_argument", ["judge", "llm"])
async def test_a_model_of_the_applications_own_may_judge(as_argument):
    for evaluator_class, score in zip(EVALUATORS, (1.0, 1.0, 0.75), strict=True):
        evaluator = evaluator_class(**{as_argument: Model(reply=graded)})
        for result in (
            evaluator.evaluate(QUESTION, SUPPORTED, CONTEXTS),
            await evaluator.aevaluate(QUESTION, SUPPORTED, CONTEXTS),
        ):
            assert (result.score, result.judge) == (score, "chat-model")
    assert result.usage.requests == 1 + len(CONTEXTS)  # relevance asks about each chunk too


def test_a_model_that_fails_or_talks_makes_an_invalid_result(loop_of_synchronous_calls):
    def fail(prompt):
        raise ConnectionError("Refunds take five days.")

    result = RelevancyEvaluator(llm=Model(reply=fail)).evaluate(QUESTION, SUPPORTED)
    assert result.invalid_reason == "judge_error: unknown could not be asked: ConnectionError"
    chat = RelevancyEvaluator(llm=Model(reply=lambda prompt: "Hello!"))
    assert chat.evaluate(QUESTION, SUPPORTED).invalid_result


def test_judge_and_llm_exclude_each_other(judge):
    with pytest.raises(ConfigurationError, match="give judge or llm, not both"):
        FaithfulnessEvaluator(judge, llm=Model(reply=graded))


def test_a_chat_model_of_langchains_is_the_judge_of_handlers_and_guards(watch):
    results = []
    judge = langchain_model(judging)
    handler = RagaliqCallbackHandler(
        judge=judge, metrics=["faithfulness"], on_result=results.append
    )
    rag(Finding()).invoke(QUESTION, {"callbacks": [handler]})
    assert handler.monitor.close(30)
    (result,) = results
    found = result.results["faithfulness"]
    assert (found.claims[0].verdict, found.usage.input_tokens) == ("CONTRADICTED", 14)
    guard = RagaliqGuard(rag(Finding()), judge=judge, fallback="I do not know.")
    assert guard.invoke(QUESTION).text == "I do not know."
    guard.guard.monitor.close(5)
    assert watch.monitor.stats().started == 0
