"""Document 001: the HallucinationEvaluator decision record."""

import pytest

from ragaliq import ConfigurationError, FaithfulnessEvaluator, HallucinationEvaluator, RAGTestCase
from ragaliq.judges import ClaimVerdict

CASE = RAGTestCase(
    query="What is the capital of France?",
    context=["The capital city of France is Paris."],
    response="Paris is the capital of France and was founded by Romans in 250 BC.",
)
YES, NO, UNKNOWN = "SUPPORTED", "CONTRADICTED", "NOT_ENOUGH_INFO"


def supported(confidence):
    return ClaimVerdict(verdict=YES, confidence=confidence)


@pytest.mark.parametrize(
    ("verdicts", "score", "listed", "reason"),
    [
        ([YES, YES], 1.0, [], "All 2 claims are grounded; no hallucinations detected."),
        ([YES, NO], 0.5, ["Claim 1"], "Found 1 hallucinated claims out of 2."),
        ([YES, UNKNOWN], 0.5, ["Claim 1"], "Found 1 hallucinated claims out of 2."),
        ([YES, NO, UNKNOWN], 1 - 2 / 3, ["Claim 1", "Claim 2"], "Found 2 hallucinated claims"),
        ([], 1.0, [], "No claims to verify; no hallucinations detected."),
    ],
)
async def test_the_score_is_one_minus_hallucinated_over_total(
    judge_of, verdicts, score, listed, reason
):
    result = await HallucinationEvaluator().evaluate(CASE, judge_of(*verdicts))
    assert result.score == pytest.approx(score)
    assert result.passed is (score >= 0.8)
    assert result.reasoning.startswith(reason)
    raw = result.raw_response
    assert [row["claim"] for row in raw["hallucinated_claims"]] == listed
    assert (raw["hallucination_count"], raw["total_claims"]) == (len(listed), len(verdicts))
    faithfulness = await FaithfulnessEvaluator().evaluate(CASE, judge_of(*verdicts))
    assert result.score == pytest.approx(faithfulness.score)


# Alternative B, deferred there and built here: an optional field, default 1.0.


@pytest.mark.parametrize(("least", "score"), [(None, 1.0), (0.8, 0.5)])
async def test_supported_below_min_confidence_is_hallucinated(judge_of, least, score):
    assert ClaimVerdict(verdict=YES).confidence == 1.0
    judge = judge_of(supported(0.79), supported(0.8))
    result = await HallucinationEvaluator(min_confidence=least).evaluate(CASE, judge)
    assert result.score == score
    listed = result.raw_response["hallucinated_claims"]
    assert [row["confidence"] for row in listed] == ([0.79] if least else [])


@pytest.mark.parametrize("value", [-0.1, 1.1])
def test_min_confidence_outside_the_unit_interval_is_refused(value):
    with pytest.raises(ConfigurationError, match="min_confidence"):
        HallucinationEvaluator(min_confidence=value)
