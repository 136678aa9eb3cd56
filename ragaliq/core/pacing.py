"""Judge calls that have to wait for their turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from ragaliq.core.results import JudgeUsage

__all__ = ["Pace", "Turn", "current_pace", "paced"]


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One call's turn.

    Attributes:
        tokens: What was counted for it.
        at: When, in seconds of a monotonic clock.
        slot: Where it was counted in a storage that processes share; 0 for nowhere.
    """

    tokens: int
    at: float
    slot: int = 0


class Pace(Protocol):
    """Decides when the judge calls of one run may be made."""

    @property
    def held_up(self) -> bool:
        """Whether a call waits for its turn, or did so when it was given up."""

    async def turn(self) -> Turn:
        """Wait until a call may be made."""

    def replied(self, turn: Turn, usage: JudgeUsage) -> None:
        """Note what the call used that had this turn."""


_CURRENT: ContextVar[Pace | None] = ContextVar("ragaliq_pace", default=None)


@contextmanager
def paced(pace: Pace | None) -> Iterator[None]:
    """Have the calls that are made inside keep to `pace`, in tasks started there too."""
    token = _CURRENT.set(pace)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_pace() -> Pace | None:
    """The pace to keep, if any."""
    return _CURRENT.get()
