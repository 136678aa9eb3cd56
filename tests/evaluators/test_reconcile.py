"""Verdicts are matched by claim; only missing ones are asked again."""

import asyncio
from unittest.mock import AsyncMock, MagicMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragaliq import FaithfulnessEvaluator, JudgeResponseError, RAGTestCase, ScoringPolicy
from ragaliq.judges import BatchingJudge, ClaimsResult, ClaimVerdict, VerdictsResult
from ragaliq.testing import PlainScriptedJudge, ScriptedJudge

CASE = RAGTestCase(query="q", context=["A. B. C."], response="A. B. C.")
CLAIMS = ["A", "B", "C"]
YES, NO = "SUPPORTED", "CONTRADICTED"


class Replying(ScriptedJudge):
    """Answers each verification with the next of the given replies: (index, verdict) pairs."""

    def __init__(self, *replies):
        super().__init__(claims=CLAIMS)
        self.replies = list(replies)
        self.asked = []

    async def verify_claims(self, claims, context):
        self.asked.append("".join(claims))
        verdicts = [ClaimVerdict(index=i, verdict=verdict) for i, verdict in self.replies.pop(0)]
        return VerdictsResult(verdicts=verdicts, tokens_used=10)


async def evaluate(judge, policy=ScoringPolicy.RAGALIQ):
    return await FaithfulnessEvaluator(policy=policy).evaluate(CASE, judge)


ALL = [(0, YES), (1, YES), (2, YES)]


@pytest.mark.parametrize(
    ("replies", "asked", "verdicts"),
    [
        ([[(2, NO), (0, YES), (1, YES)]], ["ABC"], [YES, YES, NO]),
        ([[(0, YES), (2, YES)], [(0, NO)]], ["ABC", "B"], [YES, NO, YES]),
        ([[*ALL, (1, NO)], [(0, YES)]], ["ABC", "B"], [YES, YES, YES]),
        ([[(None, YES), (7, NO), *ALL]], ["ABC"], [YES, YES, YES]),
    ],
    ids=["reordered", "one missing", "one disputed", "unknown claims"],
)
async def test_verdicts_find_their_claims_and_those_without_are_asked_again(
    replies, asked, verdicts
):
    judge = Replying(*replies)
    result = await evaluate(judge)
    assert (judge.asked, [claim.verdict for claim in result.claims]) == (asked, verdicts)
    assert (result.status, result.tokens_used) == ("scored", 10 * len(asked))


async def test_offline_a_claim_that_stays_undecided_is_an_error():
    with pytest.raises(JudgeResponseError, match="1 of 3 claims") as caught:
        await evaluate(Replying([(0, YES)], [(1, YES)]))
    assert caught.value.usage.total_tokens >= 20


@pytest.mark.parametrize(
    ("replies", "verdicts", "status", "score"),
    [
        (([(0, YES)], [(0, NO)]), [YES, NO, None], "partial", 0.5),
        (([], []), [], "judge_error", None),
    ],
)
async def test_live_what_stays_undecided_leaves_the_denominator(replies, verdicts, status, score):
    result = await evaluate(Replying(*replies), ScoringPolicy.LIVE)
    assert [claim.verdict for claim in result.claims] == verdicts
    assert (result.status, result.score) == (status, score)
    assert ("1 could not be decided" in result.reasoning) is (status == "partial")


@given(
    st.lists(
        st.tuples(st.none() | st.integers(-3, 5), st.sampled_from([YES, NO, "NOT_ENOUGH_INFO"]))
    )
)
def test_any_reply_decides_only_claims_that_were_asked_and_never_disputed_ones(rows):
    result = asyncio.run(evaluate(Replying([(0, YES)], rows), ScoringPolicy.LIVE))
    said = [{YES}, *({value for at, value in rows if at == index} for index in range(2))]
    for claim, values in zip(result.claims, said, strict=True):
        assert claim.verdict == (values.pop() if len(values) == 1 else None)


@pytest.mark.parametrize("policy", [ScoringPolicy.RAGAS, ScoringPolicy.PROMPTFOO])
async def test_where_the_verdicts_that_came_are_enough_one_unusable_reply_is_left_out(policy):
    judge = PlainScriptedJudge(
        claims=CLAIMS,
        verdicts=YES,
        failures={"verify_claim": [None, JudgeResponseError("unusable"), None]},
    )
    result = await evaluate(judge, policy)
    assert (result.score, result.status) == (1.0, "partial")
    assert result.raw_response["total_claims"] == 2


async def test_a_double_of_a_batching_judge_is_asked_once_for_all_claims():
    judge = MagicMock(spec=BatchingJudge)
    judge.extract_statements = AsyncMock(return_value=ClaimsResult(claims=CLAIMS))
    verdicts = [ClaimVerdict(index=index, verdict=YES) for index in range(3)]
    judge.verify_claims = AsyncMock(return_value=VerdictsResult(verdicts=verdicts))
    assert (await evaluate(judge)).score == 1.0
    assert judge.verify_claims.await_count == 1
