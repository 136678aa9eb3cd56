"""Context precision: whether the chunks that help come first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ragaliq.core.concurrency import run_all
from ragaliq.core.results import EvaluationResult, JudgeUsage
from ragaliq.core.spending import paid
from ragaliq.core.test_case import RAGTestCase
from ragaliq.evaluators.context_based import ContextEvaluator
from ragaliq.evaluators.registry import register_evaluator
from ragaliq.judges.base import JudgeResult, LLMJudge

__all__ = ["ContextPrecisionEvaluator"]

_CONCURRENT_CHUNKS = 8
_HELPFUL_FROM = 0.5


@register_evaluator("context_precision")
class ContextPrecisionEvaluator(ContextEvaluator):
    """Rank-aware share of retrieved chunks that help to answer the question.

    Average precision over the ranking (as RAGAS's context precision, and Manning et al. 2008,
    "Introduction to Information Retrieval", section 8.4): the mean, over the ranks k that hold a
    helpful chunk, of the share of helpful chunks among the first k. A chunk is helpful when the
    judge finds it at least 0.5 relevant to the question; that takes one call for each chunk. 0.0
    when no chunk helps.

    `raw_response`: `chunks` (a list of `{id, relevance, helpful, reasoning}` in rank order),
    `helpful_chunks`, `total_chunks`.
    """

    description = "Measures whether the retrieved chunks that help come first"
    threshold = 0.7

    async def measure_context(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Ask about each chunk and grade the ranking."""
        slots = asyncio.Semaphore(_CONCURRENT_CHUNKS)

        async def relevance(chunk: str) -> JudgeResult:
            async with slots:
                return await paid(judge.evaluate_context_relevance(test_case.query, chunk))

        replies = await run_all(relevance(text) for text in test_case.context_texts)
        helpful = [reply.score >= _HELPFUL_FROM for reply in replies]
        rows = [
            {
                "id": chunk_id,
                "relevance": reply.score,
                "helpful": helps,
                "reasoning": reply.reasoning,
            }
            for chunk_id, reply, helps in zip(test_case.chunk_ids, replies, helpful, strict=True)
        ]
        return self.result(
            judge,
            score=_average_precision(helpful),
            reasoning=f"{sum(helpful)} of {len(helpful)} retrieved chunks help to answer.",
            usage=sum((reply.spent() for reply in replies), JudgeUsage()),
            raw_response=self.raw_response(rows),
        )

    def raw_response(self, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """`chunks`, `helpful_chunks`, `total_chunks`."""
        return {
            "chunks": list(rows),
            "helpful_chunks": sum(row["helpful"] for row in rows),
            "total_chunks": len(rows),
        }


def _average_precision(helpful: Sequence[bool]) -> float:
    found, total = 0, 0.0
    for rank, helps in enumerate(helpful, start=1):
        if helps:
            found += 1
            total += found / rank
    return total / found if found else 0.0
