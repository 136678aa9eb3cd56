"""A judge that decides all claims in one call, and cannot find them in the same one."""

import pytest

from ragaliq import BatchingJudge, ClaimsResult, ClaimVerdict, JudgeResult, JudgeUsage
from ragaliq.errors import JudgeAPIError, JudgeResponseError
from ragaliq.judges import VerdictsResult
from ragaliq.testing import PlainScriptedJudge

USAGE = JudgeUsage(input_tokens=3, requests=1)


class TwoCalls(BatchingJudge):
    name = "two"

    def __init__(self, *decided, error=None):
        self.decided, self.error = decided, error

    async def extract_claims(self, response):
        return ClaimsResult(claims=["One.", "Two."], usage=USAGE)

    async def extract_statements(self, query, response):
        return await self.extract_claims(response)

    async def verify_claim(self, claim, context):
        raise NotImplementedError

    async def verify_claims(self, claims, context):
        if self.error:
            raise self.error
        verdicts = [ClaimVerdict(index=index, verdict=verdict) for index, verdict in self.decided]
        return VerdictsResult(verdicts=verdicts, usage=USAGE)

    async def evaluate_relevance(self, query, response):
        return JudgeResult(score=1.0)


async def test_statements_are_found_and_graded_in_two_calls():
    judge = TwoCalls((1, "CONTRADICTED"), (0, "SUPPORTED"), (0, "SUPPORTED"))
    graded = await judge.grade_statements("q", "One. Two.", ["c"])
    found = [(each.index, each.statement, each.verdict) for each in graded.verdicts]
    assert found == [(0, "One.", "SUPPORTED"), (1, "Two.", "CONTRADICTED")]
    assert graded.usage == JudgeUsage(input_tokens=6, requests=2)
    assert graded.tokens_used == 6


@pytest.mark.parametrize(
    "decided",
    [
        [(0, "SUPPORTED")],
        [(0, "SUPPORTED"), (1, "SUPPORTED"), (1, "CONTRADICTED")],
        [(0, "SUPPORTED"), (None, "SUPPORTED"), (7, "SUPPORTED")],
    ],
)
async def test_a_claim_without_one_verdict_is_an_error_that_keeps_the_cost(decided):
    with pytest.raises(JudgeResponseError, match="two gave no verdict for 1 of 2 claims") as caught:
        await TwoCalls(*decided).grade_statements("q", "One. Two.", ["c"])
    assert caught.value.usage.requests == 2


async def test_a_plain_judges_failure_costs_its_calls_before_too():
    failures = {"verify_claim": [None, JudgeAPIError("down", usage=USAGE)]}
    judge = PlainScriptedJudge(usage=USAGE, failures=failures)
    with pytest.raises(JudgeAPIError) as caught:
        await judge.evaluate_faithfulness("One is one. Two is two.", ["c"])
    assert caught.value.usage == JudgeUsage(input_tokens=9, requests=3)


async def test_a_failed_second_call_costs_the_first_too():
    judge = TwoCalls(error=JudgeAPIError("down", usage=USAGE))
    with pytest.raises(JudgeAPIError) as caught:
        await judge.grade_statements("q", "One. Two.", ["c"])
    assert caught.value.usage == JudgeUsage(input_tokens=6, requests=2)
