import math

import pytest
from pydantic import ValidationError

from ragaliq import (
    ClaimDetail,
    ClaimsResult,
    EvaluationResult,
    JudgeResult,
    JudgeUsage,
    Status,
)


@pytest.mark.parametrize("score", [-0.01, 1.01, math.inf])
def test_scores_outside_the_unit_interval_are_refused(score):
    with pytest.raises(ValidationError, match="within"):
        EvaluationResult(evaluator_name="m", score=score, passed=True)


@pytest.mark.parametrize(("score", "passed"), [(None, False), (0.5, None)])
def test_score_and_passed_are_there_together_or_not_at_all(score, passed):
    with pytest.raises(ValidationError, match="both"):
        EvaluationResult(evaluator_name="m", score=score, passed=passed)


@pytest.mark.parametrize(
    ("status", "score", "measured"),
    [
        (Status.SCORED, 0.0, True),
        (Status.PARTIAL, 0.5, True),
        (Status.NO_CLAIMS, 1.0, False),
        (Status.SCORED, math.nan, False),
        (Status.JUDGE_REFUSED, None, False),
    ],
)
def test_only_real_scores_enter_statistics(status, score, measured):
    passed = None if score is None else False
    result = EvaluationResult(evaluator_name="m", score=score, passed=passed, status=status)
    assert result.is_measured is measured


def test_usage_adds_up():
    total = JudgeUsage(input_tokens=10, cache_read_tokens=5, requests=1, cost_usd=0.5) + JudgeUsage(
        output_tokens=3, cache_write_tokens=2, requests=1, cost_usd=0.25
    )
    assert (total.total_tokens, total.requests, total.cost_usd) == (20, 2, 0.75)
    assert (total + JudgeUsage(cost_usd=None)).cost_usd is None


@pytest.mark.parametrize(
    "build",
    [
        lambda: ClaimDetail(claim="Zanzibar", verdict="SUPPORTED", evidence="Zanzibar", reason=7),
        lambda: EvaluationResult(evaluator_name="m", score=1.5, passed=True, reasoning="Zanzibar"),
        lambda: ClaimsResult(claims=["Zanzibar", 7]),
        lambda: JudgeResult(score=2.0, reasoning="Zanzibar"),
    ],
)
def test_an_error_in_a_result_quotes_nothing(build):
    with pytest.raises(ValidationError) as caught:
        build()
    assert "Zanzibar" not in str(caught.value)
