"""What judging may cost in an hour and in a day, in this process or in all processes together."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from ragaliq.core.checks import require_limits
from ragaliq.core.results import JudgeUsage
from ragaliq.errors import ConfigurationError
from ragaliq.scoring.limits.shared import SharedWindows, StorageState, require_shared
from ragaliq.scoring.limits.windows import Window

__all__ = ["Budget", "BudgetLedger", "BudgetLine", "Reservation", "SharedBudget"]

logger = logging.getLogger(__name__)

_HOUR, _DAY = 3600.0, 86_400.0
_MICRO = 1_000_000
_FORGET = 20
"""The expected cost of a run sinks by this part of what a cheaper one costs less."""


_NOT_LIMITS = ("storage", "local_share", "name")


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits on what judging costs in any hour and any day, for a process or for a fleet.

    A run that might go over is not judged and counted `over_budget`. What a run costs is known only
    afterwards, so what the dearest of the recent runs cost is reserved for each run that is being
    judged. A limit can be exceeded by what the runs being judged at that moment, at most
    `concurrency` in each process, cost beyond what is reserved for them, and by no more.

    Attributes:
        usd_per_hour: US dollars at list price. Where a run's price is not known, the dearest of the
            recent runs stands for it; if no price was ever known, the limit counts as used up.
        usd_per_day: The same for a day.
        tokens_per_hour: Tokens read and written, cached ones included.
        tokens_per_day: The same for a day.
        storage: Where the counts are kept: `memory://` for this process alone, or the address of a
            Redis server that all processes reach, such as `redis://host:6379/0`; then the limits
            hold for all of them together. Needs `ragaliq[redis]`.
        local_share: Part of each limit that a process keeps to by itself while the storage is
            unavailable, above 0 and at most 1: one divided by the number of processes keeps the
            limits. The default does so up to ten of them.
        name: Whose counts these are: processes that give the same name and storage share them.

    Raises:
        ConfigurationError: A limit cannot be counted, none is given, or the storage cannot be used.
    """

    usd_per_hour: float | None = None
    usd_per_day: float | None = None
    tokens_per_hour: int | None = None
    tokens_per_day: int | None = None
    storage: str = field(default="memory://", repr=False)  # it may hold a password
    local_share: float = 0.1
    name: str = "default"

    def __post_init__(self) -> None:
        limits = self.limits()
        if not limits:
            raise ConfigurationError("Budget: give at least one limit, such as usd_per_day=5.0")
        require_limits("budget", limits)
        require_shared("Budget", storage=self.storage, local_share=self.local_share, name=self.name)

    def limits(self) -> dict[str, float]:
        """The limits that are given, by name."""
        return {
            name: limit
            for name, limit in vars(self).items()
            if limit is not None and name not in _NOT_LIMITS
        }


@dataclass(frozen=True, kw_only=True)
class BudgetLine:
    """One limit and where it stands.

    Attributes:
        limit: US dollars or tokens.
        spent: What the runs of the last hour or day cost.
        reserved: What is reserved for runs that are being judged; with `fleet`, in this process.
        scope: `fleet` where the figures are those of all processes, as of the last run here;
            `process` where they are this process's own, also while the shared storage is
            unavailable, with its share as the limit.
    """

    limit: float
    spent: float
    reserved: float
    scope: Literal["process", "fleet"] = "process"

    @property
    def left(self) -> float:
        """What may still be spent."""
        return max(0.0, self.limit - self.spent - self.reserved)


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """What is reserved for one run.

    Attributes:
        amounts: By limit, in whole units.
        slots: In which slots it is counted in the shared storage; empty where it is not.
    """

    amounts: dict[str, int] = field(default_factory=dict)
    slots: tuple[int, ...] = ()


class BudgetWindow(Window):
    """A window with what is reserved for runs that are being judged.

    Args:
        limit: Whole units.
        length: Seconds.
    """

    def __init__(self, limit: int, length: float) -> None:
        super().__init__(limit, length)
        self.reserved = self.expected = 0
        self.has_known = False

    @property
    def has_room(self) -> bool:
        """Whether a run fits in."""
        used = self.spent + self.reserved
        # One run always fits into an unused window: else a single dear one, expected again, would
        # keep all others out for ever.
        return used <= 0 or used + self.expected < self.limit

    def learn(self, amount: int) -> None:
        """Note what a run cost."""
        # Up at once and down slowly: reserving too little is what makes a limit leak.
        gap = self.expected - amount
        self.expected -= gap if gap < 0 else gap // _FORGET
        self.has_known = True


class BudgetLedger:
    """A budget at work. Written on the worker's loop, read from anywhere.

    Args:
        budget: The limits.
        share: Part of them that is this process's.
        clock: Seconds, monotonic.
        hour: Seconds; a day is 24 of them.
    """

    def __init__(
        self,
        budget: Budget,
        *,
        share: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        hour: float = _HOUR,
    ) -> None:
        self._clock = clock
        self.lock = threading.Lock()
        self._has_complained = False
        self.windows = {
            name: BudgetWindow(
                max(1, math.floor(_whole(name, limit) * share)),
                hour * (1 if name.endswith("hour") else _DAY / _HOUR),
            )
            for name, limit in budget.limits().items()
        }

    def reserve(self) -> Reservation | None:
        """Reserve what one run is expected to cost; None when a limit might be exceeded."""
        now = self._clock()
        with self.lock:
            for window in self.windows.values():
                window.forget(now)
            if not all(window.has_room for window in self.windows.values()):
                return None
        return self.hold()

    def hold(self, slots: tuple[int, ...] = ()) -> Reservation:
        """Reserve what one run is expected to cost, whatever is left."""
        with self.lock:
            amounts = {name: window.expected for name, window in self.windows.items()}
            for name, amount in amounts.items():
                self.windows[name].reserved += amount
        return Reservation(amounts=amounts, slots=slots)

    def settle(self, reserved: Reservation, usage: JudgeUsage) -> dict[str, int | None]:
        """Put what a run really cost in the place of what was reserved.

        Args:
            reserved: What `reserve` returned.
            usage: What the run cost.

        Returns:
            What it cost each limit, in whole units; None where that is not known and nothing can
            stand for it.
        """
        now = self._clock()
        with self.lock:
            for name, amount in reserved.amounts.items():
                self.windows[name].reserved -= amount
            return {
                name: self._charge(name, window, usage, now)
                for name, window in self.windows.items()
            }

    def lines(self) -> dict[str, BudgetLine]:
        """Where each limit stands."""
        now = self._clock()
        with self.lock:
            for window in self.windows.values():
                window.forget(now)
            return {
                name: BudgetLine(
                    limit=_shown(name, window.limit),
                    spent=_shown(name, window.spent),
                    reserved=_shown(name, window.reserved),
                )
                for name, window in self.windows.items()
            }

    def _charge(self, name: str, window: BudgetWindow, usage: JudgeUsage, now: float) -> int | None:
        known = usage.cost_usd if name.startswith("usd") else float(usage.total_tokens)
        if known is None:
            return self._charge_unknown(name, window, now)
        amount, is_telling = _whole(name, known), bool(usage.requests or known)
        if is_telling:
            window.learn(amount)
        if amount:
            window.spend(amount, now)
        return amount

    def _charge_unknown(self, name: str, window: BudgetWindow, now: float) -> int | None:
        # A limit that cannot be checked must not be passed over in silence.
        amount = window.expected if window.has_known else None
        window.spend(window.limit if amount is None else amount, now)
        if not self._has_complained:
            self._has_complained = True
            logger.warning(
                "the price of the judge's model is not known: %s",
                f"the budget's {name} counts as used up; limit tokens instead"
                if amount is None
                else "runs without a price are charged like the dearest recent one",
            )
        return amount


class SharedBudget:
    """This process's part in a budget of all processes; used on the worker's loop, read anywhere.

    Args:
        budget: The limits.
        hour: Seconds; a day is 24 of them.
        pause: Seconds between attempts to find a storage that is unavailable.
        on_error: Called with the class of each failure of the storage.
    """

    def __init__(
        self,
        budget: Budget,
        *,
        hour: float = _HOUR,
        pause: float = 1.0,
        on_error: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._limits = {name: _whole(name, limit) for name, limit in budget.limits().items()}
        self._local = BudgetLedger(budget, share=budget.local_share, hour=hour)
        self._shared = SharedWindows(
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
        """Whether the storage can be reached."""
        return "unavailable" if self._shared.is_unavailable else "shared"

    async def reserve(self) -> Reservation | None:
        """Reserve what one run is expected to cost; None when a limit might be exceeded."""
        expected = [window.expected for window in self._local.windows.values()]
        # A window that is used up has no room for a run that costs nothing, as far as known.
        taken = await self._shared.take([amount + 1 for amount in expected], expected)
        if taken is None:
            return self._local.reserve()
        if taken.wait:
            return None
        return self._local.hold(taken.slots)

    def settle(self, reserved: Reservation, usage: JudgeUsage) -> None:
        """Put what a run really cost in the place of what was reserved."""
        now = time.monotonic()
        costs = self._local.settle(reserved, usage)
        for number, (name, cost) in enumerate(costs.items()):
            amount = self._limits[name] if cost is None else cost
            held = reserved.amounts.get(name, 0) if reserved.slots else 0
            slot = reserved.slots[number] if reserved.slots and amount < held else 0
            self._shared.change(number, amount - held, at=now, slot=slot)
        self._shared.deliver_soon()

    def lines(self) -> dict[str, BudgetLine]:
        """Where each limit stands."""
        used = [self._shared.used(number) for number in range(len(self._limits))]
        lines = {}
        for (name, limit), total in zip(self._limits.items(), used, strict=True):
            if total is None:
                return self._local.lines()
            reserved = self._local.windows[name].reserved
            lines[name] = BudgetLine(
                limit=_shown(name, limit),
                spent=_shown(name, max(0, total - reserved)),
                reserved=_shown(name, reserved),
                scope="fleet",
            )
        return lines

    async def aclose(self) -> None:
        """Tell the storage what is left to tell, and close the connections."""
        await self._shared.aclose()


def _whole(name: str, amount: float) -> int:
    """US dollars in millionths, rounded up, or tokens."""
    # What stands beyond the ninth decimal is what rounding left.
    return math.ceil(round(amount * _MICRO, 3)) if name.startswith("usd") else math.ceil(amount)


def _shown(name: str, amount: int) -> float:
    """The same in US dollars, or tokens."""
    return amount / _MICRO if name.startswith("usd") else amount
