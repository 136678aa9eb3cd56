"""What stands between a run and the judge: the breaker, the budget and the rate limits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from ragaliq.core.results import EvaluationResult, JudgeUsage, Status
from ragaliq.core.spending import PACE, spending
from ragaliq.errors import (
    BudgetExceeded,
    CircuitOpenError,
    JudgeProcessError,
    RateLimitedError,
)
from ragaliq.scoring.limits.breaker import BreakerState, Circuit, CircuitBreaker
from ragaliq.scoring.limits.budget import Budget, BudgetLedger, BudgetLine, SharedBudget
from ragaliq.scoring.limits.rate_limits import RateLimits, RunPace, Turns
from ragaliq.scoring.limits.shared import IN_MEMORY, StorageState

NOT_ASKED = "the judge was not asked: it failed too often in a row"

# Our own limit; and the death of the process it works in, which is started again at once and gives
# several runs back together.
_NOT_ITS_FAULT = (RateLimitedError.__name__, JudgeProcessError.__name__)
_SAYS_NOTHING = (
    Status.NO_CONTEXT,
    Status.NO_REFERENCE,
    Status.NO_QUESTION,
    Status.ANSWER_REFUSED,
    Status.EMPTY_ANSWER,
    Status.NO_CLAIMS,
)


class _Run(Protocol):
    @property
    def size(self) -> int: ...


@dataclass
class Judging:
    """One run at the judge's.

    Attributes:
        results: What came out; set by the caller that has the run judged.
    """

    results: Mapping[str, EvaluationResult] | None = None


class Protection:
    """Breaker, budget and rate limits of one process; used on the worker's loop.

    Args:
        budget: What judging may cost; None for no limit.
        judge_limits: How often the judge may be asked; None for no limit.
        breaker: When to leave a failing judge alone; None never to.
        on_storage_error: Called with the class of each failure of a storage that processes share.
        on_budget: Called with the share of each limit that is left, after each run.
    """

    def __init__(
        self,
        *,
        budget: Budget | None = None,
        judge_limits: RateLimits | None = None,
        breaker: CircuitBreaker | None = None,
        on_storage_error: Callable[[str], None] = lambda _: None,
        on_budget: Callable[[Mapping[str, float]], None] = lambda _: None,
    ) -> None:
        self._on_budget = on_budget
        self._circuit = Circuit(breaker) if breaker else None
        self._ledger: BudgetLedger | SharedBudget | None = None
        if budget is not None and budget.storage == IN_MEMORY:
            self._ledger = BudgetLedger(budget)
        elif budget is not None:
            self._ledger = SharedBudget(budget, on_error=on_storage_error)
        self._turns = Turns(judge_limits, on_error=on_storage_error) if judge_limits else None

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
        states = {limit.storage for limit in (self._ledger, self._turns) if limit}
        return next((state for state in ("unavailable", "shared") if state in states), "local")

    async def aclose(self) -> None:
        """Deliver what the storage does not know, and close the connections."""
        for limit in (self._ledger, self._turns):
            if limit:
                await limit.aclose()

    @asynccontextmanager
    async def judging(self, run: _Run) -> AsyncIterator[Judging]:
        """Have a run judged inside the block.

        However the block ends, what the run cost is charged and what it says about the judge is
        noted.

        Args:
            run: Its size, in bytes, says how many tokens it may take.

        Raises:
            BudgetExceeded: The budget leaves no room for it.
            CircuitOpenError: The breaker is open.
        """
        # A run that would not be sent anyway is not held against the budget, and one that is over
        # budget does not use up the breaker's probe.
        if self._circuit and self._circuit.refuses:
            raise CircuitOpenError(NOT_ASKED)
        reserved = await self._ledger.reserve() if self._ledger else None
        if self._ledger and reserved is None:
            self._report_budget()
            raise BudgetExceeded("the case was not evaluated: the budget is used up")
        judging, usage, is_probe = Judging(), JudgeUsage(), False
        pace = PACE.set(RunPace(self._turns, run.size) if self._turns else None)
        try:
            if self._circuit and self._circuit.refuses:  # by now: others continued meanwhile
                raise CircuitOpenError(NOT_ASKED)
            is_probe = self._circuit.enter() if self._circuit else False
            with spending() as spent:
                try:
                    yield judging
                finally:
                    # What an evaluator of the user's own, or another process, spent is known from
                    # the results only; what was spent on a run that came to no end, from its calls.
                    usage = spent.usage
                    if judging.results is not None:
                        costs = (result.usage for result in judging.results.values())
                        usage = sum(costs, JudgeUsage())
                    if self._circuit:
                        failed = _judge_failed(judging.results or {})
                        self._circuit.leave(failed=failed, is_probe=is_probe)
        finally:
            PACE.reset(pace)
            if self._ledger and reserved is not None:
                self._ledger.settle(reserved, usage)
                self._report_budget()

    def _report_budget(self) -> None:
        lines = self.budget().items()
        self._on_budget(
            {name: line.left / line.limit if line.limit else 0.0 for name, line in lines}
        )


def _judge_failed(results: Mapping[str, EvaluationResult]) -> bool | None:
    """Whether the judge failed a run; None where the run says nothing about it."""
    answers = [
        result.status.is_unanswered
        for result in results.values()
        if result.status not in _SAYS_NOTHING and result.error_type not in _NOT_ITS_FAULT
    ]
    return all(answers) if answers else None
