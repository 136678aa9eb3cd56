"""Sliding window: what was spent in the last minute, hour or day, in whole units."""

from __future__ import annotations

SLOTS = 60
"""Slots of a window: old amounts leave it one slot at a time."""


class Window:
    """Amount spent in the last `length` seconds.

    It counts in slots, so that its memory is constant. A slot counts in full until its last moment
    has left the window: the count is never too low.

    Args:
        limit: Most that may be spent, in whole units.
        length: Seconds.

    Attributes:
        spent: Amount spent.
        reserved: Amount reserved; see `BudgetWindow`.
    """

    reserved = 0

    def __init__(self, limit: int, length: float) -> None:
        self.limit, self.length = limit, length
        self.spent = 0
        self._slots: dict[float, int] = {}

    def slot(self, at: float) -> float:
        """End of the slot that a moment belongs to."""
        step = self.length / SLOTS
        return (at // step + 1) * step

    def slots(self) -> list[tuple[float, int]]:
        """End of each slot, and the amount spent in it."""
        return list(self._slots.items())

    def clear(self) -> None:
        """Remove everything."""
        self.spent = 0
        self._slots.clear()

    def forget(self, now: float) -> None:
        """Remove the slots that are too old."""
        for ends in [ends for ends in self._slots if ends + self.length <= now]:
            self.spent -= self._slots.pop(ends)

    def spend(self, amount: int, at: float) -> None:
        """Count an amount at a moment; a negative one reduces what was counted then."""
        slot = self.slot(at)
        if amount < 0:
            # A reduction of another slot would still make room after this slot has expired.
            amount = max(amount, -self._slots.get(slot, 0))
        self._slots[slot] = self._slots.get(slot, 0) + amount
        self.spent += amount

    def wait(self, amount: int, now: float) -> float:
        """Seconds until this amount may be spent; 0 if it may be now."""
        self.forget(now)
        missing = self.spent + amount - self.limit
        if missing <= 0 or not amount:
            return 0.0
        for ends in sorted(self._slots):
            missing -= self._slots[ends]
            if missing <= 0:
                return max(0.001, ends + self.length - now)
        return self.length  # the amount alone exceeds the limit
