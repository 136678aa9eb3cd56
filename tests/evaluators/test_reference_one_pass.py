"""Document 002: rag_evals' faithfulness, graded in one pass."""

from pathlib import Path

import pytest

from loopback import MessagesServer
from ragaliq import (
    ChunkUtilityEvaluator,
    ClaudeJudge,
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


UNSUPPORTED = graded(1, "Exercise cures all", "NOT_ENOUGH_INFO")


@pytest.mark.parametrize(
    ("statements", "score"), [(EXAMPLE, 1.0), ([EXAMPLE[0], UNSUPPORTED], 0.5), ([], 0.0)]
)
async def test_the_score_is_the_proportion_of_supported_statements(statements, score):
    result = await one_pass().evaluate(CASE, Grading(*statements))
    assert (result.score, result.passed) == (score, score == 1.0)


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


def test_one_call_grades_the_answer(server):
    result = one_pass().evaluate_sync(CASE, judge_at(server))
    assert len(server.requests) == 1
    assert result.score == 1.0
    assert [claim.supporting_chunk_ids for claim in result.claims] == [(0,), (1,)]


def test_the_prompt_can_be_replaced(server, tmp_path):
    own = "Strictly! {{question}} {{answer}} {{context}}"
    Path(tmp_path, "grade_statements.md").write_text(own)
    for prompts in ({"grade_statements": own}, tmp_path):
        one_pass().evaluate_sync(CASE, judge_at(server, prompts=prompts))
    assert [request.text.startswith("Strictly!") for request in server.requests] == [True, True]


async def test_the_sibling_metric_is_the_share_of_chunks_used():
    metric = ChunkUtilityEvaluator(strategy="single_pass")
    result = await metric.evaluate(CASE, Grading(EXAMPLE[0]))
    assert result.score == 0.5
