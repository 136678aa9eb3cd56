"""Relevance, by words and by the user's own embeddings."""

import pytest

from ragaliq.errors import JudgeAPIError, JudgeResponseError
from ragaliq.judges import LocalJudge
from ragaliq.scoring.execution import obstacle


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
        ("Who designed the Eiffel Tower?", "Gustave Eiffel"),
        ("How can I return an item?", "Items must be returned in their original packaging."),
        ("法国的首都是什么?", "法国的首都是巴黎。"),
        ("Who wrote Faust?", "Goethe."),
        ("Who wrote Faust?", "Goethe did, in 1808."),
        ("Who invented the car?", "A German engineer, Karl Benz."),
        ("谁写了浮士德?", "歌德"),
        ("Can you tell me who wrote Faust?", "Goethe."),
        ("When did the war end?", "1945"),
        ("When was it completed?", "It was finished in 1889."),
        ("How much does it cost?", "42 euros"),
        ("How long do refunds take?", "Within 5 to 7 working days."),
        ("Where can I park?", "Behind the station in Linz."),
        ("Which team won?", "Bayern Munich."),
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


QUESTIONS = [
    "How do I reset my password?",
    "When was the tower completed?",
    "Where is the museum?",
    "Why was the order cancelled?",
]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    "answer",
    [
        "Bananas are yellow.",
        "bananas are yellow",
        "Bananas grow in Africa.",
        "The invoice was sent on 3 May.",
        "Bananen sind gelbe Früchte.",
    ],
)
async def test_a_short_answer_on_another_topic_does_not_pass(judge, question, answer):
    assert await score(judge, question, answer) < 0.7


@pytest.mark.parametrize("answer", ["Paris.", "42 euros", "1953"])
async def test_a_name_or_number_is_no_answer_where_none_is_asked_for(judge, answer):
    assert await score(judge, "How do I reset my password?", answer) < 0.7


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


# By the user's own embeddings.


def vectors(*pairs):
    return lambda texts: list(pairs)


@pytest.mark.parametrize(
    ("one", "other", "score"),
    [((1, 0), (2, 0), 1.0), ((1, 0), (0, 3), 0.5), ((1, 0), (-1, 0), 0.0), ((0, 0), (1, 1), 0.5)],
)
async def test_the_cosine_is_mapped_to_zero_to_one(one, other, score):
    judge = LocalJudge(embed=vectors(one, other))
    assert (await judge.evaluate_relevance("Where?", "In Paris.")).score == score
    assert (await judge.evaluate_context_relevance("Where?", "In Paris.")).score == score


async def test_the_function_is_given_question_and_text_but_no_empty_answer_or_refusal():
    seen = []

    def embed(texts):
        seen.append(texts)
        return [[1.0], [1.0]]

    judge = LocalJudge(embed=embed)
    assert (await judge.evaluate_relevance("Where?", " ")).score == 0.0
    assert (await judge.evaluate_relevance("Where?", "I don't know.")).score == 0.0
    await judge.evaluate_relevance("Where?", "In Paris.")
    assert seen == [["Where?", "In Paris."]]


@pytest.mark.parametrize(
    "given", [(), ((1.0,),), ((1.0,), (1.0, 2.0)), (("x",), ("y",)), ((float("nan"),), (1.0,))]
)
async def test_anything_but_two_vectors_of_one_length_is_an_error(given):
    with pytest.raises(JudgeResponseError, match="the embedding function"):
        await LocalJudge(embed=vectors(*given)).evaluate_relevance("Where?", "In Paris.")


async def test_a_function_that_fails_is_a_judge_error_without_its_message():
    def fails(texts):
        raise RuntimeError(f"secret {texts}")

    with pytest.raises(JudgeAPIError, match=r"^the embedding function failed: RuntimeError$") as e:
        await LocalJudge(embed=fails).evaluate_relevance("Where?", "In Paris.")
    assert e.value.__suppress_context__


def test_a_judge_with_a_function_is_not_rebuilt_in_another_process():
    assert obstacle(LocalJudge(), []) is None
    assert "LocalJudge" in obstacle(LocalJudge(embed=vectors()), [])
