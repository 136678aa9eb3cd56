"""Relevance by the user's own embeddings instead of by words."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence

from ragaliq.errors import JudgeAPIError, JudgeResponseError
from ragaliq.judges.language.refusals import is_refusal
from ragaliq.judges.local.relevance import Relevance

__all__ = ["Embed", "embedded_answer_relevance", "embedded_chunk_relevance"]

Embed = Callable[[list[str]], Sequence[Sequence[float]]]
"""Texts to vectors, one each, all of one length."""


async def embedded_answer_relevance(embed: Embed, question: str, answer: str) -> Relevance:
    """How near an answer is to a question; 0 where it declines or is empty."""
    if not answer.strip():
        return Relevance(0.0, "The answer is empty.")
    if is_refusal(answer):
        return Relevance(0.0, "The answer declines to answer.")
    return await _nearness(embed, question, answer)


async def embedded_chunk_relevance(embed: Embed, question: str, chunk: str) -> Relevance:
    """How near a chunk of context is to a question."""
    return await _nearness(embed, question, chunk)


async def _nearness(embed: Embed, question: str, text: str) -> Relevance:
    """The cosine of both vectors, from -1 to 1, as `(1 + cosine) / 2`."""
    try:
        # It may be a model or a request: other evaluations go on meanwhile.
        vectors = await asyncio.to_thread(embed, [question, text])
    except Exception as error:  # noqa: BLE001 - whatever the function fails with
        # Its message, and so the chain of causes, may hold the texts.
        raise JudgeAPIError(f"the embedding function failed: {type(error).__name__}") from None
    cosine = _cosine(*_pair(vectors))
    return Relevance(
        round((1.0 + cosine) / 2.0, 4), f"The cosine of question and text is {cosine:.2f}."
    )


def _pair(vectors: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
    try:
        one, other = ([float(value) for value in vector] for vector in vectors)
    except (TypeError, ValueError):
        raise JudgeResponseError(
            "the embedding function must give one vector of numbers for each of the two texts"
        ) from None
    if len(one) != len(other) or not all(map(math.isfinite, one + other)):
        raise JudgeResponseError(
            "the embedding function gave vectors of different lengths, or with infinite values"
        )
    return one, other


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    lengths = math.hypot(*one) * math.hypot(*other)
    if not lengths:  # a text in which the model sees nothing is near to nothing
        return 0.0
    dot = math.fsum(left * right for left, right in zip(one, other, strict=True))
    return max(-1.0, min(1.0, dot / lengths))
