"""Verdicts are matched by claim; only missing ones are asked again."""

from __future__ import annotations

from unittest.mock import AsyncMock, MagicMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragaliq import FaithfulnessEvaluator, RAGTestCase
from ragaliq.core.policy import ScoringPolicy
from ragaliq.errors import JudgeResponseError
from ragaliq.evaluators.claims import verdicts_for
from ragaliq.judges.base import BatchingJudge, ClaimsResult, ClaimVerdict, VerdictsResult
from ragaliq.testing import PlainScriptedJudge, ScriptedJudge

CASE = RAGTestCase(query="q", context=["A. B. C."], response="A. B. C.")
CLAIMS = ["A", "B", "C"]


def verdict(index, value="SUPPORTED"):
    return ClaimVerdict(index=index, verdict=value)


class Replying(ScriptedJudge):
    """Answers each verification with the next of the given replies."""

    def __init__(self, *replies):
        super().__init__(claims=CLAIMS)
        self.replies = list(replies)
        self.asked = []

    async def verify_claims(self, claims, context):
        self.asked.append(list(claims))
        return VerdictsResult(verdicts=self.replies.pop(0), tokens_used=10)


async def test_reordered_verdicts_find_their_claims():
    judge = Replying([verdict(2, "CONTRADICTED"), verdict(0), verdict(1)])
    result = await FaithfulnessEvaluator().evaluate(CASE, judge)
    assert [claim.verdict for claim in result.claims] == ["SUPPORTED", "SUPPORTED", "CONTRADICTED"]


async def test_only_missing_claims_are_asked_again():
    judge = Replying([verdict(0), verdict(2)], [verdict(0, "CONTRADICTED")])
    result = await FaithfulnessEvaluator().evaluate(CASE, judge)
    assert judge.asked == [CLAIMS, ["B"]]
    assert [claim.verdict for claim in result.claims] == ["SUPPORTED", "CONTRADICTED", "SUPPORTED"]
    assert result.status == "scored"


async def test_the_second_question_is_paid_for_too():
    judge = Replying([verdict(0), verdict(2)], [verdict(0)])
    result = await FaithfulnessEvaluator().evaluate(CASE, judge)
    assert result.tokens_used >= 20


async def test_conflicting_verdicts_decide_nothing_and_are_asked_again():
    judge = Replying([verdict(0), verdict(1), verdict(1, "CONTRADICTED"), verdict(2)], [verdict(0)])
    await FaithfulnessEvaluator().evaluate(CASE, judge)
    assert judge.asked == [CLAIMS, ["B"]]


async def test_verdicts_for_unknown_claims_are_ignored():
    judge = Replying([verdict(None), verdict(7), verdict(0), verdict(1), verdict(2)])
    result = await FaithfulnessEvaluator().evaluate(CASE, judge)
    assert (len(result.claims), result.score) == (3, 1.0)


async def test_offline_a_claim_that_stays_undecided_is_an_error():
    judge = Replying([verdict(0)], [verdict(1)])
    with pytest.raises(JudgeResponseError, match="1 of 3 claims") as caught:
        await FaithfulnessEvaluator().evaluate(CASE, judge)
    assert caught.value.usage.total_tokens >= 20


async def test_live_it_becomes_partial_and_leaves_the_denominator():
    judge = Replying([verdict(0)], [verdict(0, "CONTRADICTED")])
    result = await FaithfulnessEvaluator(policy=ScoringPolicy.LIVE).evaluate(CASE, judge)
    assert (result.status, result.score) == ("partial", 0.5)
    assert [claim.verdict for claim in result.claims] == ["SUPPORTED", "CONTRADICTED", None]
    assert "1 could not be decided" in result.reasoning


async def test_live_no_verdict_at_all_is_a_judge_error_without_a_score():
    judge = Replying([], [])
    result = await FaithfulnessEvaluator(policy=ScoringPolicy.LIVE).evaluate(CASE, judge)
    assert (result.status, result.score) == ("judge_error", None)


@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-3, 12),
            st.sampled_from(["SUPPORTED", "CONTRADICTED", "NOT_ENOUGH_INFO"]),
        )
    ),
    st.integers(0, 8),
)
def test_any_reply_decides_only_claims_that_were_asked_and_never_disputed_ones(rows, asked):
    reply = VerdictsResult(verdicts=[verdict(index, value) for index, value in rows])
    decided = verdicts_for(reply, list(range(100, 100 + asked)))
    for position, found in decided.items():
        said = {value for index, value in rows if index == position - 100}
        assert said == {found.verdict}
    assert set(decided) <= set(range(100, 100 + asked))


@pytest.mark.parametrize("policy", [ScoringPolicy.RAGAS, ScoringPolicy.PROMPTFOO])
async def test_where_the_verdicts_that_came_are_enough_one_unusable_reply_is_left_out(policy):
    judge = PlainScriptedJudge(
        claims=CLAIMS,
        verdicts="SUPPORTED",
        failures={"verify_claim": [None, JudgeResponseError("unusable"), None]},
    )
    result = await FaithfulnessEvaluator(policy=policy).evaluate(CASE, judge)
    assert (result.score, result.status) == (1.0, "partial")
    assert result.raw_response["total_claims"] == 2


async def test_a_double_of_a_batching_judge_is_asked_once_for_all_claims():
    judge = MagicMock(spec=BatchingJudge)
    judge.extract_statements = AsyncMock(return_value=ClaimsResult(claims=CLAIMS))
    replies = VerdictsResult(verdicts=[verdict(index) for index in range(3)])
    judge.verify_claims = AsyncMock(return_value=replies)
    result = await FaithfulnessEvaluator().evaluate(CASE, judge)
    assert result.score == 1.0
    assert judge.verify_claims.await_count == 1
