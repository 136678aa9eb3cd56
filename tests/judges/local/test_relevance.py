"""The lexical measure of relevance."""

from __future__ import annotations

import pytest

from ragaliq.judges.local import LocalJudge


@pytest.fixture
def judge():
    return LocalJudge()


async def score(judge, question, answer):
    return (await judge.evaluate_relevance(question, answer)).score


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the capital of France?", "The capital of France is Paris."),
        ("What is the capital of France?", "Paris."),
        ("How long do refunds take?", "Refunds take five days."),
        ("Who designed the Eiffel Tower?", "Gustave Eiffel"),
        ("When was it completed?", "In 1889."),
        ("How can I return an item?", "Items must be returned in their original packaging."),
        ("法国的首都是什么?", "法国的首都是巴黎。"),
    ],
)
async def test_an_answer_to_the_question_passes_the_default_threshold(judge, question, answer):
    assert await score(judge, question, answer) >= 0.7


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the capital of France?", "I don't know."),
        ("What is the capital of France?", ""),
        ("What is the capital of France?", "The capital of France is the capital of France."),
        (
            "How long do refunds take?",
            "We ship worldwide with several carriers and offer gift cards to all customers.",
        ),
        ("When was the tower completed?", "The tower was completed by a famous company."),
    ],
)
async def test_an_answer_beside_the_question_does_not(judge, question, answer):
    assert await score(judge, question, answer) < 0.7


async def test_a_refusal_scores_zero_and_says_why(judge):
    result = await judge.evaluate_relevance("What is it?", "I don't know.")
    assert result.score == 0.0
    assert "declines" in result.reasoning


async def test_a_chunk_on_the_topic_scores_above_one_that_is_not(judge):
    question = "How long do refunds take?"
    on_topic = await judge.evaluate_context_relevance(question, "Refunds take five days.")
    beside = await judge.evaluate_context_relevance(question, "The tower is 330 metres tall.")
    empty = await judge.evaluate_context_relevance(question, "")
    assert on_topic.score > 0.7 > beside.score >= empty.score == 0.0
