"""Relevance: how well the answer addresses the question."""

from __future__ import annotations

from ragaliq.core.evaluator import Evaluator
from ragaliq.core.results import EvaluationResult
from ragaliq.core.spending import paid
from ragaliq.core.test_case import RAGTestCase
from ragaliq.evaluators.registry import register_evaluator
from ragaliq.judges.base import LLMJudge

__all__ = ["RelevanceEvaluator"]


@register_evaluator("relevance")
class RelevanceEvaluator(Evaluator):
    """The judge's own relevance score, passed through with its reasoning.

    `raw_response`: `score`, `reasoning`, `tokens_used`.
    """

    description = "Measures how well the answer addresses the question"
    threshold = 0.7

    async def measure(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Ask the judge and pass on what it says."""
        reply = await paid(judge.evaluate_relevance(test_case.query, test_case.response))
        return self.result(
            judge,
            score=reply.score,
            reasoning=reply.reasoning,
            usage=reply.spent(),
            raw_response={
                "score": reply.score,
                "reasoning": reply.reasoning,
                "tokens_used": reply.tokens_used,
            },
        )
