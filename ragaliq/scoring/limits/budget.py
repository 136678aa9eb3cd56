"""What judging may cost in an hour and in a day, in this process or in all processes together."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ragaliq.core.checks import require_limits
from ragaliq.core.results import JudgeUsage
from ragaliq.errors import ConfigurationError
from ragaliq.scoring.limits.shared import SharedWindows, StorageState, require_shared
from ragaliq.scoring.limits.windows import Window

logger = logging.getLogger(__name__)

_HOUR, _DAY = 3600.0, 86_400.0
_MICRO = 1_000_000
_FORGET = 20
"""The expected cost of a run sinks by this part of what a cheaper one costs less."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits on what the judge costs in any hour and any day, for a process or shared by several.

    A run that might exceed a limit is not evaluated and counted `over_budget`. A run's cost is
    known only afterwards, so the cost of the dearest recent run is reserved for each run in
    progress. A limit can be exceeded only by what the runs in progress, at most `concurrency` in
    each process, cost beyond what is reserved for them.

    Attributes:
        usd_per_hour: US dollars at list price. A run with an unknown price counts as the dearest of
            the recent runs; if no price was ever known, the limit counts as used up.
        usd_per_day: The same for a day.
        tokens_per_hour: Tokens read and written, including cached ones.
        tokens_per_day: The same for a day.
        storage: Where the counts are kept: `memory://` for this process alone, or a Redis server's
            address such as `redis://host:6379/0`, which shares the limits between processes. Needs
            `ragaliq[redis]`.
        local_share: Part of each limit that a process may use while the storage is unavailable,
            above 0 and at most 1; 0.1 keeps the limits for up to ten processes.
        name: Processes with the same name and storage share their counts.

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
        names = ("usd_per_hour", "usd_per_day", "tokens_per_hour", "tokens_per_day")
        given = ((name, getattr(self, name)) for name in names)
        return {name: limit for name, limit in given if limit is not None}


@dataclass(frozen=True, kw_only=True)
class BudgetLine:
    """One limit and where it stands.

    Attributes:
        limit: US dollars or tokens.
        spent: What the runs of the last hour or day cost.
        reserved: What is reserved for runs that are being judged; with `shared`, in this process.
        scope: `shared` where the figures are those of all processes, as of the last run here;
            `process` where they are this process's own, also while the shared storage is
            unavailable, with its share as the limit.
    """

    limit: float
    spent: float
    reserved: float
    scope: Literal["process", "shared"] = "process"

    @property
    def left(self) -> float:
        """What may still be spent."""
        return max(0.0, self.limit - self.spent - self.reserved)


class Reservation(NamedTuple):
    """What is reserved for one run, by limit, in whole units.

    Attributes:
        amounts: By limit.
        at: When it was counted in the shared storage, by the local clock; None where it is not.
    """

    amounts: dict[str, int]
    at: float | None = None


class BudgetWindow(Window):
    """A window with what is reserved for runs that are being judged.

    Attributes:
        reserved: For runs that are being judged.
        expected: What the next run may cost.
        has_known: Whether any cost was known so far.
    """

    reserved = expected = 0
    has_known = False

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
        self._lock = threading.Lock()
        self._has_complained = False
        self._windows = {
            name: BudgetWindow(
                max(1, math.floor(_whole(name, limit) * share)),
                hour * (1 if name.endswith("hour") else _DAY / _HOUR),
            )
            for name, limit in budget.limits().items()
        }

    @property
    def storage(self) -> StorageState:
        """Where it is counted, and whether that can be reached."""
        return "local"

    async def reserve(self) -> Reservation | None:
        """Reserve what one run is expected to cost; None when a limit might be exceeded."""
        now = self._clock()
        with self._lock:
            for window in self._windows.values():
                window.forget(now)
                used = window.spent + window.reserved
                # One run always fits into an unused window: else a single dear one, expected again,
                # would keep all others out for ever.
                if used > 0 and used + window.expected >= window.limit:
                    return None
        return self._hold()

    def _hold(self, at: float | None = None) -> Reservation:
        """Reserve what one run is expected to cost, whatever is left."""
        with self._lock:
            amounts = {name: window.expected for name, window in self._windows.items()}
            for name, amount in amounts.items():
                self._windows[name].reserved += amount
        return Reservation(amounts, at)

    def settle(self, reserved: Reservation, usage: JudgeUsage) -> None:
        """Put what a run really cost in the place of what was reserved."""
        self._charge(reserved, usage)

    def _charge(self, reserved: Reservation, usage: JudgeUsage) -> dict[str, int | None]:
        """What a run cost each limit, in whole units; None where nothing can stand for it."""
        now, charged = self._clock(), dict[str, int | None]()
        with self._lock:
            for name, window in self._windows.items():
                window.reserved -= reserved.amounts[name]
                known = usage.cost_usd if name.startswith("usd") else float(usage.total_tokens)
                if known is not None:
                    amount = charged[name] = _whole(name, known)
                    if usage.requests or known:
                        window.learn(amount)
                    window.spend(amount, now)
                    continue
                # A limit that cannot be checked must not be passed over in silence.
                charged[name] = window.expected if window.has_known else None
                window.spend(window.expected if window.has_known else window.limit, now)
                if not self._has_complained:
                    self._has_complained = True
                    logger.warning(
                        "the price of the judge's model is not known: %s",
                        "runs without a price are charged like the dearest recent one"
                        if window.has_known
                        else f"the budget's {name} counts as used up; limit tokens instead",
                    )
        return charged

    def lines(self) -> dict[str, BudgetLine]:
        """Where each limit stands."""
        now = self._clock()
        with self._lock:
            for window in self._windows.values():
                window.forget(now)
            return {
                name: BudgetLine(
                    limit=_shown(name, window.limit),
                    spent=_shown(name, window.spent),
                    reserved=_shown(name, window.reserved),
                )
                for name, window in self._windows.items()
            }

    async def aclose(self) -> None:
        """Deliver what the storage does not know, and close the connections."""


class SharedBudget(BudgetLedger):
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
        super().__init__(budget, share=budget.local_share, hour=hour)
        self._limits = {name: _whole(name, limit) for name, limit in budget.limits().items()}
        self._shared = SharedWindows(
            budget.storage,
            key=f"budget:{budget.name}",
            windows={name: (limit, self._windows[name]) for name, limit in self._limits.items()},
            local_share=budget.local_share,
            lock=self._lock,
            on_error=on_error,
            pause=pause,
        )

    @property
    def storage(self) -> StorageState:
        """Whether the storage can be reached."""
        return "unavailable" if self._shared.is_unavailable else "shared"

    async def reserve(self) -> Reservation | None:
        """Reserve what one run is expected to cost; None when a limit might be exceeded."""
        expected = [window.expected for window in self._windows.values()]
        # A window that is used up has no room for a run that costs nothing, as far as known.
        taken = await self._shared.take([amount + 1 for amount in expected], expected)
        if taken is None:
            return await super().reserve()
        return self._hold(taken.at) if taken.fits else None

    def settle(self, reserved: Reservation, usage: JudgeUsage) -> None:
        """Put what a run really cost in the place of what was reserved."""
        now = time.monotonic()
        for number, (name, cost) in enumerate(self._charge(reserved, usage).items()):
            amount = self._limits[name] if cost is None else cost
            if reserved.at is None:
                self._shared.change(number, amount, at=now)
            else:
                beyond = amount - reserved.amounts[name]
                self._shared.change(number, beyond, at=reserved.at if beyond < 0 else now)
        self._shared.deliver_soon()

    def lines(self) -> dict[str, BudgetLine]:
        """Where each limit stands."""
        lines = {}
        for number, (name, limit) in enumerate(self._limits.items()):
            total = self._shared.used(number)
            if total is None:
                return super().lines()
            reserved = self._windows[name].reserved
            lines[name] = BudgetLine(
                limit=_shown(name, limit),
                spent=_shown(name, max(0, total - reserved)),
                reserved=_shown(name, reserved),
                scope="shared",
            )
        return lines

    async def aclose(self) -> None:
        """Deliver what the storage does not know, and close the connections."""
        await self._shared.aclose()


def _whole(name: str, amount: float) -> int:
    """US dollars in millionths, rounded up, or tokens."""
    # What stands beyond the ninth decimal is what rounding left.
    return math.ceil(round(amount * _MICRO, 3)) if name.startswith("usd") else math.ceil(amount)


def _shown(name: str, amount: int) -> float:
    """The same in US dollars, or tokens."""
    return amount / _MICRO if name.startswith("usd") else amount
