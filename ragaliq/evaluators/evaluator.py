"""Base class of metrics: a test case and a judge in, an `EvaluationResult` out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from hashlib import blake2b
from typing import Any

from ragaliq.core.policy import Fallback, OnFailure, ScoringPolicy
from ragaliq.core.results import UNCALIBRATED, EvaluationResult, JudgeUsage, Status
from ragaliq.core.spending import spending
from ragaliq.core.suppression import suppress
from ragaliq.core.sync import run_sync
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import (
    ConfigurationError,
    JudgeError,
    JudgeInputError,
    JudgeRefusalError,
    JudgeResponseError,
    JudgeTimeoutError,
)
from ragaliq.judges.base import LLMJudge, identity_of


class Evaluator(ABC):
    """Base of every metric. Subclasses implement `measure`.

    Args:
        threshold: Score that a case must reach to pass, 0 to 1; the class default when None.
        policy: Rules for edge cases; None for the caller's (`ScoringPolicy.LIVE`;
            `ScoringPolicy.RAGALIQ` if you call the metric directly).

    Attributes:
        policy: The scoring policy in force.
        higher_is_better: False if a case passes at or below the threshold.
        needs: Fields without which a case has no score: `context`, `expected_answer`.
    """

    name: str = ""
    description: str = ""
    threshold: float = 0.7
    higher_is_better: bool = True
    policy: ScoringPolicy = ScoringPolicy.RAGALIQ
    checks_claims: bool = False
    needs: tuple[str, ...] = ("context",)
    _fingerprint: tuple[tuple[object, ...], str] | None = None

    def __init__(
        self, threshold: float | None = None, *, policy: ScoringPolicy | None = None
    ) -> None:
        if threshold is not None:
            if not 0.0 <= threshold <= 1.0:
                raise ConfigurationError(
                    f"{type(self).__name__}: threshold must be within [0, 1], got {threshold}"
                )
            self.threshold = threshold
        if policy is not None:
            self.policy = policy

    def __repr__(self) -> str:
        return f"{type(self).__name__}(threshold={self.threshold})"

    def is_passing(self, score: float) -> bool:
        """Check `score` against the threshold, with the policy's tolerance; NaN never passes."""
        if self.higher_is_better:
            return score >= self.threshold - self.policy.tolerance
        return score <= self.threshold + self.policy.tolerance

    def require(self, judge: LLMJudge) -> None:  # noqa: B027 - most metrics take any judge
        """Refuse a judge that cannot decide this metric, before anything is evaluated.

        Raises:
            ConfigurationError: The judge cannot decide this metric.
        """

    async def evaluate(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Score one case.

        Returns:
            The score with its reasons, or the status of a case without a score.

        Raises:
            JudgeError: The judge failed and the policy in force requires raising.
        """
        with suppress(), spending() as spent:
            try:
                return await self.measure(test_case, judge)
            except JudgeError as error:
                usage = spent.up_to(error)
                if self._failure_rule(error)[1] == "raise":
                    error.usage = usage
                    raise
                return self.failure_result(error, judge, usage=usage)

    def evaluate_sync(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """`evaluate` for scripts and notebooks; works inside a running event loop too."""
        return run_sync(self.evaluate(test_case, judge))

    @abstractmethod
    async def measure(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Score one case; the policy decides about a `JudgeError` raised here."""

    def failure_result(
        self, error: JudgeError, judge: LLMJudge, *, usage: JudgeUsage | None = None
    ) -> EvaluationResult:
        """Turn a judge's failure into a result: the policy's fallback; unscored if it says raise.

        Args:
            error: The judge's error.
            judge: The judge.
            usage: Usage up to the failure; by default the error's.
        """
        status, action = self._failure_rule(error)
        wording = self.policy.wording
        reasoning = f"Not scored: {status.value.replace('_', ' ')}."
        if wording is not None and isinstance(error, JudgeRefusalError):
            reasoning = wording.refusal
        elif wording is not None and isinstance(error, JudgeResponseError):
            reasoning = wording.no_verdict
        return self.result(
            judge,
            status=status,
            fallback=action if isinstance(action, Fallback) else None,
            reasoning=reasoning,
            usage=error.usage or JudgeUsage() if usage is None else usage,
            error=str(error) or type(error).__name__,
            error_type=type(error).__name__,
        )

    def _failure_rule(self, error: JudgeError) -> tuple[Status, OnFailure]:
        """Status of a judge's error, and the policy's rule for it."""
        if isinstance(error, JudgeRefusalError):
            return Status.JUDGE_REFUSED, self.policy.refusal
        if isinstance(error, JudgeResponseError):
            return Status.JUDGE_ERROR, self.policy.no_verdict
        if isinstance(error, JudgeInputError):
            return Status.TOO_LONG, self.policy.judge_failure
        if isinstance(error, JudgeTimeoutError):
            return Status.JUDGE_TIMEOUT, self.policy.judge_failure
        return Status.JUDGE_ERROR, self.policy.judge_failure

    def result(
        self,
        judge: LLMJudge,
        *,
        reasoning: str,
        usage: JudgeUsage = JudgeUsage(),
        score: float | None = None,
        fallback: Fallback | None = None,
        **fields: Any,
    ) -> EvaluationResult:
        """Build a result with this evaluator's name and threshold filled in.

        Without `score` and `fallback` the result has no score.

        Args:
            judge: The judge that decided.
            reasoning: One sentence for people.
            usage: Usage of the judge.
            score: A measured score, 0 to 1; `passed` follows from the threshold.
            fallback: Score and outcome if nothing was measured; overrides `score`.
            **fields: Further fields of `EvaluationResult`.
        """
        if fallback is not None:
            score, passed = fallback.score, fallback.passed
            # A policy's 1.0 is the best score and its 0.0 the worst one.
            if score is not None and not self.higher_is_better:
                score = 1.0 - score
        else:
            passed = None if score is None else self.is_passing(score)
        name, model, calibration, kind = identity_of(judge)
        return EvaluationResult(
            evaluator_name=self.name,
            score=score,
            passed=passed,
            reasoning=reasoning,
            tokens_used=usage.total_tokens,
            usage=usage,
            threshold=self.threshold,
            higher_is_better=self.higher_is_better,
            judge=name,
            model=model,
            calibration=calibration if self.checks_claims else UNCALIBRATED,
            judge_kind=kind,
            fingerprint=self.fingerprint(judge),
            **fields,
        )

    def fingerprint(self, judge: LLMJudge) -> str:
        """Digest of all that affects a score, as 16 hex digits, the same in every process.

        It covers the judge's model, prompts, parameters and calibration, and the metric's
        threshold, policy and other settings.
        """
        made_with = (judge, self.policy, self.threshold)
        if self._fingerprint is None or self._fingerprint[0] != made_with:
            own = judge.fingerprint()
            settings = {
                name: value
                for name, value in vars(self).items()
                if isinstance(value, str | int | float) and name != "threshold"
            }
            parts = [
                type(self).__qualname__,
                self.name,
                *identity_of(judge),
                own if isinstance(own, str) else None,
                repr(self.threshold),
                self.policy.model_dump_json(),
                repr(sorted(settings.items())),
            ]
            digest = blake2b(repr(parts).encode(), digest_size=8, person=b"ragaliq-epoch")
            self._fingerprint = made_with, digest.hexdigest()
        return self._fingerprint[1]
