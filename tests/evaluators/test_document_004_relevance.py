"""Document 004: the RelevanceEvaluator decision record."""

from __future__ import annotations

from unittest.mock import AsyncMock, MagicMock

import pytest

from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import ConfigurationError
from ragaliq.evaluators import RelevanceEvaluator
from ragaliq.judges import JudgeResult, LLMJudge

CASE = RAGTestCase(query="Is it open?", context=["Open daily."], response="Yes, daily.")


@pytest.fixture
def mock_judge():
    judge = MagicMock(spec=LLMJudge)
    judge.evaluate_relevance = AsyncMock(
        return_value=JudgeResult(score=0.85, reasoning="It answers the question.", tokens_used=42)
    )
    return judge


def test_attributes():
    evaluator = RelevanceEvaluator()
    assert (evaluator.name, evaluator.threshold) == ("relevance", 0.7)
    assert "question" in evaluator.description
    assert repr(RelevanceEvaluator(threshold=0.9)) == "RelevanceEvaluator(threshold=0.9)"


@pytest.mark.parametrize("score", [0.0, 0.31, 0.5, 0.99, 1.0])
async def test_score_passes_through(mock_judge, score):
    mock_judge.evaluate_relevance.return_value = JudgeResult(score=score)
    assert (await RelevanceEvaluator().evaluate(CASE, mock_judge)).score == score


async def test_reasoning_is_the_judges(mock_judge):
    result = await RelevanceEvaluator().evaluate(CASE, mock_judge)
    assert result.reasoning == "It answers the question."


@pytest.mark.parametrize(("threshold", "passed"), [(0.8, True), (0.85, True), (0.86, False)])
async def test_threshold_decides(mock_judge, threshold, passed):
    result = await RelevanceEvaluator(threshold=threshold).evaluate(CASE, mock_judge)
    assert result.passed is passed


async def test_raw_response_keeps_score_reasoning_and_tokens(mock_judge):
    result = await RelevanceEvaluator().evaluate(CASE, mock_judge)
    assert result.raw_response == {
        "score": 0.85,
        "reasoning": "It answers the question.",
        "tokens_used": 42,
    }
    assert result.tokens_used == 42


async def test_names_itself(mock_judge):
    assert (await RelevanceEvaluator().evaluate(CASE, mock_judge)).evaluator_name == "relevance"


async def test_asks_the_judge_once_and_nothing_else(mock_judge):
    await RelevanceEvaluator().evaluate(CASE, mock_judge)
    mock_judge.evaluate_relevance.assert_awaited_once_with(CASE.query, CASE.response)
    mock_judge.extract_claims.assert_not_called()
    mock_judge.verify_claim.assert_not_called()


@pytest.mark.parametrize("threshold", [-0.01, 1.01])
def test_threshold_outside_the_unit_interval_is_refused(threshold):
    with pytest.raises(ConfigurationError, match="threshold"):
        RelevanceEvaluator(threshold=threshold)
