"""Calls of the judge: each waits for its turn where there is a rate limit, and is counted.

Calls run side by side and in tasks of their own; one that succeeded before another failed, or
before the time was up, is paid for all the same. So calls are counted where they are made.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import JudgeError


class _Reply(Protocol):
    def spent(self) -> JudgeUsage: ...


R = TypeVar("R", bound=_Reply)


@dataclass(frozen=True, kw_only=True)
class LimitTurn:
    """One call's turn.

    Attributes:
        tokens: What was counted for it.
        at: When, in seconds of a monotonic clock.
    """

    tokens: int
    at: float


class Pace(Protocol):
    """Decides when the judge calls of one run may be made."""

    @property
    def held_up(self) -> bool:
        """Whether a call waits for its turn, or did so when it was given up."""

    async def turn(self) -> LimitTurn:
        """Wait until a call may be made."""

    def replied(self, turn: LimitTurn, usage: JudgeUsage) -> None:
        """Note what the call used that had this turn."""


PACE: ContextVar[Pace | None] = ContextVar("ragaliq_pace", default=None)
"""What the calls of the run keep to; tasks started inside inherit it."""


@dataclass
class Spending:
    """Adds up what judge calls cost, failed ones included.

    Attributes:
        around: The sum that this one is a part of.
        usage: The sum so far.
    """

    around: Spending | None = None
    usage: JudgeUsage = JudgeUsage()
    _failed: list[JudgeError] = field(default_factory=list)

    def add(self, usage: JudgeUsage, error: JudgeError | None = None) -> None:
        """Count a call; `error` is the failure it ended in."""
        counted: Spending | None = self
        while counted is not None:
            counted.usage += usage
            if error is not None:
                counted._failed.append(error)
            counted = counted.around

    def up_to(self, error: JudgeError) -> JudgeUsage:
        """The sum, with what `error` cost where the call that raised it was not counted."""
        if error.usage is None or any(error is counted for counted in self._failed):
            return self.usage
        return self.usage + error.usage


_CURRENT: ContextVar[Spending | None] = ContextVar("ragaliq_spending", default=None)


@contextmanager
def spending() -> Iterator[Spending]:
    """Count the calls that are made inside, in tasks started there too."""
    counted = Spending(_CURRENT.get())
    token = _CURRENT.set(counted)
    try:
        yield counted
    finally:
        _CURRENT.reset(token)


async def paid(call: Awaitable[R]) -> R:
    """Await a judge's reply, in turn where there is a pace to keep, and count what it cost."""
    counted, pace, turn = _CURRENT.get() or Spending(), PACE.get(), None
    used = JudgeUsage()
    try:
        if pace is not None:
            turn = await pace.turn()
        reply = await call
        used = reply.spent()
    except JudgeError as error:
        used = error.usage or JudgeUsage()
        counted.add(used, error)
        raise
    finally:
        if turn is not None and pace is not None:
            pace.replied(turn, used)
        elif pace is not None and inspect.iscoroutine(call):
            call.close()  # its turn never came, and Python would warn that it was never awaited
    counted.add(used)
    return reply
