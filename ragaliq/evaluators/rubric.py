"""`Rubric`: a metric in the user's own words, for prompted judges."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.results import EvaluationResult, Status
from ragaliq.core.spending import paid
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import ConfigurationError
from ragaliq.evaluators.evaluator import Evaluator
from ragaliq.evaluators.registry import list_evaluators
from ragaliq.judges.base import JudgeResult, LLMJudge

_LONGEST_NAME = 64


@runtime_checkable
class _GradesByRubric(Protocol):
    async def evaluate_rubric(self, rubric: str, query: str, response: str) -> JudgeResult:
        """Score how well an answer meets a criterion."""


class Rubric(Evaluator):
    """Metric from a criterion in plain words: offline, live, in tests and in guards.

        polite = Rubric("polite", "The answer is polite, and blames nobody.")
        evaluate(cases, metrics=["faithfulness", polite], judge="claude")

    The judge reads criterion, question and answer, and scores the answer between 0 and 1. Only
    prompted judges can do so: Claude, chat-completions servers, and chat models of LangChain and
    LlamaIndex.

    `raw_response`: `criterion`, `score`, `reasoning`.

    Args:
        name: The metric's name: letters, digits and underscores.
        criterion: What a good answer does. It is part of the prompt and not treated as data: never
            take it from untrusted input.
        threshold: Score that a case must reach to pass.
        policy: See `Evaluator`.

    Raises:
        ConfigurationError: The name is invalid or that of another metric, or there is no criterion.
    """

    description = "Measures what a criterion in plain words says"
    needs = ()

    def __init__(
        self,
        name: str,
        criterion: str,
        threshold: float = 0.7,
        *,
        policy: ScoringPolicy | None = None,
    ) -> None:
        if not name.isidentifier() or len(name) > _LONGEST_NAME:
            raise ConfigurationError(
                f"Rubric: the name must be at most {_LONGEST_NAME} letters, digits and "
                f"underscores, the first no digit, got {name!r}"
            )
        if name in list_evaluators():
            raise ConfigurationError(f"Rubric: {name!r} is the name of another metric")
        if not criterion.strip():
            raise ConfigurationError(f"Rubric {name!r}: say what a good answer does")
        super().__init__(threshold, policy=policy)
        self.name, self.criterion = name, criterion.strip()

    def require(self, judge: LLMJudge) -> None:
        """Refuse a judge that is not prompted."""
        if not isinstance(judge, _GradesByRubric):
            raise ConfigurationError(
                f"Rubric {self.name!r} needs a judge that is asked in words, such as 'claude', "
                f"and {type(judge).__name__} is not one"
            )

    async def measure(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Let the judge score an answer by the criterion; an empty answer is not scored."""
        self.require(judge)
        if not test_case.response.strip():
            return self.result(judge, status=Status.EMPTY_ANSWER, reasoning="The answer is empty.")
        assert isinstance(judge, _GradesByRubric)  # noqa: S101 - for mypy
        reply = await paid(
            judge.evaluate_rubric(self.criterion, test_case.query, test_case.response)
        )
        return self.result(
            judge,
            score=reply.score,
            reasoning=reply.reasoning,
            usage=reply.spent(),
            raw_response={
                "criterion": self.criterion,
                "score": reply.score,
                "reasoning": reply.reasoning,
            },
        )
