"""Base of the metrics that look at what was retrieved rather than at the answer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from ragaliq.core.evaluator import Evaluator
from ragaliq.core.policy import UNSCORED
from ragaliq.core.results import EvaluationResult, JudgeUsage, Status
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import DatasetError
from ragaliq.judges.base import LLMJudge

__all__ = ["ContextEvaluator"]


class ContextEvaluator(Evaluator):
    """A metric of the retrieved context.

    Where nothing was retrieved the score is 0.0 without a call, unless the policy says that a case
    without context is an error or is not scored.
    """

    async def measure(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Measure the context, if there is any."""
        if test_case.has_context:
            return await self.measure_context(test_case, judge)
        if self.policy.empty_context == "error":
            raise DatasetError(
                f"case {test_case.id!r} has no context, which policy {self.policy.name!r} does "
                "not allow; give it context or choose another policy"
            )
        skip = self.policy.empty_context == "skip"
        return self.result(
            judge,
            status=Status.NO_CONTEXT if skip else Status.SCORED,
            score=0.0,
            fallback=UNSCORED if skip else None,
            reasoning="Nothing was retrieved.",
            usage=JudgeUsage(),
            raw_response=self.raw_response(()),
        )

    @abstractmethod
    async def measure_context(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Measure a context that is not empty."""

    @abstractmethod
    def raw_response(self, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The metric's documented details."""
