"""Judge calls that have to wait for their turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from ragaliq.core.results import JudgeUsage

__all__ = ["Pace", "current_pace", "paced"]


class Pace(Protocol):
    """Decides when the judge calls of one run may be made."""

    @property
    def held_up(self) -> bool:
        """Whether a call waits for its turn, or did so when it was given up."""

    async def turn(self) -> int:
        """Wait until a call may be made; returns the tokens it is expected to use."""

    def replied(self, expected: int, usage: JudgeUsage) -> None:
        """Note what a call used; `expected` is what `turn` returned."""


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
