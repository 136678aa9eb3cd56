"""A budget at work in one process."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ragaliq.core.results import JudgeUsage
from ragaliq.scoring.limits.budget import Budget, BudgetLine
from ragaliq.scoring.limits.windows import Window

__all__ = ["BudgetLedger", "Cost", "Reservation", "shown", "whole"]

logger = logging.getLogger(__name__)

_HOUR, _DAY = 3600.0, 86_400.0
_MICRO = 1_000_000
_FORGET = 20
"""The expected cost of a run sinks by this part of what a cheaper one costs less."""


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """What is set aside for one run.

    Attributes:
        amounts: By limit, in whole units.
        id: Its name in the fleet's storage; empty where it is set aside in this process only.
    """

    amounts: dict[str, int] = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a run cost one limit.

    Attributes:
        amount: Whole units; None where that is not known and nothing can stand for it.
        is_telling: Whether it says what runs cost.
    """

    amount: int | None
    is_telling: bool = False


class BudgetWindow(Window):
    """A window with what is set aside for runs that are being judged.

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
        # Up at once and down slowly: setting aside too little is what makes a limit leak.
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
                max(1, math.floor(whole(name, limit) * share)),
                hour * (1 if name.endswith("hour") else _DAY / _HOUR),
            )
            for name, limit in budget.limits().items()
        }

    def reserve(self) -> Reservation | None:
        """Set aside what one run is expected to cost; None when a limit might be exceeded."""
        now = self._clock()
        with self.lock:
            for window in self.windows.values():
                window.forget(now)
            if not all(window.has_room for window in self.windows.values()):
                return None
        return self.set_aside()

    def set_aside(self) -> Reservation:
        """Set aside what one run is expected to cost, whatever is left."""
        with self.lock:
            amounts = {name: window.expected for name, window in self.windows.items()}
            for name, amount in amounts.items():
                self.windows[name].reserved += amount
        return Reservation(amounts=amounts)

    def expect(self, name: str, amount: int) -> None:
        """Take over what the fleet expects of a run; less than nothing where it knows nothing."""
        if amount >= 0:
            window = self.windows[name]
            window.expected, window.has_known = amount, True

    def settle(self, reserved: Reservation, usage: JudgeUsage) -> dict[str, Cost]:
        """Put what a run really cost in the place of what was set aside.

        Args:
            reserved: What `reserve` returned.
            usage: What the run cost.

        Returns:
            What it cost each limit.
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
                    limit=shown(name, window.limit),
                    spent=shown(name, window.spent),
                    reserved=shown(name, window.reserved),
                )
                for name, window in self.windows.items()
            }

    def _charge(self, name: str, window: BudgetWindow, usage: JudgeUsage, now: float) -> Cost:
        known = usage.cost_usd if name.startswith("usd") else float(usage.total_tokens)
        if known is None:
            return self._charge_unknown(name, window, now)
        amount, is_telling = whole(name, known), bool(usage.requests or known)
        if is_telling:
            window.learn(amount)
        if amount:
            window.spend(amount, now)
        return Cost(amount=amount, is_telling=is_telling)

    def _charge_unknown(self, name: str, window: BudgetWindow, now: float) -> Cost:
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
        return Cost(amount=amount)


def whole(name: str, amount: float) -> int:
    """US dollars in millionths, rounded up, or tokens."""
    # What stands beyond the ninth decimal is what rounding left.
    return math.ceil(round(amount * _MICRO, 3)) if name.startswith("usd") else math.ceil(amount)


def shown(name: str, amount: int) -> float:
    """The same in US dollars, or tokens."""
    return amount / _MICRO if name.startswith("usd") else amount
