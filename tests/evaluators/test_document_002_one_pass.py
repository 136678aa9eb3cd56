"""Document 002: rag_evals' faithfulness, graded in one pass."""

from pathlib import Path

import pytest

from loopback import MessagesServer
from ragaliq import (
    ChunkUtilityEvaluator,
    ClaudeJudge,
    ConfigurationError,
    FaithfulnessEvaluator,
    RAGTestCase,
    ScoringPolicy,
)
from ragaliq.judges import ClaimVerdict, VerdictsResult
from ragaliq.testing import ScriptedJudge

CASE = RAGTestCase(
    query="What does exercise do?",
    context=["Regular exercise improves cardiovascular health.", "Exercise increases strength."],
    response="Regular exercise improves cardiovascular health. Exercise increases strength.",
)


def one_pass(**options):
    return FaithfulnessEvaluator(strategy="single_pass", policy=ScoringPolicy.RAG_EVALS, **options)


class Grading(ScriptedJudge):
    """Returns the document's example, or whatever the test says."""

    def __init__(self, *statements):
        super().__init__()
        self.statements = list(statements)

    async def grade_statements(self, query, response, context):
        return VerdictsResult(verdicts=self.statements)


def graded(index, statement, verdict="SUPPORTED", chunks=()):
    return ClaimVerdict(
        index=index, statement=statement, verdict=verdict, supporting_chunk_ids=list(chunks)
    )


EXAMPLE = (
    graded(0, "Regular exercise improves cardiovascular health", chunks=[0]),
    graded(1, "Exercise increases strength", chunks=[1]),
)


async def test_the_example_output_scores_one_with_its_chunk_ids():
    result = await one_pass().evaluate(CASE, Grading(*EXAMPLE))
    assert result.score == 1.0
    assert [claim.supporting_chunk_ids for claim in result.claims] == [(0,), (1,)]


async def test_the_score_is_the_proportion_of_supported_statements():
    unsupported = graded(1, "Exercise cures all", "NOT_ENOUGH_INFO")
    result = await one_pass().evaluate(CASE, Grading(EXAMPLE[0], unsupported))
    assert result.score == 0.5


async def test_no_statements_score_zero_and_fail():
    result = await one_pass().evaluate(CASE, Grading())
    assert (result.score, result.passed) == (0.0, False)


async def test_reasoning_for_each_statement_is_kept():
    statement = graded(0, "Exercise helps").model_copy(update={"reason": "Said in chunk 0."})
    result = await one_pass().evaluate(CASE, Grading(statement))
    assert result.raw_response["claims"][0]["reason"] == "Said in chunk 0."


@pytest.fixture
def server():
    with MessagesServer() as server:
        yield server


def judge_at(server, **options):
    return ClaudeJudge(api_key="not-a-key", base_url=server.url, **options)


async def test_one_call_grades_the_answer(server):
    result = await one_pass().evaluate(CASE, judge_at(server))
    assert len(server.requests) == 1
    assert result.score == 1.0
    assert [claim.supporting_chunk_ids for claim in result.claims] == [(0,), (1,)]


def test_a_synchronous_call_does_the_same(server):
    assert one_pass().evaluate_sync(CASE, judge_at(server)).score == 1.0


def test_the_prompt_can_be_replaced(server, tmp_path):
    own = "Strictly! {{question}} {{answer}} {{context}}"
    Path(tmp_path, "grade_statements.md").write_text(own)
    for prompts in ({"grade_statements": own}, tmp_path):
        one_pass().evaluate_sync(CASE, judge_at(server, prompts=prompts))
    assert [request.text.startswith("Strictly!") for request in server.requests] == [True, True]


def test_a_prompt_without_its_placeholders_is_refused_when_the_judge_is_built(server):
    with pytest.raises(ConfigurationError, match="grade_statements"):
        judge_at(server, prompts={"grade_statements": "Your custom prompt here..."})


async def test_the_sibling_metric_is_the_share_of_chunks_used():
    metric = ChunkUtilityEvaluator(strategy="single_pass")
    result = await metric.evaluate(CASE, Grading(EXAMPLE[0]))
    assert result.score == 0.5
