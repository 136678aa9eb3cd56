"""The decision whether an answer may go out, and what happens if not. Knows no framework."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Unpack, get_args

from ragaliq.capture import RunLog
from ragaliq.core.checks import require_choice, require_positive, takes_only
from ragaliq.core.results import Evaluation, EvaluationResult
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
from ragaliq.guards.outcome import GuardResult
from ragaliq.live.monitor import Monitor, RunDetails

__all__ = ["Action", "Guard", "Step"]

Action = Literal["fallback", "annotate", "retry", "raise"]
Step = Literal["pass", "fallback", "annotate", "retry", "raise"]
Otherwise = Literal["pass", "fallback", "raise"]

_TOLERANCE = 1e-9
_FALLBACK = "I cannot answer this reliably from the sources I have."
_NOTE = "Note: parts of this answer could not be confirmed by the sources."


class Guard:
    """Decides whether answers may go out.

    Args:
        monitor: Evaluates the answers; by default built from `monitor_options`, with faithfulness
            as the only metric.
        evaluators: Metrics of the guard's own monitor.
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
        evaluators: Iterable[EvaluatorSpec] | None = None,
        thresholds: Mapping[str, float] | None = None,
        action: Action = "fallback",
        then: Literal["fallback", "annotate", "raise"] = "fallback",
        max_retries: int = 1,
        fallback: str | Callable[[GuardResult], Any] = _FALLBACK,
        note: str | Callable[[GuardResult], str] = _NOTE,
        feedback: Callable[[GuardResult], str] | None = None,
        timeout: float = 10.0,
        on_timeout: Otherwise = "pass",
        on_failure: Otherwise = "pass",
        on_no_context: Literal["pass", "reject"] = "pass",
        **monitor_options: Any,
    ) -> None:
        require_choice(action, *get_args(Action), name="Guard: action")
        require_choice(then, "fallback", "annotate", "raise", name="Guard: then")
        require_choice(on_timeout, *get_args(Otherwise), name="Guard: on_timeout")
        require_choice(on_failure, *get_args(Otherwise), name="Guard: on_failure")
        require_choice(on_no_context, "pass", "reject", name="Guard: on_no_context")
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
        if monitor is not None and (monitor_options or evaluators is not None):
            raise ConfigurationError("Guard: give a monitor or what to build one from, not both")
        if monitor is None:
            monitor = Monitor(evaluators=evaluators or ("faithfulness",), **monitor_options)
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
        self._pass_no_context = on_no_context == "pass"

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
        counting = list(live.results.values())
        if self._thresholds is not None:
            counting = [
                _held_to(self._thresholds[result.evaluator_name], result)
                for result in counting
                if result.evaluator_name in self._thresholds
            ]
        return GuardResult.of(live, counting, pass_no_context=self._pass_no_context)


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


def _checked(thresholds: Mapping[str, float] | None, monitor: Monitor) -> dict[str, float] | None:
    if thresholds is None:
        return None
    measured = {evaluator.name for evaluator in monitor.evaluators}
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
