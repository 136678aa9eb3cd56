"""The evaluator interface: a test case and a judge in, an `EvaluationResult` out."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

from ragaliq.core.policy import UNSCORED, Fallback, OnFailure, ScoringPolicy
from ragaliq.core.results import UNCALIBRATED, EvaluationResult, JudgeUsage, Status
from ragaliq.core.spending import spending
from ragaliq.core.suppression import suppress
from ragaliq.core.sync import run_sync
from ragaliq.errors import (
    ConfigurationError,
    JudgeError,
    JudgeRefusalError,
    JudgeResponseError,
    JudgeTimeoutError,
)

if TYPE_CHECKING:
    from ragaliq.core.test_case import RAGTestCase
    from ragaliq.judges.base import LLMJudge

__all__ = ["EvaluationResult", "Evaluator", "judge_calibration", "judge_name"]


class Evaluator(ABC):
    """Base of every metric. Subclasses implement `measure`.

    Args:
        threshold: Score from which on a case passes, 0 to 1; the class default when None.
        policy: What to do in awkward cases; None leaves the choice to whoever runs the evaluator
            (`ScoringPolicy.RAGALIQ` offline, `ScoringPolicy.LIVE` in a monitor).
    """

    name: str = ""
    description: str = ""
    threshold: float = 0.7
    higher_is_better: bool = True

    def __init__(
        self, threshold: float | None = None, *, policy: ScoringPolicy | None = None
    ) -> None:
        if threshold is not None:
            if not 0.0 <= threshold <= 1.0:
                raise ConfigurationError(
                    f"{type(self).__name__}: threshold must be within [0, 1], got {threshold}"
                )
            self.threshold = threshold
        self._policy = policy

    def __repr__(self) -> str:
        return f"{type(self).__name__}(threshold={self.threshold})"

    @property
    def policy(self) -> ScoringPolicy:
        """The scoring policy in force."""
        return self._policy or ScoringPolicy.RAGALIQ

    def with_default_policy(self, policy: ScoringPolicy) -> Self:
        """This evaluator under `policy`, unless it was built with one of its own."""
        if self._policy is not None:
            return self
        twin = copy.copy(self)
        twin._policy = policy
        return twin

    def is_passing(self, score: float) -> bool:
        """Whether `score` reaches the threshold, with the policy's tolerance."""
        return self.policy.is_passing(score, self.threshold)

    def require(self, judge: LLMJudge) -> None:  # noqa: B027 - most metrics take any judge
        """Refuse a judge that cannot do what this metric asks of it, before anything is judged.

        Raises:
            ConfigurationError: It cannot.
        """

    async def evaluate(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Score one case.

        Args:
            test_case: Question, context and answer.
            judge: Who decides.

        Returns:
            The score with its reasons, or the status that says why there is none.

        Raises:
            JudgeError: The judge failed and the policy in force says to raise.
        """
        with suppress(), spending() as spent:
            try:
                return await self.measure(test_case, judge)
            except JudgeError as error:
                return self.settle_failure(error, judge, usage=spent.up_to(error))

    def evaluate_sync(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """`evaluate` for scripts and notebooks; works inside a running event loop too."""
        return run_sync(self.evaluate(test_case, judge))

    @abstractmethod
    async def measure(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Score one case; any `JudgeError` raised here is settled by the policy."""

    def settle_failure(
        self, error: JudgeError, judge: LLMJudge, *, usage: JudgeUsage | None = None
    ) -> EvaluationResult:
        """Turn a judge's failure into what the policy says, or raise it again.

        Args:
            error: What the judge raised.
            judge: The judge.
            usage: What the measuring cost up to there; by default what the error says.
        """
        if self.failure_rule(error)[1] == "raise":
            error.usage = error.usage if usage is None else usage
            raise error
        return self.failure_result(error, judge, usage=usage)

    def failure_result(
        self, error: JudgeError, judge: LLMJudge, *, usage: JudgeUsage | None = None
    ) -> EvaluationResult:
        """A judge's failure as a result: the policy's fallback, unscored where it says to raise."""
        status, action = self.failure_rule(error)
        if usage is None:
            usage = error.usage or JudgeUsage()
        return self.result(
            judge,
            status=status,
            fallback=action if isinstance(action, Fallback) else UNSCORED,
            reasoning=self._why_not(status, error),
            usage=usage,
            error=str(error) or type(error).__name__,
            error_type=type(error).__name__,
        )

    def _why_not(self, status: Status, error: JudgeError) -> str:
        wording = self.policy.wording
        if wording is not None and isinstance(error, JudgeRefusalError):
            return wording.refusal
        if wording is not None and isinstance(error, JudgeResponseError):
            return wording.no_verdict
        return f"Not scored: {status.value.replace('_', ' ')}."

    def failure_rule(self, error: JudgeError) -> tuple[Status, OnFailure]:
        """The status a judge's error stands for, and what the policy does about it."""
        if isinstance(error, JudgeRefusalError):
            return Status.JUDGE_REFUSED, self.policy.refusal
        if isinstance(error, JudgeResponseError):
            return Status.JUDGE_ERROR, self.policy.no_verdict
        if isinstance(error, JudgeTimeoutError):
            return Status.JUDGE_TIMEOUT, self.policy.judge_failure
        return Status.JUDGE_ERROR, self.policy.judge_failure

    def result(
        self,
        judge: LLMJudge,
        *,
        reasoning: str,
        usage: JudgeUsage,
        score: float | None = None,
        fallback: Fallback | None = None,
        **fields: Any,
    ) -> EvaluationResult:
        """Build a result with this evaluator's name and threshold filled in.

        Args:
            judge: The judge that decided.
            reasoning: One sentence for people.
            usage: What it cost.
            score: A measured score, 0 to 1; `passed` follows from the threshold.
            fallback: Score and outcome where nothing was measured; overrides `score`.
            **fields: Further fields of `EvaluationResult`.
        """
        if fallback is not None:
            score, passed = fallback.score, fallback.passed
        else:
            passed = None if score is None else self.is_passing(score)
        model = getattr(judge, "model", None)
        return EvaluationResult(
            evaluator_name=self.name,
            score=score,
            passed=passed,
            reasoning=reasoning,
            tokens_used=usage.total_tokens,
            usage=usage,
            threshold=self.threshold,
            higher_is_better=self.higher_is_better,
            judge=judge_name(judge),
            model=model if isinstance(model, str) else None,
            **fields,
        )


def judge_name(judge: LLMJudge) -> str:
    """The judge's name in results; its class where it has no proper one."""
    name: object = judge.name
    # A MagicMock(spec=LLMJudge) answers any attribute with another mock.
    return name if isinstance(name, str) else type(judge).__name__


def judge_calibration(judge: LLMJudge) -> str:
    """Id of the calibration behind the judge's confidence; `uncalibrated` without one."""
    calibration: object = getattr(judge, "calibration", None)
    return calibration if isinstance(calibration, str) else UNCALIBRATED
