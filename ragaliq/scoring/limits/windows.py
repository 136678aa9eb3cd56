"""What was spent in the last minute, hour or day, counted in whole units."""

from __future__ import annotations

SLOTS = 60
"""A window moves on in steps of this part of its length."""


class Window:
    """What was spent in the last `length` seconds.

    Counted in slots, so that it takes the same room however much is spent. A slot counts in full
    until the last moment it stands for has left the window: never is too little counted.

    Args:
        limit: What may be spent, in whole units.
        length: Seconds.

    Attributes:
        spent: What was.
        reserved: What may be spent soon, and is not yet; see `BudgetWindow`.
    """

    reserved = 0

    def __init__(self, limit: int, length: float) -> None:
        self.limit, self.length = limit, length
        self.spent = 0
        self._slots: dict[float, int] = {}

    def slot(self, at: float) -> float:
        """When the slot ends that a moment belongs to."""
        step = self.length / SLOTS
        return (at // step + 1) * step

    def slots(self) -> list[tuple[float, int]]:
        """When each slot ends, and what was spent in it."""
        return list(self._slots.items())

    def clear(self) -> None:
        """Exclude everything."""
        self.spent = 0
        self._slots.clear()

    def forget(self, now: float) -> None:
        """Exclude what is too old to count."""
        for ends in [ends for ends in self._slots if ends + self.length <= now]:
            self.spent -= self._slots.pop(ends)

    def spend(self, amount: int, at: float) -> None:
        """Count something spent at a moment; less than nothing gives back what was counted then."""
        slot = self.slot(at)
        if amount < 0:
            # Given back elsewhere, it would make room that is still there when the slot is gone.
            amount = max(amount, -self._slots.get(slot, 0))
        self._slots[slot] = self._slots.get(slot, 0) + amount
        self.spent += amount

    def wait(self, amount: int, now: float) -> float:
        """Seconds until so much more may be spent; 0 for now."""
        self.forget(now)
        missing = self.spent + amount - self.limit
        if missing <= 0 or not amount:
            return 0.0
        for ends in sorted(self._slots):
            missing -= self._slots[ends]
            if missing <= 0:
                return max(0.001, ends + self.length - now)
        return self.length  # larger than the limit by itself
