"""Limits between a run and the judge: the breaker, the budget and the rate limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ragaliq.core.results import Evaluation, EvaluationResult, JudgeUsage
from ragaliq.core.spending import RunPermits, spending
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import (
    BudgetExceeded,
    ConfigurationError,
    JudgeBillingError,
    JudgeInputError,
    JudgeProcessError,
    RateLimitedError,
    RedactionError,
)
from ragaliq.scoring.limits.breaker import BreakerState, Circuit, CircuitBreaker
from ragaliq.scoring.limits.budget import Budget, BudgetLedger, BudgetLine
from ragaliq.scoring.limits.rate_limits import RateLimiter, RateLimits
from ragaliq.scoring.limits.shared import StorageState
from ragaliq.telemetry import names
from ragaliq.telemetry.metrics import MetricsRecorder

_CHARACTERS_PER_TOKEN = 4

# Our own limit; a redactor that raised; and the death of the child process, which is restarted at
# once and fails several runs together.
_NOT_ITS_FAULT = tuple(
    error.__name__
    for error in (JudgeInputError, RateLimitedError, RedactionError, JudgeProcessError)
)
_NO_CREDIT = JudgeBillingError.__name__


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits between cases and the judge.

    Attributes:
        budget: Limits on cost in an hour and a day; None for no limit.
        judge_limits: Limits on judge calls in a minute; None for no limit.
        breaker: Circuit breaker for a failing judge; None for none.

    Raises:
        ConfigurationError: An argument has another type.
    """

    budget: Budget | None = None
    judge_limits: RateLimits | None = None
    breaker: CircuitBreaker | None = None

    # Without this a breaker's number would be noticed when the judge first fails.
    def __post_init__(self) -> None:
        kinds = {"budget": Budget, "judge_limits": RateLimits, "breaker": CircuitBreaker}
        for name, kind in kinds.items():
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise ConfigurationError(f"{name} must be a {kind.__name__}, got {value!r}")


class Protection:
    """Limits with their current state; used on the worker's loop.

    Args:
        limits: The limits.
        metrics: Records the rest of the budget.
        share: Called with a setting and a function that makes its state; by default no other scorer
            shares the state.
    """

    def __init__(
        self,
        limits: Limits,
        metrics: MetricsRecorder,
        *,
        share: Callable[[object, Callable[[], Any]], Any] = lambda _, make: make(),
    ) -> None:
        self._metrics, failed = metrics, storage_failed(metrics)
        breaker, budget, rates = limits.breaker, limits.budget, limits.judge_limits
        self._circuit: Circuit | None = None
        self._ledger: BudgetLedger | None = None
        self._rates: RateLimiter | None = None
        if breaker is not None:
            self._circuit = share(breaker, partial(Circuit, breaker))
        if budget is not None:
            self._ledger = share(budget, partial(BudgetLedger, budget, on_error=failed))
        if rates is not None:
            self._rates = share(rates, partial(RateLimiter, rates, on_error=failed))

    @property
    def breaker(self) -> BreakerState:
        """State of the breaker; `closed` without one."""
        return self._circuit.state if self._circuit else "closed"

    @property
    def may_refuse(self) -> bool:
        """True if a case may have to wait, or not be evaluated at all."""
        is_limited = self._ledger is not None or self._rates is not None
        return is_limited or self.breaker != "closed"

    def budget(self) -> dict[str, BudgetLine]:
        """State of each limit of the budget."""
        return self._ledger.lines() if self._ledger else {}

    @property
    def storage(self) -> StorageState:
        """Storage of budget and rate limits, and whether it is reachable."""
        states = {limit.storage for limit in (self._ledger, self._rates) if limit}
        return next((state for state in ("unavailable", "shared") if state in states), "local")

    async def aclose(self) -> None:
        """Deliver unsent changes to the storage, and close the connections."""
        for limit in (self._ledger, self._rates):
            if limit:
                await limit.aclose()

    async def judge(
        self, case: RAGTestCase, evaluate: Callable[[], Awaitable[Evaluation]]
    ) -> Evaluation:
        """Evaluate a case within the limits.

        However the evaluation ends, the cost is charged and the breaker updated.

        Args:
            case: The case; its size in bytes gives the expected tokens.
            evaluate: Evaluates it.

        Raises:
            BudgetExceeded: The budget leaves no room for it.
            CircuitOpenError: The breaker is open.
        """
        # First, so that a run that is not sent anyway reserves no budget.
        is_probe = self._circuit.enter() if self._circuit else False
        results: Mapping[str, EvaluationResult] = {}
        reserved, usage = None, JudgeUsage()
        try:
            if self._ledger:
                reserved = await self._ledger.reserve()
                if reserved is None:
                    raise BudgetExceeded("the case was not evaluated: the budget is used up")
            permits = (
                RunPermits(self._rates, case.size // _CHARACTERS_PER_TOKEN) if self._rates else None
            )
            with spending(permits) as spent:
                try:
                    evaluation = await evaluate()
                    results = evaluation.results
                    return evaluation
                finally:
                    # The cost of a user's metric, or of another process, is known from the results
                    # only; that of an aborted run from its calls.
                    usage = spent.usage
                    if results:
                        usage = sum((each.usage for each in results.values()), JudgeUsage())
        finally:
            if self._circuit:
                self._circuit.leave(
                    failed=_judge_failed(results),
                    is_probe=is_probe,
                    is_lasting=any(each.error_type == _NO_CREDIT for each in results.values()),
                )
            if self._ledger:
                if reserved is not None:
                    self._ledger.settle(reserved, usage)
                self._report_budget()

    def _report_budget(self) -> None:
        for limit, line in self.budget().items():
            share = line.left / line.limit if line.limit else 0.0
            self._metrics.record(names.METRIC_BUDGET_LEFT, share, {names.BUDGET_LIMIT: limit})


def storage_failed(metrics: MetricsRecorder) -> Callable[[str], None]:
    """Make the `on_error` hook of limits: it counts failures of the storage by their class."""
    return lambda kind: metrics.record(names.METRIC_LIMITS_ERRORS, 1, {names.ERROR_TYPE: kind})


def _judge_failed(results: Mapping[str, EvaluationResult]) -> bool | None:
    """True if the judge failed the run; None if the run says nothing about the judge."""
    answers = [
        result.status.is_unanswered
        for result in results.values()
        if result.status.is_measured
        or (result.status.is_failure and result.error_type not in _NOT_ITS_FAULT)
    ]
    return all(answers) if answers else None
