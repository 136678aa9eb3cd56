"""What judging may cost in an hour and in a day."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import ConfigurationError
from ragaliq.live.settings import require_positive

__all__ = ["Budget", "BudgetLedger", "BudgetLine"]

logger = logging.getLogger(__name__)

_HOUR, _DAY = 3600.0, 86_400.0
_SLOTS = 60
"""A window moves on in steps of this part of its length."""
_FORGET = 0.05
"""How far the expected cost of a run sinks towards that of a cheaper one."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits on what judging costs in any hour and any day, per process.

    A run that might go over is not judged and counted `over_budget`. What a run costs is known only
    afterwards, so what the dearest of the recent runs cost is set aside for each run that is being
    judged. A limit can be exceeded by what the runs being judged at that moment, at most
    `concurrency`, cost beyond what is set aside for them, and by no more.

    Attributes:
        usd_per_hour: US dollars at list price. Where a run's price is not known, the dearest of the
            recent runs stands for it; if no price was ever known, the limit counts as used up.
        usd_per_day: The same for a day.
        tokens_per_hour: Tokens read and written, cached ones included.
        tokens_per_day: The same for a day.

    Raises:
        ConfigurationError: A limit is not positive, or none is given.
    """

    usd_per_hour: float | None = None
    usd_per_day: float | None = None
    tokens_per_hour: int | None = None
    tokens_per_day: int | None = None

    def __post_init__(self) -> None:
        limits = {name: limit for name, limit in vars(self).items() if limit is not None}
        if not limits:
            raise ConfigurationError("Budget: give at least one limit, such as usd_per_day=5.0")
        require_positive(**{f"budget.{name}": limit for name, limit in limits.items()})


@dataclass(frozen=True, kw_only=True)
class BudgetLine:
    """One limit and where it stands.

    Attributes:
        limit: US dollars or tokens.
        spent: What the runs of the last hour or day cost.
        reserved: What is set aside for runs that are being judged.
    """

    limit: float
    spent: float
    reserved: float

    @property
    def left(self) -> float:
        """What may still be spent."""
        return max(0.0, self.limit - self.spent - self.reserved)


class _Window:
    """What was spent in the last `length` seconds, and what is set aside."""

    def __init__(self, limit: float, length: float) -> None:
        self.limit = limit
        self.spent = self.reserved = self.expected = 0.0
        self.has_known = False
        self._length = length
        self._slots: deque[tuple[float, float]] = deque()

    def forget(self, now: float) -> None:
        while self._slots and self._slots[0][0] + self._length <= now:
            self.spent -= self._slots.popleft()[1]
        if not self._slots:
            self.spent = 0.0  # what rounding left

    def reserve(self) -> float | None:
        """Set aside what a run is expected to cost; None when it might go over."""
        used = self.spent + self.reserved
        # One run always fits into an unused window: else a single dear one, expected again, would
        # keep all others out for ever.
        if used > 0 and used + self.expected >= self.limit:
            return None
        self.reserved += self.expected
        return self.expected

    def spend(self, amount: float, now: float) -> None:
        # A slot counts in full until the last moment it stands for has left the window.
        ends = (now // self._step + 1) * self._step
        if self._slots and self._slots[-1][0] >= ends:
            ends, before = self._slots.pop()
            self._slots.append((ends, before + amount))
        else:
            self._slots.append((ends, amount))
        self.spent += amount

    def learn(self, amount: float) -> None:
        # Up at once and down slowly: setting aside too little is what makes a limit leak.
        gap = amount - self.expected
        self.expected += gap if gap > 0 else gap * _FORGET
        self.has_known = True

    @property
    def _step(self) -> float:
        return self._length / _SLOTS


class BudgetLedger:
    """A budget at work. Written on the worker's loop, read from anywhere.

    Args:
        budget: The limits.
        clock: Seconds, monotonic.
    """

    def __init__(self, budget: Budget, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._has_complained = False
        self._windows = {
            name: _Window(limit, _HOUR if name.endswith("hour") else _DAY)
            for name, limit in vars(budget).items()
            if limit is not None
        }

    def reserve(self) -> dict[str, float] | None:
        """Set aside what one run is expected to cost; None when a limit might be exceeded."""
        now = self._clock()
        reserved: dict[str, float] = {}
        with self._lock:
            for name, window in self._windows.items():
                window.forget(now)
                amount = window.reserve()
                if amount is None:
                    self._release(reserved)
                    return None
                reserved[name] = amount
        return reserved

    def settle(self, reserved: dict[str, float], usage: JudgeUsage) -> None:
        """Put what a run really cost in the place of what was set aside.

        Args:
            reserved: What `reserve` returned.
            usage: What the run cost.
        """
        now = self._clock()
        with self._lock:
            self._release(reserved)
            for name, window in self._windows.items():
                known = usage.cost_usd if name.startswith("usd") else float(usage.total_tokens)
                if known is None:
                    self._charge_unknown(name, window, now)
                    continue
                if usage.requests or known:
                    window.learn(known)
                if known:
                    window.spend(known, now)

    def lines(self) -> dict[str, BudgetLine]:
        """Where each limit stands."""
        now = self._clock()
        with self._lock:
            for window in self._windows.values():
                window.forget(now)
            return {
                name: BudgetLine(limit=window.limit, spent=window.spent, reserved=window.reserved)
                for name, window in self._windows.items()
            }

    def _release(self, reserved: dict[str, float]) -> None:
        for name, amount in reserved.items():
            self._windows[name].reserved -= amount

    def _charge_unknown(self, name: str, window: _Window, now: float) -> None:
        # A limit that cannot be checked must not be passed over in silence.
        window.spend(window.expected if window.has_known else window.limit, now)
        if not self._has_complained:
            self._has_complained = True
            logger.warning(
                "the price of the judge's model is not known: %s",
                "runs without a price are charged like the dearest recent one"
                if window.has_known
                else f"the budget's {name} counts as used up; limit tokens instead",
            )
