"""What stands between a run and the judge: the breaker, the budget and the rate limits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, Self

from ragaliq.core.checks import require_kind
from ragaliq.core.results import EvaluationResult, JudgeUsage
from ragaliq.core.spending import RunPermits, spending
from ragaliq.errors import (
    BudgetExceeded,
    JudgeBillingError,
    JudgeProcessError,
    RateLimitedError,
)
from ragaliq.scoring.limits.breaker import BreakerState, Circuit, CircuitBreaker
from ragaliq.scoring.limits.budget import Budget, BudgetLedger, BudgetLine
from ragaliq.scoring.limits.rate_limits import RateLimiter, RateLimits
from ragaliq.scoring.limits.shared import StorageState
from ragaliq.telemetry import names
from ragaliq.telemetry.metrics import MetricsRecorder

_CHARACTERS_PER_TOKEN = 4

# Our own limit; and the death of the process it works in, which is started again at once and gives
# several runs back together.
_NOT_ITS_FAULT = (RateLimitedError.__name__, JudgeProcessError.__name__)
_NO_CREDIT = JudgeBillingError.__name__


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What stands between cases and the judge.

    Attributes:
        budget: What judging may cost in an hour and a day; None for no limit.
        judge_limits: How often the judge may be asked in a minute; None for no limit.
        breaker: When to leave a failing judge alone; None never to.

    Raises:
        ConfigurationError: One is of another kind.
    """

    budget: Budget | None = None
    judge_limits: RateLimits | None = None
    breaker: CircuitBreaker | None = None

    def __post_init__(self) -> None:
        require_kind(Budget, budget=self.budget)
        require_kind(RateLimits, judge_limits=self.judge_limits)
        require_kind(CircuitBreaker, breaker=self.breaker)


class _Sized(Protocol):
    @property
    def size(self) -> int: ...


class Protection:
    """The limits at work; used on the worker's loop.

    Args:
        metrics: Records what is left of the budget.
        circuit: The breaker; None for none.
        ledger: The budget; None for none.
        rates: The rate limiter; None for none.
    """

    def __init__(
        self,
        metrics: MetricsRecorder,
        *,
        circuit: Circuit | None,
        ledger: BudgetLedger | None,
        rates: RateLimiter | None,
    ) -> None:
        self._metrics, self._circuit, self._ledger, self._rates = metrics, circuit, ledger, rates

    @classmethod
    def of(cls, limits: Limits, metrics: MetricsRecorder) -> Self:
        """The limits of one scorer, which shares them with nobody in this process."""
        failed = storage_failed(metrics)
        return cls(
            metrics,
            circuit=Circuit(limits.breaker) if limits.breaker else None,
            ledger=BudgetLedger(limits.budget, on_error=failed) if limits.budget else None,
            rates=RateLimiter(limits.judge_limits, on_error=failed)
            if limits.judge_limits
            else None,
        )

    @property
    def breaker(self) -> BreakerState:
        """The breaker's state; `closed` where there is none."""
        return self._circuit.state if self._circuit else "closed"

    def budget(self) -> dict[str, BudgetLine]:
        """Where each limit of the budget stands."""
        return self._ledger.lines() if self._ledger else {}

    @property
    def storage(self) -> StorageState:
        """Where budget and rate limits are counted, and whether that can be reached."""
        states = {limit.storage for limit in (self._ledger, self._rates) if limit}
        return next((state for state in ("unavailable", "shared") if state in states), "local")

    async def aclose(self) -> None:
        """Deliver what the storage does not know, and close the connections."""
        for limit in (self._ledger, self._rates):
            if limit:
                await limit.aclose()

    @asynccontextmanager
    async def judging(self, case: _Sized) -> AsyncIterator[dict[str, EvaluationResult]]:
        """Have a case judged inside the block, which fills in the results.

        However the block ends, what the case cost is charged and what it says about the judge is
        noted.

        Args:
            case: Its size, in bytes, says how many tokens it may take.

        Raises:
            BudgetExceeded: The budget leaves no room for it.
            CircuitOpenError: The breaker is open.
        """
        # First of all: a run that would not be sent anyway is not held against the budget.
        is_probe = self._circuit.enter() if self._circuit else False
        results: dict[str, EvaluationResult] = {}
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
                    yield results
                finally:
                    # What an evaluator of the user's own, or another process, spent is known from
                    # the results only; what was spent on a run that came to no end, from its calls.
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
    """Counts failures of a storage that is shared, by the class of the error."""
    return lambda kind: metrics.record(names.METRIC_LIMITS_ERRORS, 1, {names.ERROR_TYPE: kind})


def _judge_failed(results: Mapping[str, EvaluationResult]) -> bool | None:
    """Whether the judge failed a run; None where the run says nothing about it."""
    answers = [
        result.status.is_unanswered
        for result in results.values()
        if result.status.is_measured
        or (result.status.is_failure and result.error_type not in _NOT_ITS_FAULT)
    ]
    return all(answers) if answers else None
