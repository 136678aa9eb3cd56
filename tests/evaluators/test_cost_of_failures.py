"""What was paid before something failed is reported with the failure, each call once."""

import asyncio

import pytest

from ragaliq import (
    ContextPrecisionEvaluator,
    ContextRecallEvaluator,
    FaithfulnessEvaluator,
    HallucinationEvaluator,
    JudgeAPIError,
    JudgeResponseError,
    JudgeUsage,
    RAGTestCase,
    RelevanceEvaluator,
    ScoringPolicy,
    evaluate,
)
from ragaliq.evaluators import evaluate_case
from ragaliq.judges import VerdictsResult
from ragaliq.testing import PlainScriptedJudge, ScriptedJudge

CALL = JudgeUsage(input_tokens=10, requests=1, cost_usd=0.01)
CASE = RAGTestCase(
    query="q",
    context=["Alpha is one.", "Beta is two."],
    response="Alpha is one. Beta is two.",
    expected_answer="Alpha is one. Beta is two.",
)


def down():
    return JudgeAPIError("down", usage=CALL)


def results(judge, *evaluators, deadline=None):
    return asyncio.run(evaluate_case(CASE, evaluators, judge, deadline=deadline))


def spent(judge, *evaluators, **options):
    usage = sum((r.usage for r in results(judge, *evaluators, **options).values()), JudgeUsage())
    assert usage.cost_usd == pytest.approx(0.01 * usage.requests)
    assert usage.total_tokens == 10 * usage.requests
    return usage.requests


def made(judge):
    return sum(judge.call_counts.values())


@pytest.mark.parametrize(
    ("judge_class", "method", "evaluators"),
    [
        (ScriptedJudge, "extract_statements", [FaithfulnessEvaluator()]),
        (ScriptedJudge, "verify_claims", [FaithfulnessEvaluator(), HallucinationEvaluator()]),
        (ScriptedJudge, "grade_statements", [FaithfulnessEvaluator(strategy="single_pass")]),
        (ScriptedJudge, "evaluate_relevance", [RelevanceEvaluator(), FaithfulnessEvaluator()]),
        (ScriptedJudge, "verify_claims", [ContextRecallEvaluator()]),
        (PlainScriptedJudge, "verify_claim", [FaithfulnessEvaluator(), HallucinationEvaluator()]),
        (PlainScriptedJudge, "evaluate_relevance", [ContextPrecisionEvaluator()]),
    ],
)
@pytest.mark.parametrize("successes", [0, 1])
def test_every_call_is_paid_for_whichever_fails(judge_class, method, evaluators, successes):
    failures = {method: [None] * successes + [down()]}
    judge = judge_class(usage=CALL, failures=failures)
    assert spent(judge, *evaluators) == made(judge)


def test_the_question_before_the_one_that_failed_is_paid_for():
    class Forgetful(ScriptedJudge):
        async def verify_claims(self, claims, context):
            await super().verify_claims(claims, context)
            return VerdictsResult(verdicts=[], usage=CALL)

    judge = Forgetful(usage=CALL, failures={"verify_claims": [None, down()]})
    assert spent(judge, FaithfulnessEvaluator()) == made(judge) == 3


def test_what_was_paid_until_the_deadline_is_counted():
    class Hanging(ScriptedJudge):
        async def verify_claims(self, claims, context):
            await asyncio.Event().wait()

    evaluators = [FaithfulnessEvaluator(), HallucinationEvaluator()]
    assert spent(Hanging(usage=CALL), *evaluators, deadline=0.05) == 1


def test_a_judge_that_raises_something_else_does_not_hide_what_was_paid():
    judge = ScriptedJudge(usage=CALL, failures={"verify_claims": ValueError()})
    assert spent(judge, FaithfulnessEvaluator()) == 1


def test_one_error_object_raised_again_and_again_is_paid_for_once_each_time():
    judge = ScriptedJudge(usage=CALL, failures={"verify_claims": down()})
    run = evaluate([CASE] * 4, judge=judge, metrics=["faithfulness"])
    assert run.usage.requests == made(judge) == 8


def test_an_unusable_reply_the_policy_tolerates_is_paid_for():
    bad = JudgeResponseError("unusable", usage=CALL)
    judge = PlainScriptedJudge(usage=CALL, failures={"verify_claim": [bad]})
    assert spent(judge, FaithfulnessEvaluator(policy=ScoringPolicy.LIVE)) == made(judge) == 4
