"""Calls of the judge: each waits for its turn where there is a rate limit, and is counted.

Calls run side by side and in tasks of their own; one that succeeded before another failed, or
before the time was up, is paid for all the same. So calls are counted where they are made.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import JudgeError


class _Reply(Protocol):
    def spent(self) -> JudgeUsage: ...


R = TypeVar("R", bound=_Reply)


class LimitTurn(NamedTuple):
    """One call's turn: the tokens counted for it, and when, in seconds of a monotonic clock."""

    tokens: int
    at: float


class _Turns(Protocol):
    async def take(self, guess: int) -> LimitTurn: ...
    def used(self, turn: LimitTurn, usage: JudgeUsage) -> None: ...


@dataclass
class Pace:
    """What the judge calls of one run keep to.

    Attributes:
        turns: The rate limits.
        guess: The tokens to expect of a call while nothing is known of others.
    """

    turns: _Turns
    guess: int
    _waiting: int = 0
    _has_given_up: bool = False

    @property
    def is_held_up(self) -> bool:
        """Whether a call waits for its turn, or did so when it was given up."""
        return self._has_given_up or self._waiting > 0

    async def turn(self) -> LimitTurn:
        """Wait until a call may be made."""
        self._waiting += 1
        try:
            return await self.turns.take(self.guess)
        except asyncio.CancelledError:
            self._has_given_up = True
            raise
        finally:
            self._waiting -= 1


@dataclass
class Spending:
    """Adds up what judge calls cost, failed ones included.

    Attributes:
        around: The sum that this one is a part of.
        pace: What the calls keep to; None where there is no rate limit.
        usage: The sum so far.
    """

    around: Spending | None = None
    pace: Pace | None = None
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
def spending(pace: Pace | None = None) -> Iterator[Spending]:
    """Count the calls that are made inside, in tasks started there too.

    Args:
        pace: What they keep to; by default what those outside keep to.
    """
    around = _CURRENT.get()
    counted = Spending(around, pace or (around.pace if around else None))
    token = _CURRENT.set(counted)
    try:
        yield counted
    finally:
        _CURRENT.reset(token)


async def paid(call: Awaitable[R]) -> R:
    """Await a judge's reply, in turn where there is a pace to keep, and count what it cost."""
    counted, turn, used = _CURRENT.get() or Spending(), None, JudgeUsage()
    pace = counted.pace
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
            pace.turns.used(turn, used)
        elif pace is not None and inspect.iscoroutine(call):
            call.close()  # its turn never came, and Python would warn that it was never awaited
    counted.add(used)
    return reply
