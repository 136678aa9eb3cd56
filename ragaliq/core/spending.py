"""What the judge was paid while something was measured, also when the measuring failed half-way.

Calls run side by side and in tasks of their own; one that succeeded before another failed, or
before the time was up, is paid for all the same. So calls are counted where they are made.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

from ragaliq.core.pacing import Pace, Turn, current_pace
from ragaliq.core.results import JudgeUsage
from ragaliq.errors import JudgeError

__all__ = ["Spending", "paid", "spending"]


class _Reply(Protocol):
    def spent(self) -> JudgeUsage: ...


R = TypeVar("R", bound=_Reply)


class Spending:
    """Adds up what judge calls cost, failed ones included.

    Attributes:
        usage: The sum so far.
    """

    def __init__(self, around: Spending | None = None) -> None:
        self.usage = JudgeUsage()
        self._around = around
        self._counted: list[JudgeError] = []

    def add(self, usage: JudgeUsage, error: JudgeError | None = None) -> None:
        """Count a call; `error` is the failure it ended in."""
        self.usage += usage
        if error is not None:
            self._counted.append(error)
        if self._around is not None:
            self._around.add(usage, error)

    def up_to(self, error: JudgeError) -> JudgeUsage:
        """The sum, with what `error` cost where the call that raised it was not counted."""
        if error.usage is None or any(error is counted for counted in self._counted):
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
    counted, pace = _CURRENT.get() or Spending(), current_pace()
    turn = await _turn(pace, call)
    used = JudgeUsage()
    try:
        reply = await call
        used = reply.spent()
    except JudgeError as error:
        used = error.usage or JudgeUsage()
        counted.add(used, error)
        raise
    finally:
        if pace is not None and turn is not None:
            pace.replied(turn, used)
    counted.add(used)
    return reply


async def _turn(pace: Pace | None, call: Awaitable[R]) -> Turn | None:
    if pace is None:
        return None
    try:
        return await pace.turn()
    except BaseException:
        if inspect.iscoroutine(call):
            call.close()  # or Python would warn that it was never awaited
        raise
