"""Budget: limits on the judge's cost in an hour and a day, for one process or all."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal, NamedTuple

from ragaliq.core.results import JudgeUsage
from ragaliq.scoring.limits.shared import (
    SharedLimits,
    StorageState,
    storage_state,
)
from ragaliq.scoring.limits.windows import Window

logger = logging.getLogger(__name__)

_HOUR = 3600.0
_FORGET = 20
"""A cheaper run lowers the expected cost by a twentieth of the difference."""


@dataclass(frozen=True, kw_only=True)
class Budget(SharedLimits):
    """Limits on the judge's cost in any hour and any day, for one process or shared by several.

    A run that might exceed a limit is not evaluated and counted `over_budget`. A run's cost is
    known only afterwards, so the cost of the dearest recent run is reserved for each run in
    progress. A limit can be exceeded only if the runs in progress, at most `concurrency` in each
    process, cost more than their reservations.

    Attributes:
        usd_per_hour: US dollars at list price. A run with an unknown price counts as the dearest
            recent run; if no price was ever known, the limit counts as used up.
        usd_per_day: The same for a day.
        tokens_per_hour: Tokens read and written, including cached ones.
        tokens_per_day: The same for a day.
        storage: Storage of the counts: `memory://` for this process alone, or a Redis server's
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

    _setting = "budget"
    _example = "at least one limit, such as usd_per_day=5.0"


@dataclass(frozen=True, kw_only=True)
class BudgetLine:
    """State of one limit.

    Attributes:
        limit: US dollars or tokens.
        spent: Cost of the runs of the last hour or day.
        reserved: Reservations for runs in progress; with `shared`, those of this process.
        scope: `shared` if the figures are those of all processes, as of the last run here;
            `process` if they are this process's own, also while the shared storage is
            unavailable, with its share as the limit.
    """

    limit: float
    spent: float
    reserved: float
    scope: Literal["process", "shared"] = "process"

    @property
    def left(self) -> float:
        """Amount that may still be spent."""
        return max(0.0, self.limit - self.spent - self.reserved)


class Reservation(NamedTuple):
    """Expected cost of one run, reserved in every limit until its real cost is known.

    Attributes:
        amounts: Tokens, or millionths of a US dollar, by limit.
        at: Time, by the local clock, when the shared storage counted it; None if it did not.
    """

    amounts: dict[str, int]
    at: float | None = None


class _Kind(NamedTuple):
    """Kind of a limit.

    Attributes:
        hours: Length of its window.
        parts: Parts of its unit that are counted.
        cost: Cost of a usage in its unit; None if it is not known.
        unknown: Message where that is not known.
        instead: Advice where it never was.
    """

    hours: int
    parts: int
    cost: Callable[[JudgeUsage], float | None]
    unknown: str
    instead: str

    def count(self, amount: float) -> int:
        """Convert an amount to whole parts, rounded up."""
        # Digits beyond the third decimal of a part are rounding errors.
        return math.ceil(round(amount * self.parts, 3))


def _known_tokens(usage: JudgeUsage) -> float | None:
    """Tokens of a usage; None if requests were made and no reply reported tokens."""
    return float(usage.total_tokens) if usage.total_tokens or not usage.requests else None


_USD = (
    1_000_000,
    attrgetter("cost_usd"),
    "the price of the judge's model is not known",
    "limit tokens instead",
)
_TOKENS = (
    1,
    _known_tokens,
    "the judge's tokens are not known",
    "limit runs instead (judge_limits)",
)
_KINDS = {
    "usd_per_hour": _Kind(1, *_USD),
    "usd_per_day": _Kind(24, *_USD),
    "tokens_per_hour": _Kind(1, *_TOKENS),
    "tokens_per_day": _Kind(24, *_TOKENS),
}


class BudgetWindow(Window):
    """Window with reservations for runs in progress.

    Attributes:
        reserved: Reservations for runs in progress.
        expected: Expected cost of the next run.
        has_known: Whether any cost was known so far.
    """

    reserved = expected = 0
    has_known = False

    def learn(self, amount: int) -> None:
        """Update the expected cost with a run's cost."""
        # Up at once and down slowly: too small a reservation lets a limit be exceeded.
        gap = self.expected - amount
        self.expected -= gap if gap < 0 else gap // _FORGET
        self.has_known = True


class BudgetLedger:
    """Budget with its current counts, or this process's part of a shared one.

    Written on the worker's loop, read from anywhere.

    Args:
        budget: The limits.
        clock: Seconds, monotonic.
        hour: Seconds; a day is 24 of them.
        pause: Seconds between attempts to reach a storage that is unavailable.
        on_error: Called with the class of each failure of the storage.
    """

    def __init__(
        self,
        budget: Budget,
        *,
        clock: Callable[[], float] = time.monotonic,
        hour: float = _HOUR,
        pause: float = 1.0,
        on_error: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._has_logged = False
        limits = budget.limits().items()
        self._limits = {name: _KINDS[name].count(limit) for name, limit in limits}
        self._windows = {
            name: BudgetWindow(budget.here(limit), hour * _KINDS[name].hours)
            for name, limit in self._limits.items()
        }
        self._shared = budget.shared_windows(
            "budget",
            {name: (self._limits[name], window) for name, window in self._windows.items()},
            on_error=on_error,
            pause=pause,
            lock=self._lock,
        )

    @property
    def storage(self) -> StorageState:
        """Storage of the counts, and whether it is reachable."""
        return storage_state(self._shared)

    async def reserve(self) -> Reservation | None:
        """Reserve the expected cost of one run; None if a limit might be exceeded."""
        taken, expected = None, {name: window.expected for name, window in self._windows.items()}
        if self._shared is not None:
            taken = await self._shared.take(list(expected.values()))
            if taken is not None and not taken.fits:
                return None
        now = self._clock()
        with self._lock:
            for name, window in self._windows.items() if taken is None else ():
                window.forget(now)
                used, limit = window.spent + window.reserved, window.limit
                # One run always fits into an unused window: otherwise a single dear run, expected
                # again, would block all others for ever. A window that is used up also refuses a
                # run that is expected to cost nothing.
                if used > 0 and (used >= limit or used + expected[name] > limit):
                    return None
            for name, window in self._windows.items():
                window.reserved += expected[name]
        return Reservation(expected, taken.at if taken else None)

    def settle(self, reserved: Reservation, usage: JudgeUsage) -> None:
        """Replace a reservation by the run's real cost."""
        now = self._clock()
        with self._lock:
            for number, (name, window) in enumerate(self._windows.items()):
                window.reserved -= reserved.amounts[name]
                known = _KINDS[name].cost(usage)
                if known is not None:
                    # For this process's window, and for the one of all processes.
                    here = everywhere = _KINDS[name].count(known)
                    if usage.requests or known:
                        window.learn(here)
                else:
                    # A limit that cannot be checked must not be ignored silently.
                    self._log_failure(name, window)
                    here = window.expected if window.has_known else window.limit
                    everywhere = window.expected if window.has_known else self._limits[name]
                window.spend(here, now)
                if self._shared is None:
                    continue
                at = now
                if reserved.at is not None:  # counted there already
                    everywhere -= reserved.amounts[name]
                    at = reserved.at if everywhere < 0 else now
                self._shared.change(number, everywhere, at=at)

    def _log_failure(self, name: str, window: BudgetWindow) -> None:
        if not self._has_logged:
            self._has_logged = True
            kind = _KINDS[name]
            logger.warning(
                "%s: %s",
                kind.unknown,
                "such runs are charged like the dearest recent one"
                if window.has_known
                else f"the budget's {name} counts as used up; {kind.instead}",
            )

    def lines(self) -> dict[str, BudgetLine]:
        """State of each limit."""
        now, lines = self._clock(), {}
        with self._lock:
            for number, (name, window) in enumerate(self._windows.items()):
                window.forget(now)
                limit, spent, reserved = window.limit, window.spent, window.reserved
                total = self._shared.used(number) if self._shared else None
                if total is not None:
                    limit, spent = self._limits[name], max(0, total - reserved)
                parts = _KINDS[name].parts
                lines[name] = BudgetLine(
                    limit=limit / parts,
                    spent=spent / parts,
                    reserved=reserved / parts,
                    scope="process" if total is None else "shared",
                )
        return lines

    async def aclose(self) -> None:
        """Deliver unsent changes to the storage, and close the connections."""
        if self._shared is not None:
            await self._shared.aclose()
