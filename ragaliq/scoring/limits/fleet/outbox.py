"""What a process spent and has not told the shared storage yet."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ragaliq.scoring.limits.windows import Window

__all__ = ["Batch", "Outbox"]

_KEPT = 500
"""Entries beyond which those that are too old to count are looked for."""
_LEARNT = 50


@dataclass(kw_only=True)
class Batch:
    """What is told at once, and only once.

    Attributes:
        spent: Amounts by window, slot on the server (0 where none is known) and local time.
        learnt: By window, what runs cost.
        released: Reservations that are over.
    """

    spent: Counter[tuple[int, int, float]] = field(default_factory=Counter)
    learnt: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=_LEARNT))
    released: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.spent or self.learnt or self.released)

    def total(self, window: int) -> int:
        """What is spent in one window, by its number from 0."""
        # Asked from other threads, too, while it changes: hence the copy.
        return sum(amount for (n, _, _), amount in list(self.spent.items()) if n == window + 1)

    def count_in(self, windows: Sequence[Window]) -> None:
        """Count in local windows what is spent."""
        for (number, _, at), amount in self.spent.items():
            windows[number - 1].spend(amount, at)

    def request(self, now: float) -> dict[str, Any]:
        """The batch as the script wants it; times as ages, since the clocks are different ones."""
        return {
            "released": self.released,
            "learnt": list(self.learnt),
            "spent": [
                (window, slot, max(0, round((now - at) * 1000)), amount)
                for (window, slot, at), amount in self.spent.items()
            ],
        }


class Outbox:
    """Gathers what is to be told; bounded by what the windows' slots can hold.

    Args:
        windows: The local ones, whose slots and lengths are those of the shared ones.
    """

    def __init__(self, windows: list[Window]) -> None:
        self._windows = windows
        self._batch = Batch()

    def __bool__(self) -> bool:
        return bool(self._batch)

    def total(self, window: int) -> int:
        """What is to be told of one window."""
        return self._batch.total(window)

    def spent(self, window: int, amount: int, *, at: float, slot: int = 0) -> None:
        """Note something spent, or given back.

        Args:
            window: Number of the window, from 0.
            amount: Whole units.
            at: When, by the local clock.
            slot: The slot it was counted in, where the server said so.
        """
        if not amount:
            return
        # All of a slot is told as one, with the time of its end: late rather than too early.
        self._batch.spent[window + 1, slot, self._windows[window].slot(at)] += amount
        if len(self._batch.spent) > _KEPT:
            self._forget(at)

    def learnt(self, window: int, amount: int) -> None:
        """Note what a run cost."""
        self._batch.learnt.append((window + 1, amount))

    def released(self, reservation: str) -> None:
        """Note that a reservation is over."""
        self._batch.released.append(reservation)

    def count_in(self, windows: Sequence[Window]) -> None:
        """Count in local windows what was spent."""
        self._batch.count_in(windows)

    def take(self) -> Batch:
        """All that was gathered."""
        batch, self._batch = self._batch, Batch()
        return batch

    def _forget(self, now: float) -> None:
        kept = self._batch.spent
        for entry in [e for e in kept if e[2] + self._windows[e[0] - 1].length <= now]:
            del kept[entry]
