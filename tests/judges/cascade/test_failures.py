"""What becomes of a claim when a judge of the cascade fails: never a silent acceptance."""

import pytest

from ragaliq import (
    BudgetExceeded,
    CascadeJudge,
    FaithfulnessEvaluator,
    JudgeAPIError,
    JudgeRefusalError,
    JudgeResponseError,
    JudgeTimeoutError,
    JudgeUsage,
    RAGTestCase,
    ScoringPolicy,
    Status,
)
from ragaliq.testing import ScriptedJudge

CONTEXT = ["A context."]
CLAIMS = ["claim 0.02", "claim 0.5", "claim 0.98"]
COST = JudgeUsage(input_tokens=100, requests=1)


class Forgetful(ScriptedJudge):
    """Leaves a claim out, as often as it is asked."""

    name = "forgetful"

    async def verify_claims(self, claims, context):
        reply = await super().verify_claims(claims, context)
        kept = [v for v in reply.verdicts if claims[v.index] != "claim 0.5"]
        return reply.model_copy(update={"verdicts": kept})


def failing(error):
    judge = ScriptedJudge(failures={"verify_claims": error}, usage=COST)
    judge.name = "better"
    return judge


def cascade(screen, better, calibration):
    return CascadeJudge(screen, better, escalate=0.3, audit=0.0, calibration=calibration)


def case():
    return RAGTestCase(query="q", context=CONTEXT, response="An answer.")


async def evaluated(judge, **policy):
    chosen = ScoringPolicy.LIVE.model_copy(update=policy)
    return await FaithfulnessEvaluator(policy=chosen).evaluate(case(), judge)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (JudgeAPIError("down"), Status.JUDGE_ERROR),
        (JudgeTimeoutError("late"), Status.JUDGE_TIMEOUT),
        (JudgeRefusalError("no"), Status.JUDGE_REFUSED),
    ],
)
async def test_the_next_judges_failure_is_the_answers_status(
    scripted_screen, calibration, error, status
):
    result = await evaluated(cascade(scripted_screen, failing(error), calibration))
    assert result.status is status
    assert result.score is None
    assert result.claims == ()


async def test_what_was_paid_before_a_failure_is_counted_and_a_spent_budget_raises(
    scripted_screen, calibration
):
    error = JudgeAPIError("down", usage=JudgeUsage(input_tokens=7, requests=1))
    judge = cascade(scripted_screen, failing(error), calibration)
    with pytest.raises(JudgeAPIError) as raised:
        await judge.verify_claims(CLAIMS, CONTEXT)
    assert raised.value.usage == JudgeUsage(input_tokens=7, requests=2)  # with the screen's own
    with pytest.raises(BudgetExceeded):
        await cascade(scripted_screen, failing(BudgetExceeded("spent")), calibration).verify_claims(
            CLAIMS, CONTEXT
        )


async def test_a_verdict_that_is_missing_is_asked_again_and_then_stays_open(
    scripted_screen, calibration
):
    forgetful = Forgetful(verdicts="SUPPORTED")
    result = await evaluated(cascade(scripted_screen, forgetful, calibration))
    assert result.status is Status.PARTIAL
    assert [(c.verdict, c.decided_by) for c in result.claims] == [
        ("NOT_ENOUGH_INFO", "screen"),
        (None, ""),
        ("SUPPORTED", "screen"),
    ]
    assert [call.arguments["claims"] for call in forgetful.calls] == [["claim 0.5"]] * 2


async def test_one_pass_does_not_hide_a_missing_verdict(scripted_screen, calibration):
    judge = cascade(scripted_screen, Forgetful(verdicts="SUPPORTED"), calibration)
    with pytest.raises(JudgeResponseError, match="1 of 3"):
        await judge.grade_statements("q", "An answer.", CONTEXT)
    with pytest.raises(JudgeResponseError, match="no verdict"):
        await judge.verify_claim("claim 0.5", CONTEXT)


async def test_when_the_screen_fails_the_next_judge_decides(better):
    broken = failing(JudgeAPIError("down", usage=COST))
    broken.name = "broken"
    reply = await CascadeJudge(broken, better).verify_claims(CLAIMS, CONTEXT)
    assert {verdict.decided_by for verdict in reply.verdicts} == {"better"}
    assert len(reply.verdicts) == 3
    assert reply.usage.input_tokens == COST.input_tokens


async def test_two_different_verdicts_for_one_claim_are_none(screen, better):
    class Torn(ScriptedJudge):
        name = "torn"

        async def verify_claims(self, claims, context):
            reply = await super().verify_claims(claims, context)
            other = reply.verdicts[0].model_copy(update={"verdict": "CONTRADICTED"})
            return reply.model_copy(update={"verdicts": [*reply.verdicts, other]})

    reply = await CascadeJudge(screen, Torn(verdicts="SUPPORTED")).verify_claims(CLAIMS, CONTEXT)
    assert [verdict.index for verdict in reply.verdicts] == [1, 2]
