"""Relevance by the user's own embeddings."""

from __future__ import annotations

import pytest

from ragaliq.errors import JudgeAPIError, JudgeResponseError
from ragaliq.judges.local import LocalJudge
from ragaliq.scoring.execution import obstacle


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


async def test_the_function_is_given_the_question_and_the_text():
    seen = []

    def embed(texts):
        seen.append(texts)
        return [[1.0], [1.0]]

    await LocalJudge(embed=embed).evaluate_relevance("Where?", "In Paris.")
    assert seen == [["Where?", "In Paris."]]


async def test_empty_answers_and_refusals_need_no_embedding():
    judge = LocalJudge(embed=vectors())
    assert (await judge.evaluate_relevance("Where?", " ")).score == 0.0
    assert (await judge.evaluate_relevance("Where?", "I don't know.")).score == 0.0


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


async def test_without_the_function_relevance_is_lexical():
    plain = await LocalJudge().evaluate_relevance("Where is Paris?", "Paris is in France.")
    assert "wording" in plain.reasoning


def test_a_judge_with_a_function_is_not_rebuilt_in_another_process():
    assert obstacle(LocalJudge(), []) is None
    assert "embedding function" in obstacle(LocalJudge(embed=vectors()), [])
