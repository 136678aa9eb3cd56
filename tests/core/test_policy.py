"""The table of awkward cases (product page), as far as a plain judge can show it."""

from __future__ import annotations

import math

import pytest

from ragaliq import (
    DatasetError,
    FaithfulnessEvaluator,
    JudgeRefusalError,
    JudgeResponseError,
    RAGTestCase,
    ScoringPolicy,
)
from ragaliq.testing import ScriptedJudge

CASE = RAGTestCase(query="q", context=["Alpha is one."], response="Alpha is one.")
P = ScoringPolicy


async def score(policy, judge, case=CASE):
    return await FaithfulnessEvaluator(policy=policy).evaluate(case, judge)


@pytest.mark.parametrize(
    ("policy", "expected", "passed"),
    [(P.RAGALIQ, 1.0, True), (P.RAG_EVALS, 0.0, False), (P.PROMPTFOO, 0.0, False)],
    ids=lambda value: getattr(value, "name", str(value)),
)
async def test_no_claims(policy, expected, passed):
    result = await score(policy, ScriptedJudge(claims=[]))
    assert (result.score, result.passed, result.status) == (expected, passed, "no_claims")


@pytest.mark.parametrize(
    ("policy", "passed"),
    [
        (P.RAGALIQ, True),
        (P.RAGAS, False),
        (P.RAG_EVALS, False),
        (P.PROMPTFOO, False),
        (P.LIVE, None),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
async def test_a_blank_answer_has_a_status_of_its_own_and_no_judge_is_asked(policy, passed):
    judge = ScriptedJudge()
    blank = CASE.model_copy(update={"response": " \n"})
    result = await score(policy, judge, blank)
    assert (result.status, result.passed, judge.calls) == ("empty_answer", passed, [])


async def test_no_claims_is_undefined_for_ragas_and_no_score_live():
    undefined = await score(P.RAGAS, ScriptedJudge(claims=[]))
    assert math.isnan(undefined.score)
    assert not undefined.passed
    assert (await score(P.LIVE, ScriptedJudge(claims=[]))).score is None


def failing(error):
    return ScriptedJudge(failures={"verify_claims": error})


@pytest.mark.parametrize("policy", [P.RAGALIQ, P.RAG_EVALS], ids=lambda p: p.name)
@pytest.mark.parametrize("error", [JudgeRefusalError, JudgeResponseError])
async def test_refusals_and_unusable_replies_raise(policy, error):
    with pytest.raises(error):
        await score(policy, failing(error("no")))


async def test_refusals_and_unusable_replies_are_undefined_for_ragas():
    assert math.isnan((await score(P.RAGAS, failing(JudgeRefusalError("no")))).score)
    assert math.isnan((await score(P.RAGAS, failing(JudgeResponseError("no")))).score)


async def test_promptfoo_scores_a_refusal_zero_and_no_verdict_a_half_and_fails_both():
    refused = await score(P.PROMPTFOO, failing(JudgeRefusalError("no")))
    assert (refused.score, refused.passed) == (0.0, False)
    lenient = FaithfulnessEvaluator(threshold=0.5, policy=P.PROMPTFOO)
    unusable = await lenient.evaluate(CASE, failing(JudgeResponseError("no")))
    assert (unusable.score, unusable.passed) == (0.5, False)


@pytest.mark.parametrize(
    ("error", "status"),
    [(JudgeRefusalError("no"), "judge_refused"), (JudgeResponseError("no"), "judge_error")],
)
async def test_live_a_judges_failure_is_a_status_and_never_a_score(error, status):
    result = await score(P.LIVE, failing(error))
    assert (result.score, result.passed, result.status) == (None, None, status)


WITHOUT_CONTEXT = RAGTestCase(id="bare", query="q", context=["  "], response="Alpha is one.")


async def test_ragaliq_gives_claims_without_context_not_enough_info_without_asking():
    judge = ScriptedJudge()
    result = await score(P.RAGALIQ, judge, WITHOUT_CONTEXT)
    assert (result.score, result.status) == (0.0, "scored")
    assert judge.call_counts == {"extract_statements": 1}


async def test_ragas_refuses_a_case_without_context_by_its_id():
    with pytest.raises(DatasetError, match="'bare' has no context"):
        await score(P.RAGAS, ScriptedJudge(), WITHOUT_CONTEXT)


@pytest.mark.parametrize("policy", [P.RAG_EVALS, P.PROMPTFOO], ids=lambda p: p.name)
async def test_others_ask_the_judge_without_context_all_the_same(policy):
    judge = ScriptedJudge()
    await score(policy, judge, WITHOUT_CONTEXT)
    assert judge.call_counts["verify_claims"] == 1


async def test_live_a_case_without_context_is_not_judged():
    judge = ScriptedJudge()
    result = await score(P.LIVE, judge, WITHOUT_CONTEXT)
    assert (result.score, result.status) == (None, "no_context")
    assert not judge.call_counts


async def test_live_an_answer_that_declines_is_not_judged():
    judge = ScriptedJudge()
    case = RAGTestCase(query="q", context=["c"], response="I don't know.")
    result = await score(P.LIVE, judge, case)
    assert (result.score, result.status) == (None, "answer_refused")
    assert not judge.call_counts


@pytest.mark.parametrize(
    ("score", "threshold", "passes"),
    [
        (0.1 + 0.2, 0.3, True),
        (0.3, 0.1 + 0.2, True),
        (0.7 - 1e-10, 0.7, True),
        (0.7 - 1e-6, 0.7, False),
        (math.nan, 0.0, False),
    ],
)
def test_a_score_passes_from_the_threshold_on_with_room_for_rounding(score, threshold, passes):
    assert FaithfulnessEvaluator(threshold).is_passing(score) is passes


def test_a_policy_of_the_users_own_starts_from_a_preset():
    strict = P.RAGALIQ.model_copy(update={"name": "strict", "empty_context": "error"})
    assert strict.no_claims == P.RAGALIQ.no_claims


class Forgetful(ScriptedJudge):
    """Decides the first of the claims it is asked about, and supports it."""

    async def verify_claims(self, claims, context):
        reply = await super().verify_claims(claims[:1], context)
        return reply.model_copy(update={"tokens_used": 1})


TWO_CLAIMS = RAGTestCase(query="q", context=["c"], response="Alpha is one. Beta is two.")
FOUR_CLAIMS = RAGTestCase(query="q", context=["c"], response="One is. Two is. Three is. Four is.")


async def test_fewer_verdicts_ragaliq_asks_again_and_then_raises():
    judge = Forgetful(verdicts="SUPPORTED")
    assert (await score(P.RAGALIQ, judge, TWO_CLAIMS)).score == 1.0
    assert judge.call_counts["verify_claims"] == 2
    with pytest.raises(JudgeResponseError, match="2 of 4 claims"):
        await score(P.RAGALIQ, Forgetful(verdicts="SUPPORTED"), FOUR_CLAIMS)


async def test_fewer_verdicts_live_asks_again_and_then_is_partial():
    result = await score(P.LIVE, Forgetful(verdicts="SUPPORTED"), FOUR_CLAIMS)
    assert (result.score, result.status) == (1.0, "partial")


@pytest.mark.parametrize("policy", [P.RAGAS, P.PROMPTFOO], ids=lambda p: p.name)
async def test_fewer_verdicts_shorten_the_denominator_without_asking_again(policy):
    judge = Forgetful(verdicts="CONTRADICTED")
    result = await score(policy, judge, FOUR_CLAIMS)
    assert (result.score, result.raw_response["total_claims"]) == (0.0, 1)
    assert judge.call_counts["verify_claims"] == 1


async def test_fewer_verdicts_are_an_error_for_rag_evals():
    judge = Forgetful(verdicts="SUPPORTED")
    with pytest.raises(JudgeResponseError, match="3 of 4 claims"):
        await score(P.RAG_EVALS, judge, FOUR_CLAIMS)
    assert judge.call_counts["verify_claims"] == 1
