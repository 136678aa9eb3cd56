"""Document 001: the HallucinationEvaluator decision record."""

from __future__ import annotations

from unittest.mock import AsyncMock, MagicMock

import pytest

from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import ConfigurationError
from ragaliq.evaluators import FaithfulnessEvaluator, HallucinationEvaluator
from ragaliq.judges import ClaimsResult, ClaimVerdict, LLMJudge

CASE = RAGTestCase(
    query="What is the capital of France?",
    context=["The capital city of France is Paris."],
    response="Paris is the capital of France and was founded by Romans in 250 BC.",
)


@pytest.fixture
def mock_judge():
    judge = MagicMock(spec=LLMJudge)
    judge.extract_claims = AsyncMock(return_value=ClaimsResult(claims=[]))
    judge.verify_claim = AsyncMock()
    return judge


def script(judge, *verdicts):
    judge.extract_claims.return_value = ClaimsResult(
        claims=[f"Claim {i}" for i in range(len(verdicts))]
    )
    judge.verify_claim.side_effect = [
        verdict if isinstance(verdict, ClaimVerdict) else ClaimVerdict(verdict=verdict)
        for verdict in verdicts
    ]


def test_default_threshold_is_stricter_than_faithfulness():
    assert HallucinationEvaluator().threshold == 0.8 > FaithfulnessEvaluator().threshold


def test_name_and_repr():
    evaluator = HallucinationEvaluator(threshold=0.85)
    assert evaluator.name == "hallucination"
    assert repr(evaluator) == "HallucinationEvaluator(threshold=0.85)"


async def test_no_hallucinations_score_one(mock_judge):
    script(mock_judge, "SUPPORTED", "SUPPORTED")
    result = await HallucinationEvaluator().evaluate(CASE, mock_judge)
    assert (result.score, result.passed) == (1.0, True)
    assert "no hallucinations" in result.reasoning


@pytest.mark.parametrize("verdict", ["CONTRADICTED", "NOT_ENOUGH_INFO"])
async def test_unsupported_claims_are_hallucinated(mock_judge, verdict):
    script(mock_judge, "SUPPORTED", verdict)
    result = await HallucinationEvaluator().evaluate(CASE, mock_judge)
    assert (result.score, result.passed) == (0.5, False)


async def test_score_is_one_minus_hallucinated_over_total(mock_judge):
    script(mock_judge, "SUPPORTED", "CONTRADICTED", "NOT_ENOUGH_INFO")
    result = await HallucinationEvaluator().evaluate(CASE, mock_judge)
    assert result.score == pytest.approx(1 - 2 / 3)


async def test_hallucinated_claims_are_listed_and_counted(mock_judge):
    script(mock_judge, "SUPPORTED", "CONTRADICTED", "NOT_ENOUGH_INFO")
    raw = (await HallucinationEvaluator().evaluate(CASE, mock_judge)).raw_response
    assert [row["claim"] for row in raw["hallucinated_claims"]] == ["Claim 1", "Claim 2"]
    assert raw["hallucination_count"] == 2
    assert raw["total_claims"] == 3


async def test_reasoning_is_framed_as_hallucinations_found(mock_judge):
    script(mock_judge, "SUPPORTED", "CONTRADICTED", "NOT_ENOUGH_INFO")
    result = await HallucinationEvaluator().evaluate(CASE, mock_judge)
    assert result.reasoning.startswith("Found 2 hallucinated claims")


async def test_empty_claims_score_one(mock_judge):
    result = await HallucinationEvaluator().evaluate(CASE, mock_judge)
    assert (result.score, result.passed) == (1.0, True)
    assert result.raw_response["hallucinated_claims"] == []


async def test_scores_are_those_of_faithfulness(mock_judge):
    verdicts = ["SUPPORTED", "CONTRADICTED", "SUPPORTED", "NOT_ENOUGH_INFO"]
    script(mock_judge, *verdicts)
    hallucination = await HallucinationEvaluator().evaluate(CASE, mock_judge)
    script(mock_judge, *verdicts)
    faithfulness = await FaithfulnessEvaluator().evaluate(CASE, mock_judge)
    assert hallucination.score == faithfulness.score


class TestConfidence:
    """Alternative B, deferred there and built here: an optional field, default 1.0."""

    def test_confidence_defaults_to_one(self):
        assert ClaimVerdict(verdict="SUPPORTED").confidence == 1.0

    async def test_confidence_is_not_looked_at_by_default(self, mock_judge):
        script(mock_judge, ClaimVerdict(verdict="SUPPORTED", confidence=0.1))
        assert (await HallucinationEvaluator().evaluate(CASE, mock_judge)).score == 1.0

    async def test_supported_below_min_confidence_is_hallucinated(self, mock_judge):
        script(
            mock_judge,
            ClaimVerdict(verdict="SUPPORTED", confidence=0.79),
            ClaimVerdict(verdict="SUPPORTED", confidence=0.8),
        )
        evaluator = HallucinationEvaluator(min_confidence=0.8)
        result = await evaluator.evaluate(CASE, mock_judge)
        assert result.score == 0.5
        assert result.raw_response["hallucinated_claims"][0]["confidence"] == 0.79

    @pytest.mark.parametrize("value", [-0.1, 1.1])
    def test_min_confidence_outside_the_unit_interval_is_refused(self, value):
        with pytest.raises(ConfigurationError, match="min_confidence"):
            HallucinationEvaluator(min_confidence=value)
