"""The one metric of ragaliq's own of which a low score is good, wherever its scores go."""

import pytest

from ragaliq import ContradictionRateEvaluator, RAGTestCase, ScoringPolicy
from ragaliq.core.results import EvaluationResult
from ragaliq.records.summary import Series, SeriesKey
from ragaliq.testing import ScriptedJudge

CASE = RAGTestCase(query="q", context=["c"], response="One. Two. Three. Four.")
VERDICTS = {
    "One.": "SUPPORTED",
    "Two.": "CONTRADICTED",
    "Three.": "NOT_ENOUGH_INFO",
    "Four.": "SUPPORTED",
}


@pytest.mark.parametrize(("threshold", "passed"), [(None, False), (0.25, True), (0.2, False)])
async def test_it_is_the_share_of_contradicted_claims_and_passes_at_or_below_its_threshold(
    threshold, passed
):
    judge = ScriptedJudge(verdicts=VERDICTS)
    result = await ContradictionRateEvaluator(threshold).evaluate(CASE, judge)
    assert (result.score, result.passed, result.higher_is_better) == (0.25, passed, False)
    assert result.reasoning == "The context contradicts 1 of 4 claims."
    assert [row["claim"] for row in result.raw_response["contradicted_claims"]] == ["Two."]
    assert result.raw_response["contradiction_count"] == 1


@pytest.mark.parametrize(
    ("policy", "score", "passed"),
    [
        (ScoringPolicy.RAGALIQ, 0.0, True),
        (ScoringPolicy.RAG_EVALS, 1.0, False),
        (ScoringPolicy.LIVE, None, None),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
async def test_what_a_policy_calls_the_best_score_is_the_lowest_here(policy, score, passed):
    judge = ScriptedJudge(claims=[])
    result = await ContradictionRateEvaluator(policy=policy).evaluate(CASE, judge)
    assert (result.score, result.passed) == (score, passed)


def test_the_mean_of_repeats_passes_at_or_below_the_threshold_too():
    series = Series(SeriesKey("contradiction_rate"))
    for case, scores in enumerate([(0.0, 0.2), (0.2, 0.4)]):
        for score in scores:
            result = EvaluationResult(
                evaluator_name="contradiction_rate",
                score=score,
                passed=score <= 0.2,
                threshold=0.2,
                higher_is_better=False,
            )
            series.add(result, case=case, time=0.0, weight=1.0, pipeline=0)
    assert series.joined().summary().passed == 1
