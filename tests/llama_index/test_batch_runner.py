"""The evaluators inside LlamaIndex's own batch runner."""

import asyncio

import pytest
from llama_index.core.base.response.schema import Response
from llama_index.core.evaluation import BatchEvalRunner

from llama_index.evaluation.ragaliq import FaithfulnessEvaluator, RelevancyEvaluator

pytestmark = pytest.mark.filterwarnings(r"ignore:asyncio_module\(\) is deprecated")

QUESTIONS = ["How long do refunds take?", "When does the shop open?"]
ANSWERS = ["Refunds take five days.", "The shop opens at ten."]
CONTEXTS = [["Refunds take five days."], ["The shop opens at nine."]]


@pytest.fixture
def no_waiting(monkeypatch):
    """Fails the test when the runner's retries go to sleep."""
    really_sleep = asyncio.sleep

    async def sleep(seconds, *args):
        assert seconds < 1, "the batch runner is retrying"
        return await really_sleep(seconds, *args)

    monkeypatch.setattr(asyncio, "sleep", sleep)


@pytest.fixture
def runner(judge):
    return BatchEvalRunner(
        {"faithfulness": FaithfulnessEvaluator(judge), "relevancy": RelevancyEvaluator(judge)}
    )


async def test_a_batch_of_strings_is_scored(runner, no_waiting):
    results = await runner.aevaluate_response_strs(QUESTIONS, ANSWERS, CONTEXTS)
    assert [result.score for result in results["faithfulness"]] == [1.0, 0.0]
    assert [result.score for result in results["relevancy"]] == [0.9, 0.9]
    assert [result.claims[0].verdict for result in results["faithfulness"]] == [
        "SUPPORTED",
        "NOT_ENOUGH_INFO",
    ]


async def test_a_batch_of_responses_is_scored(runner, nodes, no_waiting):
    responses = [
        Response(answer, source_nodes=nodes(*context))
        for answer, context in zip(ANSWERS, CONTEXTS, strict=True)
    ]
    results = await runner.aevaluate_responses(QUESTIONS, responses)
    assert [result.passing for result in results["faithfulness"]] == [True, False]


async def test_a_judge_that_fails_is_asked_once_and_loses_nobody_elses_result(
    judge, judge_class, no_waiting
):
    broken = judge_class(error=ConnectionError("gone"))
    runner = BatchEvalRunner(
        {"broken": FaithfulnessEvaluator(broken), "relevancy": RelevancyEvaluator(judge)}
    )
    results = await runner.aevaluate_response_strs(QUESTIONS, ANSWERS, CONTEXTS)
    assert [result.invalid_result for result in results["broken"]] == [True, True]
    assert [result.score for result in results["broken"]] == [None, None]
    assert broken.calls == 2
    assert [result.score for result in results["relevancy"]] == [0.9, 0.9]


async def test_missing_inputs_do_not_stop_the_batch(runner, no_waiting):
    results = await runner.aevaluate_response_strs(response_strs=ANSWERS)
    assert [result.invalid_result for result in results["faithfulness"]] == [True, True]
    assert [result.invalid_result for result in results["relevancy"]] == [True, True]
