"""Document 003: promptfoo's plan, its scores and the words of its reasons."""

import pytest

from ragaliq import (
    FaithfulnessEvaluator,
    JudgeRefusalError,
    JudgeResponseError,
    RAGTestCase,
    ScoringPolicy,
)
from ragaliq.judges import ClaimVerdict, VerdictsResult
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


@pytest.mark.parametrize(
    ("verdicts", "expected", "reason"),
    [
        ((YES, YES, YES, NO), 0.75, "Faithfulness 0.75 is >= 0.7"),
        ((YES, NO, NO, NO), 0.25, "Faithfulness 0.25 is < 0.7"),
        ((YES, YES, NO, NO, YES, YES), 0.5, "Faithfulness 0.50 is < 0.7"),  # too many: cut
        ((YES, NO), 0.5, "Faithfulness 0.50 is < 0.7"),  # fewer: a shorter denominator
    ],
)
async def test_faithful_over_total_and_on_which_side_of_the_threshold_it_lies(
    verdicts, expected, reason
):
    result = await score(Replying(*verdicts))
    assert (result.score, result.reasoning) == (expected, reason)


def failing(error):
    return ScriptedJudge(failures={"verify_claims": error})


@pytest.mark.parametrize(
    ("judge", "expected", "reason"),
    [
        (ScriptedJudge(claims=[]), 0.0, "No statements generated for faithfulness calculation"),
        (failing(JudgeRefusalError("no")), 0.0, "LLM refused to provide faithfulness verdicts"),
        (failing(JudgeResponseError("empty")), 0.5, "No faithfulness verdicts provided"),
        (Replying(), 0.5, "No faithfulness verdicts provided"),
    ],
    ids=["no statements", "refusal", "unusable reply", "no verdicts"],
)
async def test_where_there_is_nothing_to_divide_the_score_fails_at_any_threshold(
    judge, expected, reason
):
    result = await score(judge, threshold=0.3)
    assert (result.score, result.passed, result.reasoning) == (expected, False, reason)
