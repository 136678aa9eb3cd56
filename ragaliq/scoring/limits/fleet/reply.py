"""What the shared storage says of the windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragaliq.scoring.limits.windows import Window

__all__ = ["Figures", "Reply"]


@dataclass(frozen=True, kw_only=True)
class Figures:
    """One window, as all processes have used it.

    Attributes:
        spent: What was spent.
        reserved: What is set aside.
        expected: What a run is expected to cost; less than nothing where that is not known.
        slots: Seconds since the end of each slot, below zero for the latest, and what was spent.
    """

    spent: int
    reserved: int
    expected: int
    slots: tuple[tuple[float, int], ...]


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a script replied.

    Attributes:
        at: When, in seconds of the local clock.
        answer: What it says, a number.
        windows: The windows afterwards.
        taken: For each window the slot on the server in which something was counted, if it was.
    """

    at: float
    answer: int
    windows: tuple[Figures, ...]
    taken: tuple[int, ...]

    @classmethod
    def of(cls, raw: Sequence[Any], *, at: float) -> Reply:
        """Read what came over the line."""
        answer, now, windows, *taken = raw
        return cls(
            at=at,
            answer=answer,
            windows=tuple(
                Figures(
                    spent=spent,
                    reserved=reserved,
                    expected=expected,
                    slots=tuple(((now - ends) / 1000, amount) for ends, amount in slots),
                )
                for spent, reserved, expected, slots in windows
            ),
            taken=tuple(taken[0]) if taken else (),
        )

    def leave(self, number: int, window: Window, *, share: float, own_reserved: int) -> None:
        """Have a local window begin where the fleet's was, for this process's share of both.

        So what all processes together spend from then on is no more than what was left for them.

        Args:
            number: The window's, from 0.
            window: The local one; its limit is the share of the fleet's.
            share: This process's.
            own_reserved: What is set aside for runs of this process, who counts it itself.
        """
        figures = self.windows[number]
        window.clear()
        others = (0.0, max(0, figures.reserved - own_reserved))
        due = counted = 0.0
        for age, amount in sorted((*figures.slots, others), reverse=True):
            due += amount * share
            whole = math.ceil(due - counted)
            counted += whole
            # By the end of its slot, so that it leaves late rather than too early.
            window.spend(whole, self.at - max(0.0, age))
