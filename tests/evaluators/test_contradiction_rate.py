"""The one metric of ragaliq's own of which a low score is good, wherever its scores go."""

import pytest

from ragaliq import ContradictionRateEvaluator, Evaluation, RAGTestCase, RunInfo, ScoringPolicy
from ragaliq.core.results import EvaluationResult
from ragaliq.records import Summary
from ragaliq.records.record import run_id_of
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
    summary = Summary()
    for number, scores in enumerate([(0.0, 0.2), (0.2, 0.4)]):
        case = RAGTestCase(id=f"case-{number}", query="q", response="r")
        for repeat, score in enumerate(scores):
            result = EvaluationResult(
                evaluator_name="contradiction_rate",
                score=score,
                passed=score <= 0.2,
                threshold=0.2,
                higher_is_better=False,
            )
            run = RunInfo(run_id=run_id_of(case.id, repeat))
            in_run = case.model_copy(update={"run": run})
            summary.add(Evaluation(case=in_run, results={"contradiction_rate": result}))
    assert summary.metrics["contradiction_rate"].passed == 1
