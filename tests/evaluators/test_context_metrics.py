import pytest

from ragaliq import (
    ChunkUtilityEvaluator,
    ContextChunk,
    ContextPrecisionEvaluator,
    ContextRecallEvaluator,
    DatasetError,
    FaithfulnessEvaluator,
    JudgeAPIError,
    RAGTestCase,
    ScoringPolicy,
    Turn,
)
from ragaliq.evaluators import evaluate_case
from ragaliq.judges import JudgeResult
from ragaliq.testing import PlainScriptedJudge, ScriptedJudge

CONTEXT = [
    ContextChunk(text="The lamp weighs 310 grams.", id="weight"),
    ContextChunk(text="Parcels leave on Mondays.", id="parcels"),
    ContextChunk(text="The lamp folds flat.", id="folding"),
]
CASE = RAGTestCase(
    query="How heavy is the lamp?",
    context=CONTEXT,
    response="The lamp weighs 310 grams. The lamp sings.",
    expected_facts=[
        "The lamp weighs 310 grams.",
        "The lamp folds flat.",
        "The lamp glows crimson.",
    ],
)
WITHOUT_CONTEXT = RAGTestCase(query="q", response="r", expected_facts=["f"])


class Grading(ScriptedJudge):
    """Finds the chunks helpful that the test says."""

    def __init__(self, *scores):
        super().__init__()
        self.scores = dict(zip([chunk.text for chunk in CONTEXT], scores, strict=True))

    async def evaluate_context_relevance(self, query, chunk):
        return JudgeResult(score=self.scores[chunk], reasoning=f"{len(chunk)}", tokens_used=3)


class TestContextPrecision:
    @pytest.mark.parametrize(
        ("scores", "expected"),
        [
            ((1, 1, 1), 1.0),
            ((1, 0, 0), 1.0),
            ((0, 1, 0), 1 / 2),
            ((0, 0, 1), 1 / 3),
            ((1, 0, 1), (1 + 2 / 3) / 2),
            ((0, 0.5, 0.49), 1 / 2),
            ((0, 0, 0), 0.0),
        ],
    )
    async def test_is_the_average_precision_of_the_ranking(self, scores, expected):
        result = await ContextPrecisionEvaluator().evaluate(CASE, Grading(*scores))
        assert result.score == pytest.approx(expected)

    async def test_keeps_each_chunks_grade_and_pays_for_each(self):
        result = await ContextPrecisionEvaluator().evaluate(CASE, Grading(1, 0, 1))
        rows = result.raw_response["chunks"]
        assert [(row["id"], row["helpful"]) for row in rows] == [
            ("weight", True),
            ("parcels", False),
            ("folding", True),
        ]
        assert result.raw_response["helpful_chunks"] == 2
        assert result.tokens_used == 9


class TestContextRecall:
    @pytest.mark.parametrize("judge_class", [ScriptedJudge, PlainScriptedJudge])
    async def test_is_the_share_of_expected_facts_that_are_covered(self, judge_class):
        result = await ContextRecallEvaluator().evaluate(CASE, judge_class())
        assert result.score == pytest.approx(2 / 3)
        assert result.raw_response["covered_facts"] == 2
        assert result.raw_response["facts"][2]["verdict"] == "NOT_ENOUGH_INFO"

    async def test_takes_the_facts_from_the_expected_answer_where_none_are_given(self):
        case = RAGTestCase(
            query="q",
            context=CONTEXT,
            response="r",
            expected_answer="The lamp folds flat. The lamp glows crimson.",
        )
        result = await ContextRecallEvaluator().evaluate(case, ScriptedJudge())
        assert (result.score, result.raw_response["total_facts"]) == (0.5, 2)

    @pytest.mark.parametrize("context", [["c"], []], ids=["with context", "without"])
    async def test_a_case_that_expects_nothing_is_refused_by_its_id(self, context):
        case = RAGTestCase(id="bare", query="q", context=context, response="r")
        with pytest.raises(DatasetError, match=r"'bare'.*expected_facts"):
            await ContextRecallEvaluator().evaluate(case, ScriptedJudge())

    async def test_beside_other_metrics_such_a_case_loses_only_this_one(self):
        case = RAGTestCase(
            query="q", context=["Parcels leave early."], response="Parcels leave early."
        )
        evaluators = [FaithfulnessEvaluator(), ContextRecallEvaluator()]
        results = await evaluate_case(case, evaluators, ScriptedJudge())
        assert results["faithfulness"].score == 1.0
        assert results["context_recall"].score is None
        assert "expected_facts" in results["context_recall"].error
        assert "no context" not in results["context_recall"].reasoning


class TestChunkUtility:
    async def test_is_the_share_of_chunks_a_supported_claim_rests_on(self):
        result = await ChunkUtilityEvaluator().evaluate(CASE, ScriptedJudge())
        assert result.score == pytest.approx(1 / 3)
        assert result.raw_response == {
            "chunks": [
                {"id": "weight", "used": True, "claims": [0]},
                {"id": "parcels", "used": False, "claims": []},
                {"id": "folding", "used": False, "claims": []},
            ],
            "used_chunks": 1,
            "total_chunks": 3,
        }

    async def test_an_answer_without_claims_used_nothing_and_has_no_score(self):
        result = await ChunkUtilityEvaluator().evaluate(CASE, ScriptedJudge(claims=[]))
        assert (result.score, result.passed, result.status) == (None, None, "no_claims")
        assert (result.raw_response["used_chunks"], result.raw_response["total_chunks"]) == (0, 3)


@pytest.mark.parametrize("evaluator", [ContextPrecisionEvaluator, ContextRecallEvaluator])
async def test_without_context_the_policy_decides_and_no_judge_is_asked(evaluator):
    judge = ScriptedJudge()
    offline = await evaluator().evaluate(WITHOUT_CONTEXT, judge)
    live = await evaluator(policy=ScoringPolicy.LIVE).evaluate(WITHOUT_CONTEXT, judge)
    assert (offline.score, offline.status) == (0.0, "scored")
    assert (live.score, live.status) == (None, "no_context")
    with pytest.raises(DatasetError, match="no context"):
        await evaluator(policy=ScoringPolicy.RAGAS).evaluate(WITHOUT_CONTEXT, judge)
    assert not judge.call_counts


@pytest.mark.parametrize(
    ("evaluator", "method"),
    [
        (ContextPrecisionEvaluator, "evaluate_relevance"),
        (ContextRecallEvaluator, "verify_claims"),
        (ChunkUtilityEvaluator, "verify_claims"),
    ],
)
async def test_a_failing_judge_is_a_status_and_no_score(evaluator, method):
    judge = ScriptedJudge(failures={method: [JudgeAPIError("down")] * 3})
    result = await evaluator(policy=ScoringPolicy.LIVE).evaluate(CASE, judge)
    assert (result.score, result.status) == (None, "judge_error")


@pytest.mark.parametrize(
    "evaluator", [ContextPrecisionEvaluator, ContextRecallEvaluator, ChunkUtilityEvaluator]
)
@pytest.mark.parametrize("elsewhere", ["earlier turn", "prompt"])
async def test_a_turn_that_retrieved_nothing_has_no_score_whatever_else_was_known(
    evaluator, elsewhere
):
    known = {"prompt_context": "The lamp weighs 310 grams."}
    if elsewhere == "earlier turn":
        asked = Turn(role="user", text="What do you know about the lamp?")
        known = {"history": [asked, Turn(role="assistant", text="It is heavy.", context=CONTEXT)]}
    case = RAGTestCase(
        query="How heavy?", response=CASE.response, expected_facts=CASE.expected_facts, **known
    )
    metrics = [
        evaluator(policy=ScoringPolicy.LIVE),
        FaithfulnessEvaluator(policy=ScoringPolicy.LIVE),
    ]
    context_metric, faithfulness = (await evaluate_case(case, metrics, ScriptedJudge())).values()
    assert (context_metric.status, context_metric.score) == ("no_context", None)
    assert faithfulness.score == 0.5
