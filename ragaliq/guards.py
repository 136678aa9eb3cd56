"""Guards: the decision whether an answer may go out. They use no framework."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Unpack, get_args

from ragaliq.capture import RunLog
from ragaliq.core.checks import require_choice, require_positive, takes_only
from ragaliq.core.concurrency import off_loop_if_long
from ragaliq.core.results import ClaimDetail, Evaluation, EvaluationResult, Status
from ragaliq.core.suppression import is_suppressed
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import (
    BudgetExceeded,
    ConfigurationError,
    EvaluationTimeout,
    NotEvaluated,
    RagaliqError,
)
from ragaliq.evaluators.registry import EvaluatorSpec
from ragaliq.judges.language.answers import asserts_nothing
from ragaliq.live.monitor import Monitor, RunDetails

__all__ = ["Action", "Decision", "Guard", "GuardRejected", "GuardResult", "Step"]

Action = Literal["fallback", "annotate", "raise"]
Step = Literal["pass", "fallback", "annotate"]
Decision = Literal["passed", "rejected", "unscored", "no_claims", "failed", "timeout", "off"]
"""`unscored`: the answer asserts something that was not checked: there is no context, answer or
context are too long for the judge, or the claims that were checked are too small a part of it.
`no_claims`: it asserts nothing. `failed`: the judge or the monitor failed, which says nothing about
the answer. `off`: the monitor is disabled, or the call is inside `suppress()`."""
_Otherwise = Literal["pass", "block"]

_FALLBACK = "I cannot answer this reliably from the sources I have."
_NOTE = "Note: parts of this answer could not be confirmed by the sources."


class GuardRejected(RagaliqError):  # noqa: N818 - a refusal to let it out, not a fault
    """A guard stopped an answer.

    Args:
        result: The decision and its reason. It contains the application's text; the message does
            not.
    """

    def __init__(self, result: GuardResult) -> None:
        super().__init__(f"the guard stopped the answer: {result.reason}")
        self.result = result


@dataclass(frozen=True, kw_only=True)
class GuardResult:
    """Decision of a guard on one answer; contains the application's text.

    Attributes:
        decision: See `Decision`.
        passes: Whether the answer may go out, by the decision and the guard's settings.
        reason: One sentence without the application's text.
        evaluation: The evaluation, if there was one.
        below: The metrics that did not reach their threshold.
    """

    decision: Decision
    passes: bool
    reason: str
    evaluation: Evaluation | None = None
    below: tuple[EvaluationResult, ...] = ()

    @property
    def scores(self) -> Mapping[str, float]:
        """Measured scores by metric."""
        results = {} if self.evaluation is None else self.evaluation.results
        return {name: r.score for name, r in results.items() if r.score is not None}

    @property
    def failed_claims(self) -> tuple[ClaimDetail, ...]:
        """Claims that the context contradicts or does not cover, each once."""
        found = {
            claim.claim: claim
            for result in self.below
            for claim in result.claims
            if claim.verdict in {"CONTRADICTED", "NOT_ENOUGH_INFO"}
        }
        return tuple(found.values())

    @property
    def summary(self) -> dict[str, Any]:
        """Result without any text, as plain data, to attach to an answer."""
        return {
            "decision": self.decision,
            "reason": self.reason,
            "scores": dict(self.scores),
            "below": [result.evaluator_name for result in self.below],
            "failed_claims": len(self.failed_claims),
        }

    @property
    def feedback(self) -> str:
        """Feedback for the model that gave the answer, so that it can improve it.

        It quotes the claims that failed; send it only to the application's own model.
        """
        lines = ["Your last answer was not accepted."]
        if claims := self.failed_claims:
            lines.append("The sources do not support these statements:")
            for claim in claims:
                otherwise = " (they say otherwise)" if claim.verdict == "CONTRADICTED" else ""
                lines.append(f"- {claim.claim}{otherwise}")
        if any(not result.claims for result in self.below):
            lines.append("It does not answer the question.")
        lines.append(
            "Answer the question again. Say only what the sources say; where they do not answer "
            "it, say that you do not know."
        )
        return "\n".join(lines)


class Guard:
    """Decides whether answers may go out.

        result = guard.check(RAGTestCase(query=..., context=[...], response=answer))
        return answer if result.passes else "I do not know."

    Args:
        monitor: Evaluates the answers; by default built from `monitor_options`, with faithfulness
            as the only metric.
        metrics: Metrics of the guard's own monitor, each with its threshold, such as
            `[FaithfulnessEvaluator(0.9)]`. Every one must pass.
        action: Action of the guards around chains, agents and engines for an answer that may not
            go out: `fallback` replaces it, `annotate` lets it out with the decision attached,
            `raise` raises `GuardRejected`.
        fallback: The replacement: a text, or a function of the `GuardResult`.
        note: Text that `annotate` adds to an answer that is a plain string.
        timeout: Most seconds for a check.
        on_timeout: Whether an answer whose check takes too long goes out; it is still scored and
            counted in the background.
        on_failure: Whether an answer goes out when the judge or the monitor fails, or a budget is
            used up.
        on_unscored: Whether an answer goes out whose assertions were not checked. An answer
            without assertions always goes out.
        **monitor_options: Arguments of `Monitor`, such as `judge`.

    Raises:
        ConfigurationError: A setting is wrong.
    """

    @takes_only(Monitor)
    def __init__(
        self,
        monitor: Monitor | None = None,
        *,
        metrics: Iterable[EvaluatorSpec] | None = None,
        action: Action = "fallback",
        fallback: str | Callable[[GuardResult], Any] = _FALLBACK,
        note: str = _NOTE,
        timeout: float = 10.0,
        on_timeout: _Otherwise = "pass",
        on_failure: _Otherwise = "pass",
        on_unscored: _Otherwise = "block",
        **monitor_options: Any,
    ) -> None:
        require_choice(action, *get_args(Action), name="Guard: action")
        otherwise = {"timeout": on_timeout, "failed": on_failure, "unscored": on_unscored}
        for setting, chosen in zip(
            ("on_timeout", "on_failure", "on_unscored"), otherwise.values(), strict=True
        ):
            require_choice(chosen, *get_args(_Otherwise), name=f"Guard: {setting}")
        require_positive("Guard", timeout=timeout)
        if not isinstance(fallback, str) and not callable(fallback):
            raise ConfigurationError(
                f"Guard: fallback must be a text or a function of the GuardResult, got {fallback!r}"
            )
        if not isinstance(note, str):
            raise ConfigurationError(f"Guard: note must be a text, got {note!r}")
        if monitor is not None and (monitor_options or metrics is not None):
            raise ConfigurationError("Guard: give a monitor or what to build one from, not both")
        if monitor is None:
            monitor = Monitor(metrics=metrics or ("faithfulness",), **monitor_options)
        if monitor.is_enabled and monitor.judge is None:
            raise ConfigurationError(
                "Guard: workers evaluate the monitor's runs, so no result comes back in time; "
                "give the guard a monitor with executor='thread' or 'process'"
            )
        self.monitor = monitor
        self.action: Action = action
        self.note = note
        self.timeout = timeout
        self._fallback = fallback
        self._blocks: set[str] = {"rejected"}
        self._blocks |= {name for name, chosen in otherwise.items() if chosen == "block"}

    def __repr__(self) -> str:
        return f"Guard({self.monitor!r}, action={self.action!r})"

    # Guards are parts of chains, which frameworks copy; a monitor cannot be copied.
    def __deepcopy__(self, memo: dict[int, object]) -> Guard:
        return self

    @property
    def is_off(self) -> bool:
        """True if answers go out unchecked: the monitor is disabled, or inside `suppress()`."""
        return is_suppressed() or not self.monitor.is_enabled

    def check(self, case: RAGTestCase | RunLog, **run: Unpack[RunDetails]) -> GuardResult:
        """Check an answer; blocks at most `timeout` seconds and does not raise the judge's errors.

        Args:
            case: Question, context and answer.
            **run: Details of the run; see `Monitor.evaluate`.
        """
        if self.is_off:
            return self._result("off", "nothing is evaluated here")
        try:
            return self._decide(self.monitor.evaluate(case, timeout=self.timeout, **run))
        except (NotEvaluated, BudgetExceeded) as error:
            return self._unevaluated(error)

    async def acheck(self, case: RAGTestCase | RunLog, **run: Unpack[RunDetails]) -> GuardResult:
        """`check` without blocking the event loop."""
        if self.is_off:
            return self._result("off", "nothing is evaluated here")
        try:
            evaluation = await self.monitor.aevaluate(case, timeout=self.timeout, **run)
        except (NotEvaluated, BudgetExceeded) as error:
            return self._unevaluated(error)
        length = len(evaluation.case.response)
        return await off_loop_if_long(length, self._decide, evaluation)

    def failed(self, reason: str) -> GuardResult:
        """Result for an answer that could not be submitted to the judge, for adapters."""
        return self._result("failed", reason)

    def step(self, result: GuardResult) -> Step:
        """Next step for the answer.

        Raises:
            GuardRejected: The answer must not go out and the action is `raise`.
        """
        if result.passes:
            return "pass"
        if self.action == "raise":
            raise GuardRejected(result)
        return self.action

    def fallback(self, result: GuardResult) -> Any:
        """Replacement of an answer that must not go out."""
        return self._fallback(result) if callable(self._fallback) else self._fallback

    def _result(self, decision: Decision, reason: str, **found: Any) -> GuardResult:
        passes = decision not in self._blocks
        return GuardResult(decision=decision, passes=passes, reason=reason, **found)

    def _unevaluated(self, error: NotEvaluated | BudgetExceeded) -> GuardResult:
        is_late = isinstance(error, EvaluationTimeout)
        return self._result("timeout" if is_late else "failed", str(error))

    def _decide(self, evaluation: Evaluation) -> GuardResult:
        """Decide on an evaluation.

        A measured failure counts even if other metrics have no score; a judge's failure is neither
        good nor bad.
        """
        results = evaluation.results.values()
        below = tuple(result for result in results if _is_below(result))
        statuses = {result.status for result in results}
        decision: Decision
        reason = "; ".join(f"{each.evaluator_name}: {each.status.value}" for each in results)
        if below:
            decision, reason = "rejected", "; ".join(map(_below, below))
        elif Status.TOO_LONG in statuses:
            decision = "unscored"
        elif any(status.is_failure for status in statuses):
            decision = "failed"
        elif all(each.passed and each.status is not Status.PARTIAL for each in results):
            decision, reason = "passed", "every score reaches its threshold"
        elif any(status.is_decline for status in statuses) or (
            not any(each.claims for each in results) and asserts_nothing(evaluation.case.response)
        ):
            decision = "no_claims"
        else:
            decision = "unscored"
        return self._result(decision, reason, evaluation=evaluation, below=below)


def _is_below(result: EvaluationResult) -> bool:
    # Some policies give a failure a score, and an undefined score counts as not passed:
    # neither says anything about the answer.
    is_scored = result.score is not None and not math.isnan(result.score)
    return is_scored and result.passed is False and not result.status.is_failure


def _below(result: EvaluationResult) -> str:
    side = "below" if result.higher_is_better else "above"
    said = f"{result.evaluator_name} {result.score:.3g} is {side} {result.threshold:g}"
    failed = sum(claim.verdict not in {"SUPPORTED", None} for claim in result.claims)
    if not result.claims:
        return said
    return f"{said} ({failed} of {len(result.claims)} claims not supported)"
