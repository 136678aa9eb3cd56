"""Calls of the judge: each waits for a permit where there is a rate limit, and is counted.

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


class Permit(NamedTuple):
    """Permit for one judge call: the tokens reserved for it, and when (monotonic seconds)."""

    tokens: int
    at: float


class _RateLimiter(Protocol):
    async def take(self, guess: int) -> Permit: ...
    def settle(self, permit: Permit, usage: JudgeUsage) -> None: ...


@dataclass
class RunPermits:
    """Permits for the judge calls of one run.

    Attributes:
        limiter: Grants them.
        guess: The tokens to expect of a call before any other call was counted.
    """

    limiter: _RateLimiter
    guess: int
    _waiting: int = 0
    _has_given_up: bool = False

    @property
    def is_held_up(self) -> bool:
        """True while a call waits for its permit, or if it was cancelled while it waited."""
        return self._has_given_up or self._waiting > 0

    async def acquire(self) -> Permit:
        """Wait until the limiter permits a call."""
        self._waiting += 1
        try:
            return await self.limiter.take(self.guess)
        except asyncio.CancelledError:
            self._has_given_up = True
            raise
        finally:
            self._waiting -= 1


@dataclass
class Spending:
    """Sum of the usage of judge calls, failed ones included.

    Attributes:
        around: The enclosing sum, which counts these calls too.
        permits: Permits for the calls; None without a rate limit.
        usage: The sum so far.
    """

    around: Spending | None = None
    permits: RunPermits | None = None
    usage: JudgeUsage = JudgeUsage()
    _failed: list[JudgeError] = field(default_factory=list)

    def add(self, usage: JudgeUsage, error: JudgeError | None = None) -> None:
        """Count a call, and the error that it ended in."""
        counted: Spending | None = self
        while counted is not None:
            counted.usage += usage
            if error is not None:
                counted._failed.append(error)
            counted = counted.around

    def up_to(self, error: JudgeError) -> JudgeUsage:
        """Total usage, plus `error.usage` if that call was not counted yet."""
        if error.usage is None or any(error is counted for counted in self._failed):
            return self.usage
        return self.usage + error.usage


_CURRENT: ContextVar[Spending | None] = ContextVar("ragaliq_spending", default=None)


@contextmanager
def spending(permits: RunPermits | None = None) -> Iterator[Spending]:
    """Count the judge calls made inside the block and in the tasks started there.

    Args:
        permits: Permits for these calls; by default those of the enclosing block.
    """
    around = _CURRENT.get()
    counted = Spending(around, permits or (around.permits if around else None))
    token = _CURRENT.set(counted)
    try:
        yield counted
    finally:
        _CURRENT.reset(token)


async def paid(call: Awaitable[R]) -> R:
    """Await a judge's reply, with a permit where a rate limit is set, and count its usage."""
    counted, permit, used = _CURRENT.get() or Spending(), None, JudgeUsage()
    permits = counted.permits
    try:
        if permits is not None:
            permit = await permits.acquire()
        reply = await call
        used = reply.spent()
    except JudgeError as error:
        used = error.usage or JudgeUsage()
        counted.add(used, error)
        raise
    finally:
        if permit is not None and permits is not None:
            permits.limiter.settle(permit, used)
        elif permits is not None and inspect.iscoroutine(call):
            call.close()  # no permit came; Python would warn that the call was never awaited
    counted.add(used)
    return reply
