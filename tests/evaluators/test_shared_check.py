"""Faithfulness and hallucination over one case cost what one of them costs."""

import asyncio

import pytest

from ragaliq import FaithfulnessEvaluator, HallucinationEvaluator, RAGTestCase, RelevanceEvaluator
from ragaliq.core.policy import ScoringPolicy
from ragaliq.errors import BudgetExceeded, ConfigurationError, JudgeAPIError, JudgeRefusalError
from ragaliq.evaluators import evaluate_case, resolve_evaluators
from ragaliq.testing import PlainScriptedJudge, ScriptedJudge

CASE = RAGTestCase(query="q", context=["Alpha is one."], response="Alpha is one. Beta is two.")
ALL = (FaithfulnessEvaluator(), HallucinationEvaluator(), RelevanceEvaluator())


ONE_CHECK = resolve_evaluators(
    ["faithfulness", "hallucination", "contradiction_rate", "chunk_utility", "citations"]
)
SINGLY = {"extract_claims": 1, "verify_claim": 2}
TOGETHER = {"extract_statements": 1, "verify_claims": 1}


@pytest.mark.parametrize(
    ("judge", "evaluators", "asked"),
    [
        (ScriptedJudge, ONE_CHECK, TOGETHER),
        (PlainScriptedJudge, ALL[:2], SINGLY),
        (ScriptedJudge, [FaithfulnessEvaluator(strategy="single_pass")], {"grade_statements": 1}),
        (ScriptedJudge, [FaithfulnessEvaluator(strategy="per_claim"), ALL[1]], SINGLY | TOGETHER),
    ],
    ids=["batching judge", "plain judge", "single pass", "two strategies share nothing"],
)
async def test_metrics_with_one_strategy_ask_once(judge, evaluators, asked):
    asking = judge()
    await evaluate_case(CASE, evaluators, asking)
    assert asking.call_counts == asked


async def test_results_come_in_order_and_agree_and_the_shared_cost_is_reported_once():
    alone = await FaithfulnessEvaluator().evaluate(CASE, ScriptedJudge())
    results = await evaluate_case(CASE, ALL, ScriptedJudge())
    assert list(results) == ["faithfulness", "hallucination", "relevance"]
    assert results["faithfulness"].score == results["hallucination"].score == 0.5
    assert results["faithfulness"].usage == alone.usage
    assert results["hallucination"].usage.requests == results["hallucination"].tokens_used == 0


async def test_a_failed_check_costs_one_metric_its_tokens_and_gives_both_a_status():
    judge = ScriptedJudge(failures={"verify_claims": JudgeRefusalError("declined")})
    results = await evaluate_case(CASE, ALL, judge)
    assert results["faithfulness"].status == "judge_refused"
    assert results["hallucination"].status == "judge_refused"
    assert results["hallucination"].usage.requests == 0
    assert results["relevance"].status == "scored"


async def test_a_hanging_check_times_out_for_both_keeps_other_metrics_and_leaves_no_task():
    class Hanging(ScriptedJudge):
        async def verify_claims(self, claims, context):
            await asyncio.Event().wait()

    results = await evaluate_case(CASE, ALL, Hanging(), deadline=0.05)
    assert [result.status for result in results.values()] == [*["judge_timeout"] * 2, "scored"]
    for _ in range(10):  # cancellation travels one task a turn
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_alone_an_evaluator_raises_what_its_policy_says():
    judge = ScriptedJudge(failures={"extract_statements": JudgeAPIError("down")})
    with pytest.raises(JudgeAPIError):
        await FaithfulnessEvaluator().evaluate(CASE, judge)
    result = await FaithfulnessEvaluator(policy=ScoringPolicy.LIVE).evaluate(CASE, judge)
    assert (result.status, result.score, result.error) == ("judge_error", None, "down")


@pytest.mark.parametrize(
    ("error", "status", "error_type"),
    [
        (ValueError("secret"), "judge_error", "ValueError"),
        (BudgetExceeded("secret"), "judge_error", "BudgetExceeded"),
        (asyncio.CancelledError(), "judge_error", "CancelledError"),
        (TimeoutError("after 3 s: secret"), "judge_timeout", "JudgeTimeoutError"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
async def test_whatever_a_judge_raises_ends_only_its_metric_and_quotes_nothing(
    error, status, error_type
):
    judge = ScriptedJudge(failures={"evaluate_relevance": error})
    results = await evaluate_case(CASE, ALL, judge)
    failed = results["relevance"]
    assert (failed.status, failed.error_type) == (status, error_type)
    assert "secret" not in failed.model_dump_json()
    assert "None" not in failed.error
    assert results["faithfulness"].status == "scored"


async def test_a_wrong_configuration_ends_all_metrics():
    judge = ScriptedJudge(failures={"evaluate_relevance": ConfigurationError("wrong")})
    with pytest.raises(ConfigurationError):
        await evaluate_case(CASE, ALL, judge)


async def test_cancelling_the_evaluation_cancels_the_judge_and_is_not_a_result():
    asked = asyncio.Event()

    class Hanging(ScriptedJudge):
        async def evaluate_relevance(self, query, response):
            asked.set()
            await asyncio.Event().wait()

    evaluation = asyncio.ensure_future(evaluate_case(CASE, ALL, Hanging()))
    await asked.wait()
    evaluation.cancel()
    with pytest.raises(asyncio.CancelledError):
        await evaluation


async def test_a_metric_that_measures_in_its_own_way_is_asked_to():
    class Lenient(FaithfulnessEvaluator):
        async def measure(self, test_case, judge):
            result = await super().measure(test_case, judge)
            return result.model_copy(update={"reasoning": "Measured differently."})

    results = await evaluate_case(CASE, [Lenient(), HallucinationEvaluator()], ScriptedJudge())
    assert results["faithfulness"].reasoning == "Measured differently."
