"""Document 004: the RelevanceEvaluator decision record."""

import pytest

from ragaliq import ConfigurationError, RAGTestCase, RelevanceEvaluator
from ragaliq.judges import JudgeResult

CASE = RAGTestCase(query="Is it open?", context=["Open daily."], response="Yes, daily.")


@pytest.mark.parametrize("score", [0.0, 0.31, 0.5, 0.99, 1.0])
async def test_score_passes_through(mock_judge, score):
    mock_judge.evaluate_relevance.return_value = JudgeResult(score=score)
    assert (await RelevanceEvaluator().evaluate(CASE, mock_judge)).score == score


@pytest.mark.parametrize(("threshold", "passed"), [(0.8, True), (0.85, True), (0.86, False)])
async def test_threshold_decides(mock_judge, threshold, passed):
    result = await RelevanceEvaluator(threshold=threshold).evaluate(CASE, mock_judge)
    assert result.passed is passed


async def test_the_judge_is_asked_once_and_its_reply_passed_on(mock_judge):
    result = await RelevanceEvaluator().evaluate(CASE, mock_judge)
    assert result.raw_response == {
        "score": 0.85,
        "reasoning": "It answers the question.",
        "tokens_used": 42,
    }
    assert (result.reasoning, result.tokens_used) == ("It answers the question.", 42)
    assert result.evaluator_name == "relevance"
    mock_judge.evaluate_relevance.assert_awaited_once_with(CASE.query, CASE.response)
    mock_judge.extract_claims.assert_not_called()
    mock_judge.verify_claim.assert_not_called()


@pytest.mark.parametrize("threshold", [-0.01, 1.01])
def test_threshold_outside_the_unit_interval_is_refused(threshold):
    with pytest.raises(ConfigurationError, match="threshold"):
        RelevanceEvaluator(threshold=threshold)
