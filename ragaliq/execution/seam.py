"""The step that may happen elsewhere: one case in, its results out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from ragaliq.core.evaluator import Evaluator
from ragaliq.core.results import EvaluationResult
from ragaliq.core.test_case import RAGTestCase
from ragaliq.evaluators.case import evaluate_case
from ragaliq.judges.base import LLMJudge

__all__ = ["CaseScorer", "Executor", "ThreadScorer"]

Executor = Literal["thread", "process"]


class CaseScorer(Protocol):
    """Evaluates cases, several at once; everything but `after_fork` runs on the worker's loop."""

    @property
    def executor(self) -> Executor:
        """Where cases are evaluated now."""

    @property
    def restarts(self) -> int:
        """How often the process that judges had to be started again."""

    async def score(
        self, case: RAGTestCase, evaluators: Sequence[Evaluator], *, deadline: float
    ) -> dict[str, EvaluationResult]:
        """A result for every evaluator, by name, as `evaluate_case` gives it.

        Args:
            case: Question, context and answer.
            evaluators: Those of the monitor, or some of them.
            deadline: Seconds each metric may take.
        """

    async def aclose(self) -> None:
        """Release what is held; nothing is scored afterwards."""

    def after_fork(self) -> CaseScorer:
        """In a forked child: the scorer to go on with; what the parent holds stays its own."""


class ThreadScorer:
    """Evaluates on the worker's thread.

    Args:
        judge: Who decides.
    """

    executor: Executor = "thread"
    restarts = 0

    def __init__(self, judge: LLMJudge) -> None:
        self._judge = judge

    async def score(
        self, case: RAGTestCase, evaluators: Sequence[Evaluator], *, deadline: float
    ) -> dict[str, EvaluationResult]:
        """See `CaseScorer`."""
        return await evaluate_case(case, evaluators, self._judge, deadline=deadline)

    async def aclose(self) -> None:
        """Close the judge."""
        await self._judge.aclose()

    def after_fork(self) -> ThreadScorer:
        """The same: judges bring their clients through a fork by themselves."""
        return self
