"""Document 000: the FaithfulnessEvaluator decision record, row by row."""

from __future__ import annotations

from unittest.mock import AsyncMock, MagicMock

import pytest

from ragaliq.core.evaluator import EvaluationResult
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import JudgeResponseError
from ragaliq.evaluators import FaithfulnessEvaluator
from ragaliq.judges import ClaimsResult, ClaimVerdict, LLMJudge

CASE = RAGTestCase(
    id="paris",
    name="Capital",
    query="What is the capital of France?",
    context=["France is a country in Western Europe.", "Its capital is Paris."],
    response="The capital of France is Paris. It has two million people.",
)


@pytest.fixture
def mock_judge():
    """The document's own test double (section 6, Mock Strategy)."""
    judge = MagicMock(spec=LLMJudge)
    judge.extract_claims = AsyncMock(return_value=ClaimsResult(claims=[], tokens_used=10))
    judge.verify_claim = AsyncMock()
    return judge


def script(judge, *verdicts, tokens=0):
    judge.extract_claims.return_value = ClaimsResult(
        claims=[f"Claim {i}" for i in range(len(verdicts))], tokens_used=tokens
    )
    judge.verify_claim.side_effect = [
        ClaimVerdict(verdict=verdict, evidence=f"Evidence {i}", tokens_used=tokens)
        for i, verdict in enumerate(verdicts)
    ]


class TestAttributes:
    def test_name(self):
        assert FaithfulnessEvaluator().name == "faithfulness"

    def test_description(self):
        assert "context" in FaithfulnessEvaluator().description

    def test_default_threshold(self):
        assert FaithfulnessEvaluator().threshold == 0.7

    def test_custom_threshold(self):
        assert FaithfulnessEvaluator(threshold=0.8).threshold == 0.8

    def test_repr_shows_class_and_threshold(self):
        assert repr(FaithfulnessEvaluator(threshold=0.8)) == "FaithfulnessEvaluator(threshold=0.8)"


class TestAcceptanceCriteria:
    async def test_all_claims_supported_scores_one(self, mock_judge):
        script(mock_judge, "SUPPORTED", "SUPPORTED")
        result = await FaithfulnessEvaluator().evaluate(CASE, mock_judge)
        assert (result.score, result.passed) == (1.0, True)

    async def test_half_supported_scores_a_half(self, mock_judge):
        script(mock_judge, "SUPPORTED", "NOT_ENOUGH_INFO")
        result = await FaithfulnessEvaluator().evaluate(CASE, mock_judge)
        assert (result.score, result.passed) == (0.5, False)

    async def test_no_claims_scores_one_vacuously(self, mock_judge):
        result = await FaithfulnessEvaluator().evaluate(CASE, mock_judge)
        assert (result.score, result.passed, result.status) == (1.0, True, "no_claims")

    async def test_all_unsupported_scores_zero(self, mock_judge):
        script(mock_judge, "CONTRADICTED", "NOT_ENOUGH_INFO")
        result = await FaithfulnessEvaluator().evaluate(CASE, mock_judge)
        assert (result.score, result.passed) == (0.0, False)


class TestVerdicts:
    @pytest.mark.parametrize("verdict", ["CONTRADICTED", "NOT_ENOUGH_INFO"])
    async def test_only_supported_counts(self, mock_judge, verdict):
        script(mock_judge, "SUPPORTED", verdict, "SUPPORTED", "SUPPORTED")
        result = await FaithfulnessEvaluator().evaluate(CASE, mock_judge)
        assert result.score == 0.75

    async def test_mixed_verdicts(self, mock_judge):
        script(mock_judge, "SUPPORTED", "CONTRADICTED", "NOT_ENOUGH_INFO")
        result = await FaithfulnessEvaluator().evaluate(CASE, mock_judge)
        assert result.score == pytest.approx(1 / 3)


class TestMetadata:
    async def test_raw_response_holds_each_claim_with_verdict_and_evidence(self, mock_judge):
        script(mock_judge, "SUPPORTED", "CONTRADICTED")
        result = await FaithfulnessEvaluator().evaluate(CASE, mock_judge)
        rows = result.raw_response["claims"]
        assert [(row["claim"], row["verdict"], row["evidence"]) for row in rows] == [
            ("Claim 0", "SUPPORTED", "Evidence 0"),
            ("Claim 1", "CONTRADICTED", "Evidence 1"),
        ]

    async def test_raw_response_holds_the_summary(self, mock_judge):
        script(mock_judge, "SUPPORTED", "CONTRADICTED", "SUPPORTED")
        result = await FaithfulnessEvaluator().evaluate(CASE, mock_judge)
        assert result.raw_response["total_claims"] == 3
        assert result.raw_response["supported_claims"] == 2

    async def test_without_claims_the_summary_is_empty(self, mock_judge):
        result = await FaithfulnessEvaluator().evaluate(CASE, mock_judge)
        assert result.raw_response == {"claims": [], "total_claims": 0, "supported_claims": 0}


class TestResultStructure:
    async def test_is_an_evaluation_result(self, mock_judge):
        assert isinstance(
            await FaithfulnessEvaluator().evaluate(CASE, mock_judge), EvaluationResult
        )

    async def test_names_the_evaluator(self, mock_judge):
        result = await FaithfulnessEvaluator().evaluate(CASE, mock_judge)
        assert result.evaluator_name == "faithfulness"

    async def test_reasoning_counts_the_claims(self, mock_judge):
        script(mock_judge, "SUPPORTED", "CONTRADICTED")
        result = await FaithfulnessEvaluator().evaluate(CASE, mock_judge)
        assert result.reasoning.startswith("1 of 2 claims supported")

    async def test_adds_up_tokens_of_every_call(self, mock_judge):
        script(mock_judge, "SUPPORTED", "SUPPORTED", tokens=20)
        result = await FaithfulnessEvaluator().evaluate(CASE, mock_judge)
        assert result.tokens_used == 60


class TestEdgeCases:
    """Section 9, row by row, and the tests that section 6 lists."""

    @pytest.mark.parametrize("response", ["", "  \n\t "])
    async def test_empty_or_blank_response_scores_one(self, mock_judge, response):
        case = CASE.model_copy(update={"response": response})
        result = await FaithfulnessEvaluator().evaluate(case, mock_judge)
        assert (result.score, result.passed) == (1.0, True)

    async def test_empty_context_gives_every_claim_not_enough_info(self, mock_judge):
        script(mock_judge, "SUPPORTED", "SUPPORTED")
        case = CASE.model_copy(update={"context": []})
        case = RAGTestCase(query=case.query, context=[], response=case.response)
        result = await FaithfulnessEvaluator().evaluate(case, mock_judge)
        assert [row["verdict"] for row in result.raw_response["claims"]] == [
            "NOT_ENOUGH_INFO",
            "NOT_ENOUGH_INFO",
        ]
        assert result.score == 0.0
        mock_judge.verify_claim.assert_not_awaited()

    def test_invalid_verdict_raises_judge_response_error(self):
        with pytest.raises(JudgeResponseError, match="unknown verdict"):
            ClaimVerdict(verdict="PROBABLY")

    async def test_invalid_verdict_inside_a_judge_reaches_the_caller(self, mock_judge):
        script(mock_judge, "SUPPORTED")
        mock_judge.verify_claim.side_effect = lambda *_: ClaimVerdict(verdict="yes")
        with pytest.raises(JudgeResponseError):
            await FaithfulnessEvaluator().evaluate(CASE, mock_judge)

    @pytest.mark.parametrize("verdict", ["supported", "Contradicted", "not_enough_info"])
    def test_lower_case_verdict_is_normalised(self, verdict):
        assert ClaimVerdict(verdict=verdict).verdict == verdict.upper()

    async def test_single_claim(self, mock_judge):
        script(mock_judge, "SUPPORTED")
        assert (await FaithfulnessEvaluator().evaluate(CASE, mock_judge)).score == 1.0

    async def test_many_claims_keep_their_precision(self, mock_judge):
        script(mock_judge, *["SUPPORTED"] * 7, *["CONTRADICTED"] * 3)
        assert (await FaithfulnessEvaluator().evaluate(CASE, mock_judge)).score == 0.7

    @pytest.mark.parametrize(("threshold", "passed"), [(0.5, True), (0.51, False)])
    async def test_threshold_is_inclusive(self, mock_judge, threshold, passed):
        script(mock_judge, "SUPPORTED", "CONTRADICTED")
        evaluator = FaithfulnessEvaluator(threshold=threshold)
        assert (await evaluator.evaluate(CASE, mock_judge)).passed is passed
        assert evaluator.is_passing(0.5) is passed

    async def test_judge_is_called_with_response_claim_and_context_strings(self, mock_judge):
        script(mock_judge, "SUPPORTED")
        await FaithfulnessEvaluator().evaluate(CASE, mock_judge)
        mock_judge.extract_claims.assert_awaited_once_with(CASE.response)
        mock_judge.verify_claim.assert_awaited_once_with("Claim 0", CASE.context)


class TestCodeSamples:
    """Sections 4, 6 and 8: the samples run as written, given a judge."""

    async def test_extract_and_verify(self, mock_judge):
        judge = mock_judge
        judge.extract_claims.return_value = ClaimsResult(
            claims=["Paris is the capital of France"], tokens_used=50
        )
        judge.verify_claim.return_value = ClaimVerdict(
            verdict="SUPPORTED", evidence="Context states this"
        )

        claims_result = await judge.extract_claims("Paris is the capital of France.")
        assert claims_result == ClaimsResult(
            claims=["Paris is the capital of France"], tokens_used=50
        )
        verdict = await judge.verify_claim(
            claim="Paris is the capital of France",
            context=["France is a country. Its capital is Paris."],
        )
        assert verdict == ClaimVerdict(verdict="SUPPORTED", evidence="Context states this")

    async def test_evaluator_usage(self, mock_judge, capsys):
        script(mock_judge, "SUPPORTED", "SUPPORTED", "SUPPORTED", "CONTRADICTED")
        test_case, judge = CASE, mock_judge

        evaluator = FaithfulnessEvaluator(threshold=0.8)
        result = await evaluator.evaluate(test_case, judge)

        print(f"Score: {result.score}")  # noqa: T201 - the document's sample as written
        print(f"Passed: {result.passed}")  # noqa: T201
        for claim in result.raw_response["claims"]:
            print(f"{claim['verdict']}: {claim['claim']}")  # noqa: T201
        assert capsys.readouterr().out.splitlines()[:3] == [
            "Score: 0.75",
            "Passed: False",
            "SUPPORTED: Claim 0",
        ]

    def test_models_are_frozen(self):
        verdict = ClaimVerdict(verdict="SUPPORTED")
        with pytest.raises(ValueError, match="frozen"):
            verdict.verdict = "CONTRADICTED"
        assert verdict.evidence == ""

    def test_holistic_faithfulness_is_composed_from_claims(self, mock_judge):
        class Judge(LLMJudge):
            extract_claims = mock_judge.extract_claims
            verify_claim = mock_judge.verify_claim
            evaluate_relevance = mock_judge.evaluate_relevance

        script(mock_judge, "SUPPORTED", "CONTRADICTED", tokens=5)
        from ragaliq.core.sync import run_sync

        result = run_sync(Judge().evaluate_faithfulness("An answer.", ["A context."]))
        assert (result.score, result.tokens_used) == (0.5, 15)
