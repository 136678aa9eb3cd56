"""A budget at work: in this process, or in all processes together."""

from __future__ import annotations

import time
from collections.abc import Callable
from uuid import uuid4

from ragaliq.core.results import JudgeUsage
from ragaliq.scoring.limits.budget import Budget, BudgetLine
from ragaliq.scoring.limits.budget_ledger import BudgetLedger, Reservation, shown, whole
from ragaliq.scoring.limits.fleet import FleetAccount, StorageState
from ragaliq.scoring.limits.fleet.options import IN_MEMORY

__all__ = ["SharedBudget", "budget_at_work"]

_LEASE = 600_000
"""Milliseconds after which what was set aside for a run of a process that died is free again. What
a run that took longer cost is counted all the same."""


def budget_at_work(
    budget: Budget, *, on_error: Callable[[str], None]
) -> BudgetLedger | SharedBudget:
    """The budget of this process, or this process's part in that of the fleet.

    Args:
        budget: The limits.
        on_error: Told the class of each failure of a storage that processes share.
    """
    if budget.storage == IN_MEMORY:
        return BudgetLedger(budget)
    return SharedBudget(budget, on_error=on_error)


class SharedBudget:
    """This process's part in the budget of a fleet; used on the worker's loop, read from anywhere.

    What this process spends is also counted here, for when the storage is away.

    Args:
        budget: The limits.
        hour: Seconds; a day is 24 of them.
        pause: Seconds between attempts to find a storage that is away.
        on_error: Told the class of each failure of the storage.
    """

    def __init__(
        self,
        budget: Budget,
        *,
        hour: float = 3600.0,
        pause: float = 1.0,
        on_error: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._limits = {name: whole(name, limit) for name, limit in budget.limits().items()}
        self._local = BudgetLedger(budget, share=budget.local_share, hour=hour)
        self._account = FleetAccount(
            budget.storage,
            key=f"budget:{budget.name}",
            windows={
                name: (limit, self._local.windows[name]) for name, limit in self._limits.items()
            },
            local_share=budget.local_share,
            own_reserved=lambda name: self._local.windows[name].reserved,
            lock=self._local.lock,
            on_error=on_error,
            pause=pause,
        )

    @property
    def storage(self) -> StorageState:
        """Whether the fleet's storage can be reached."""
        return "away" if self._account.is_away else "shared"

    async def reserve(self) -> Reservation | None:
        """Set aside what one run is expected to cost; None when a limit might be exceeded."""
        reservation, granted, was_away = uuid4().hex, None, self._account.is_away
        expected = [
            {"expected": window.expected if window.has_known else -1}
            for window in self._local.windows.values()
        ]
        try:
            granted = await self._account.ask("reserve", expected, id=reservation, lease=_LEASE)
        finally:
            if granted is None and not was_away:
                # It may have been set aside all the same, and nobody heard of it.
                self._account.outbox.released(reservation)
        if granted is None:
            return self._local.reserve()
        for name, figures in zip(self._limits, granted.windows, strict=True):
            self._local.expect(name, figures.expected)
        if not granted.answer:
            return None
        return Reservation(amounts=self._local.set_aside().amounts, id=reservation)

    def settle(self, reserved: Reservation, usage: JudgeUsage) -> None:
        """Put what a run really cost in the place of what was set aside."""
        now, outbox = time.monotonic(), self._account.outbox
        costs = self._local.settle(reserved, usage)
        for number, (name, cost) in enumerate(costs.items()):
            amount = self._limits[name] if cost.amount is None else cost.amount
            outbox.spent(number, amount, at=now)
            if cost.is_telling:
                outbox.learnt(number, amount)
        if reserved.id:
            outbox.released(reserved.id)
        self._account.deliver_soon()

    def lines(self) -> dict[str, BudgetLine]:
        """Where each limit stands."""
        latest = self._account.latest
        if self._account.is_away or latest is None:
            return self._local.lines()
        return {
            name: BudgetLine(
                limit=shown(name, limit),
                spent=shown(name, latest.windows[number].spent + self._account.untold(number)),
                reserved=shown(name, latest.windows[number].reserved),
                scope="fleet",
            )
            for number, (name, limit) in enumerate(self._limits.items())
        }

    async def aclose(self) -> None:
        """Tell the storage what is left to tell, and close the connections."""
        await self._account.aclose()
