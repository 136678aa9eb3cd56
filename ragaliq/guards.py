"""The decision whether an answer may go out, and what happens if not. Knows no framework."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Unpack, get_args

from ragaliq.capture import RunLog
from ragaliq.core.checks import require_choice, require_positive, takes_only
from ragaliq.core.results import ClaimDetail, Evaluation, EvaluationResult, Status
from ragaliq.core.suppression import is_suppressed
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import (
    BudgetExceeded,
    ConfigurationError,
    EvaluationTimeout,
    GuardRejected,
    NotEvaluated,
)
from ragaliq.evaluators.registry import EvaluatorSpec
from ragaliq.live.monitor import Monitor, RunDetails

__all__ = ["Action", "Decision", "Guard", "GuardResult", "Step"]

Action = Literal["fallback", "annotate", "retry", "raise"]
Step = Literal["pass", "fallback", "annotate", "retry", "raise"]
Decision = Literal["passed", "rejected", "unscored", "failed", "timeout", "off"]
"""`unscored`: there was nothing to score, such as an answer without claims. `failed`: the judge or
the monitor failed, which says nothing about the answer. `off`: the monitor is disabled, or the call
is inside `suppress()`."""
_Otherwise = Literal["pass", "fallback", "raise"]

_TOLERANCE = 1e-9
_FALLBACK = "I cannot answer this reliably from the sources I have."
_NOTE = "Note: parts of this answer could not be confirmed by the sources."


@dataclass(frozen=True, kw_only=True)
class GuardResult:
    """What a guard found out about one answer; holds the application's text.

    Attributes:
        decision: See `Decision`.
        reason: One sentence without any of the application's text.
        live: The evaluation, if there was one.
        below: The metrics that did not reach their threshold.
    """

    decision: Decision
    reason: str
    live: Evaluation | None = None
    below: tuple[EvaluationResult, ...] = ()

    @property
    def scores(self) -> Mapping[str, float]:
        """The measured scores by metric."""
        results = {} if self.live is None else self.live.results
        return {name: r.score for name, r in results.items() if r.score is not None}

    @property
    def failed_claims(self) -> tuple[ClaimDetail, ...]:
        """The claims that the context contradicts or does not cover, each once."""
        found = {
            claim.claim: claim
            for result in self.below
            for claim in result.claims
            if claim.verdict in {"CONTRADICTED", "NOT_ENOUGH_INFO"}
        }
        return tuple(found.values())

    @property
    def summary(self) -> dict[str, Any]:
        """Plain data without any text, to put next to an answer."""
        return {
            "decision": self.decision,
            "reason": self.reason,
            "scores": dict(self.scores),
            "below": [result.evaluator_name for result in self.below],
            "failed_claims": len(self.failed_claims),
        }

    @property
    def feedback(self) -> str:
        """What to tell the model that gave the answer, so that it can do better.

        It names the claims that failed, and is for the application's own model only.
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

    Args:
        monitor: Evaluates the answers; by default built from `monitor_options`, with faithfulness
            as the only metric.
        metrics: Metrics of the guard's own monitor.
        thresholds: Score from which an answer passes, by metric; only these metrics count. By
            default every metric counts, with its own threshold.
        action: What happens to a failing answer: `fallback` replaces it, `annotate` adds a note,
            `retry` makes it again with feedback, `raise` raises `GuardRejected`.
        then: After `retry`, what happens when no attempt passes.
        max_retries: Most retries.
        fallback: The replacement: a text, or a function of the `GuardResult`.
        note: What `annotate` adds to a text answer; also a function.
        feedback: What the model reads before a retry, made from the `GuardResult`; by default
            `GuardResult.feedback`, which names the claims that failed.
        timeout: Seconds for the check of each attempt.
        on_timeout: What happens to an answer whose check takes too long; it is still scored and
            counted in the background.
        on_failure: What happens when the judge or the monitor fails, or a budget is spent.
        on_no_context: `reject` treats an answer without retrieved context as a failing one.
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
        thresholds: Mapping[str, float] | None = None,
        action: Action = "fallback",
        then: Literal["fallback", "annotate", "raise"] = "fallback",
        max_retries: int = 1,
        fallback: str | Callable[[GuardResult], Any] = _FALLBACK,
        note: str | Callable[[GuardResult], str] = _NOTE,
        feedback: Callable[[GuardResult], str] | None = None,
        timeout: float = 10.0,
        on_timeout: _Otherwise = "pass",
        on_failure: _Otherwise = "pass",
        on_no_context: Literal["pass", "reject"] = "pass",
        **monitor_options: Any,
    ) -> None:
        for name, chosen, choices in (
            ("action", action, get_args(Action)),
            ("then", then, ("fallback", "annotate", "raise")),
            ("on_timeout", on_timeout, get_args(_Otherwise)),
            ("on_failure", on_failure, get_args(_Otherwise)),
            ("on_no_context", on_no_context, ("pass", "reject")),
        ):
            require_choice(chosen, *choices, name=f"Guard: {name}")
        require_positive("Guard", timeout=timeout)
        if not isinstance(max_retries, int) or max_retries < 0:
            raise ConfigurationError(
                f"Guard: max_retries must be a whole number, 0 or more, got {max_retries!r}"
            )
        for name, made in {"fallback": fallback, "note": note}.items():
            if not isinstance(made, str) and not callable(made):
                raise ConfigurationError(
                    f"Guard: {name} must be a text or a function of the GuardResult, got {made!r}"
                )
        if feedback is not None and not callable(feedback):
            raise ConfigurationError(
                f"Guard: feedback must be a function of the GuardResult, got {feedback!r}"
            )
        if monitor is not None and (monitor_options or metrics is not None):
            raise ConfigurationError("Guard: give a monitor or what to build one from, not both")
        if monitor is None:
            monitor = Monitor(metrics=metrics or ("faithfulness",), **monitor_options)
        if monitor.is_enabled and monitor.judge is None:
            raise ConfigurationError(
                "Guard: the monitor's runs are judged by workers elsewhere, which is no use to an "
                "answer that waits; give the guard a monitor with executor='thread' or 'process'"
            )
        self.monitor = monitor
        self.action: Action = action
        self.max_retries = max_retries
        self.timeout = timeout
        self._thresholds = _checked(thresholds, monitor)
        self._then: Step = then
        self._fallback, self._note, self._feedback = fallback, note, feedback
        self._otherwise: dict[str, Step] = {
            "rejected": action,
            "timeout": on_timeout,
            "failed": on_failure,
        }
        self._no_context_passes = on_no_context == "pass"

    def __repr__(self) -> str:
        return f"Guard({self.monitor!r}, action={self.action!r})"

    # Guards are handed around inside chains, which frameworks copy, and hold a monitor.
    def __deepcopy__(self, memo: dict[int, object]) -> Guard:
        return self

    @property
    def is_off(self) -> bool:
        """Whether answers go out unjudged: the monitor is disabled, or inside `suppress()`."""
        return is_suppressed() or not self.monitor.is_enabled

    def check(self, case: RAGTestCase | RunLog, **run: Unpack[RunDetails]) -> GuardResult:
        """Have an answer judged; blocks at most `timeout` seconds and raises no judge's error.

        Args:
            case: Question, context and answer.
            **run: Where the answer comes from; see `Monitor.evaluate`.
        """
        if self.is_off:
            return _OFF
        try:
            return self._decide(self.monitor.evaluate(case, timeout=self.timeout, **run))
        except (NotEvaluated, BudgetExceeded) as error:
            return _without_result(error)

    async def acheck(self, case: RAGTestCase | RunLog, **run: Unpack[RunDetails]) -> GuardResult:
        """`check` without blocking the event loop."""
        if self.is_off:
            return _OFF
        try:
            return self._decide(await self.monitor.aevaluate(case, timeout=self.timeout, **run))
        except (NotEvaluated, BudgetExceeded) as error:
            return _without_result(error)

    def step(self, result: GuardResult, *, attempt: int = 0) -> Step:
        """What happens now to the answer.

        Args:
            result: What the check found.
            attempt: How often the answer was made again already.

        Raises:
            GuardRejected: The answer must not go out, and this guard says so by raising.
        """
        step: Step = self._otherwise.get(result.decision, "pass")
        if step == "retry" and attempt >= self.max_retries:
            step = self._then
        if step == "raise":
            raise GuardRejected(result)
        return step

    def fallback(self, result: GuardResult) -> Any:
        """What replaces an answer that must not go out."""
        return self._fallback(result) if callable(self._fallback) else self._fallback

    def note(self, result: GuardResult) -> str:
        """What is added to an answer that goes out although it was rejected."""
        return self._note(result) if callable(self._note) else self._note

    def feedback(self, result: GuardResult) -> str:
        """What the application's own model gets it before it answers again."""
        return result.feedback if self._feedback is None else self._feedback(result)

    def _decide(self, live: Evaluation) -> GuardResult:
        """Decide on an evaluation.

        A measured failure counts whatever became of the other metrics; a judge's failure is
        neither good nor bad.
        """
        results = list(live.results.values())
        if (own := self._thresholds) is not None:
            results = [
                _held_to(own[each.evaluator_name], each)
                for each in results
                if each.evaluator_name in own
            ]
        below = tuple(result for result in results if _is_below(result))
        statuses = {result.status for result in results}
        decision: Decision = "passed"
        reason = "; ".join(f"{each.evaluator_name}: {each.status.value}" for each in results)
        if below:
            decision, reason = "rejected", "; ".join(map(_below, below))
        elif Status.NO_CONTEXT in statuses and not self._no_context_passes:
            decision, reason = "rejected", "nothing was retrieved"
        elif any(status.is_failure for status in statuses):
            decision = "failed"
        elif not any(result.passed for result in results):
            decision = "unscored"
        else:
            reason = "every score reaches its threshold"
        return GuardResult(decision=decision, reason=reason, live=live, below=below)


_OFF = GuardResult(decision="off", reason="nothing is evaluated here")


def _without_result(error: NotEvaluated | BudgetExceeded) -> GuardResult:
    is_late = isinstance(error, EvaluationTimeout)
    return GuardResult(decision="timeout" if is_late else "failed", reason=str(error))


def _held_to(threshold: float, result: EvaluationResult) -> EvaluationResult:
    """The result by the guard's own threshold."""
    if result.score is None:
        return result
    margin = result.score - threshold if result.higher_is_better else threshold - result.score
    return result.model_copy(update={"threshold": threshold, "passed": margin >= -_TOLERANCE})


def _is_below(result: EvaluationResult) -> bool:
    # Some policies give a failure a score, and "undefined" counts as not passed: neither says
    # anything about the answer.
    is_scored = result.score is not None and not math.isnan(result.score)
    return is_scored and result.passed is False and not result.status.is_failure


def _below(result: EvaluationResult) -> str:
    side = "below" if result.higher_is_better else "above"
    said = f"{result.evaluator_name} {result.score:.3g} is {side} {result.threshold:g}"
    failed = sum(claim.verdict not in {"SUPPORTED", None} for claim in result.claims)
    if not result.claims:
        return said
    return f"{said} ({failed} of {len(result.claims)} claims not supported)"


def _checked(thresholds: Mapping[str, float] | None, monitor: Monitor) -> dict[str, float] | None:
    if thresholds is None:
        return None
    measured = {evaluator.name for evaluator in monitor.metrics}
    for name, threshold in thresholds.items():
        if name not in measured:
            raise ConfigurationError(
                f"Guard: threshold for {name!r}, but the monitor measures {sorted(measured)}"
            )
        if not 0.0 <= threshold <= 1.0:
            raise ConfigurationError(
                f"Guard: threshold for {name} must be within [0, 1], got {threshold}"
            )
    if not thresholds:
        raise ConfigurationError("Guard: thresholds names no metric; leave it out to use them all")
    return dict(thresholds)
