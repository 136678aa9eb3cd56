"""Document 000: the FaithfulnessEvaluator decision record, row by row."""

import pytest

from ragaliq import (
    EvaluationResult,
    FaithfulnessEvaluator,
    JudgeResponseError,
    RAGTestCase,
    evaluate,
)
from ragaliq.judges import ClaimVerdict, LLMJudge

CASE = RAGTestCase(
    id="paris",
    name="Capital",
    query="What is the capital of France?",
    context=["France is a country in Western Europe.", "Its capital is Paris."],
    response="The capital of France is Paris. It has two million people.",
)
YES, NO, UNKNOWN = "SUPPORTED", "CONTRADICTED", "NOT_ENOUGH_INFO"


@pytest.mark.parametrize(
    ("verdicts", "score", "passed"),
    [
        ([YES, YES], 1.0, True),
        ([YES], 1.0, True),
        ([YES, UNKNOWN], 0.5, False),
        ([NO, UNKNOWN], 0.0, False),
        ([YES, NO, YES, YES], 0.75, True),
        ([YES, UNKNOWN, YES, YES], 0.75, True),
        ([YES, NO, UNKNOWN], pytest.approx(1 / 3), False),
        ([YES] * 7 + [NO] * 3, 0.7, True),
        ([], 1.0, True),
    ],
)
async def test_the_score_is_the_share_of_supported_claims(judge_of, verdicts, score, passed):
    result = await FaithfulnessEvaluator().evaluate(CASE, judge_of(*verdicts))
    assert (result.score, result.passed) == (score, passed)
    assert result.status == ("scored" if verdicts else "no_claims")


@pytest.mark.parametrize(("threshold", "passed"), [(0.5, True), (0.51, False)])
async def test_the_threshold_is_inclusive(judge_of, threshold, passed):
    evaluator = FaithfulnessEvaluator(threshold=threshold)
    assert (await evaluator.evaluate(CASE, judge_of(YES, NO))).passed is passed
    assert evaluator.is_passing(0.5) is passed


async def test_the_result_holds_each_claim_with_verdict_and_evidence_and_the_summary(judge_of):
    result = await FaithfulnessEvaluator().evaluate(CASE, judge_of(YES, NO, YES, tokens=20))
    assert isinstance(result, EvaluationResult)
    assert result.evaluator_name == "faithfulness"
    rows = result.raw_response["claims"]
    assert [(row["claim"], row["verdict"], row["evidence"]) for row in rows] == [
        ("Claim 0", YES, "Evidence 0"),
        ("Claim 1", NO, "Evidence 1"),
        ("Claim 2", YES, "Evidence 2"),
    ]
    assert (result.raw_response["total_claims"], result.raw_response["supported_claims"]) == (3, 2)
    assert result.reasoning.startswith("2 of 3 claims supported")
    assert result.tokens_used == 80  # those of every call


async def test_without_claims_the_summary_is_empty(mock_judge):
    result = await FaithfulnessEvaluator().evaluate(CASE, mock_judge)
    assert result.raw_response == {"claims": [], "total_claims": 0, "supported_claims": 0}


# Section 9, row by row, and the tests that section 6 lists.


async def test_an_invalid_verdict_raises_judge_response_error(judge_of):
    with pytest.raises(JudgeResponseError, match="unknown verdict"):
        ClaimVerdict(verdict="PROBABLY")
    judge = judge_of(YES)
    judge.verify_claim.side_effect = lambda *_: ClaimVerdict(verdict="yes")
    with pytest.raises(JudgeResponseError):
        await FaithfulnessEvaluator().evaluate(CASE, judge)


@pytest.mark.parametrize("verdict", ["supported", "Contradicted", "not_enough_info"])
def test_lower_case_verdict_is_normalised(verdict):
    assert ClaimVerdict(verdict=verdict).verdict == verdict.upper()


async def test_judge_is_called_with_response_claim_and_context_strings(judge_of):
    judge = judge_of(YES)
    await FaithfulnessEvaluator().evaluate(CASE, judge)
    judge.extract_claims.assert_awaited_once_with(CASE.response)
    judge.verify_claim.assert_awaited_once_with("Claim 0", CASE.context)


# Sections 4, 6 and 8: the samples run as written, given a judge.


def test_models_are_frozen():
    verdict = ClaimVerdict(verdict="SUPPORTED")
    with pytest.raises(ValueError, match="frozen"):
        verdict.verdict = "CONTRADICTED"
    assert verdict.evidence == ""


async def test_holistic_faithfulness_is_composed_from_claims(judge_of):
    judge = judge_of(YES, NO, tokens=5)
    result = await LLMJudge.evaluate_faithfulness(judge, "An answer.", ["A context."])
    assert (result.score, result.tokens_used) == (0.5, 15)


def test_the_documents_double_judges_whole_runs_too(judge_of):
    [evaluation] = evaluate([CASE], metrics=["faithfulness"], judge=judge_of(YES, NO))
    assert evaluation.results["faithfulness"].score == 0.5
