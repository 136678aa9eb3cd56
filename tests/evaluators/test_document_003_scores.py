"""Document 003: promptfoo's plan, its scores and the words of its reasons."""

from __future__ import annotations

import pytest

from ragaliq import (
    FaithfulnessEvaluator,
    JudgeRefusalError,
    JudgeResponseError,
    RAGTestCase,
    ScoringPolicy,
)
from ragaliq.judges.base import ClaimVerdict, VerdictsResult
from ragaliq.testing import ScriptedJudge

CASE = RAGTestCase(query="q", context=["c"], response="One. Two. Three. Four.")
CLAIMS = ["One.", "Two.", "Three.", "Four."]


class Replying(ScriptedJudge):
    def __init__(self, *verdicts):
        super().__init__(claims=CLAIMS)
        self.verdicts = verdicts

    async def verify_claims(self, claims, context):
        return VerdictsResult(
            verdicts=[
                ClaimVerdict(index=i if i < len(claims) else None, verdict=verdict)
                for i, verdict in enumerate(self.verdicts)
            ]
        )


YES, NO = "SUPPORTED", "NOT_ENOUGH_INFO"


async def score(judge, **options):
    evaluator = FaithfulnessEvaluator(policy=ScoringPolicy.PROMPTFOO, **options)
    return await evaluator.evaluate(CASE, judge)


async def test_faithful_over_total():
    assert (await score(Replying(YES, YES, YES, NO))).score == 0.75


@pytest.mark.parametrize(
    ("verdicts", "reason"),
    [
        ((YES, YES, YES, NO), "Faithfulness 0.75 is >= 0.7"),
        ((YES, NO, NO, NO), "Faithfulness 0.25 is < 0.7"),
    ],
)
async def test_the_reason_says_on_which_side_of_the_threshold_the_score_lies(verdicts, reason):
    assert (await score(Replying(*verdicts))).reasoning == reason


async def test_more_verdicts_than_statements_are_cut():
    assert (await score(Replying(YES, YES, NO, NO, YES, YES))).score == 0.5


async def test_fewer_verdicts_than_statements_shorten_the_denominator():
    assert (await score(Replying(YES, NO))).score == 0.5


async def test_no_statements_score_zero_instead_of_dividing_by_it():
    result = await score(ScriptedJudge(claims=[]))
    assert (result.score, result.passed) == (0.0, False)
    assert result.reasoning == "No statements generated for faithfulness calculation"


async def test_a_refusal_scores_zero_and_fails():
    result = await score(ScriptedJudge(failures={"verify_claims": JudgeRefusalError("no")}))
    assert (result.score, result.passed) == (0.0, False)
    assert result.reasoning == "LLM refused to provide faithfulness verdicts"


@pytest.mark.parametrize(
    "judge",
    [ScriptedJudge(failures={"verify_claims": JudgeResponseError("empty")}), Replying()],
    ids=["unusable reply", "no verdicts"],
)
async def test_no_verdicts_score_a_neutral_half_and_fail(judge):
    result = await score(judge, threshold=0.3)
    assert (result.score, result.passed) == (0.5, False)
    assert result.reasoning == "No faithfulness verdicts provided"


async def test_a_score_passes_from_the_threshold_minus_epsilon_on():
    assert (await score(Replying(YES, YES, YES, NO), threshold=0.75)).passed
