"""Rate limits: judge calls beyond the limit of a minute wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ragaliq.core.results import JudgeUsage
from ragaliq.core.spending import Permit
from ragaliq.scoring.limits.shared import (
    SharedLimits,
    StorageState,
    storage_state,
)
from ragaliq.scoring.limits.windows import SLOTS, Window

_MINUTE = 60.0
_TOKENS = "tokens_per_minute"
_LOOK_AGAIN = 0.01, 0.5
"""Least and most seconds after which the first waiting call checks again: other calls may have
returned tokens that they did not use."""
_RECENT = 0.1
"""Weight of the latest call in the mean that the next one is expected to use."""


@dataclass(frozen=True, kw_only=True)
class RateLimits(SharedLimits):
    """Limits on judge calls in any minute, for one process or shared by several.

    Calls wait on the worker, first come, first served, at most until their metric's deadline. The
    tokens of a call are known only after it: until then the mean of recent calls is counted, and
    the difference afterwards.

    Attributes:
        requests_per_minute: Calls of the judge. Retries by an SDK are not counted.
        tokens_per_minute: Tokens read and written, including cached ones.
        storage: Storage of the counts, as in `Budget`.
        local_share: As in `Budget`, but one call a minute is always allowed.
        name: As in `Budget`.

    Raises:
        ConfigurationError: A limit cannot be counted, none is given, or the storage cannot be used.
    """

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    _setting = "judge_limits"
    _example = "requests_per_minute, tokens_per_minute or both"


class RateLimiter:
    """Grants permits within the rate limits; used on one event loop.

    Args:
        limits: The limits.
        minute: Seconds of a minute.
        pause: Seconds between attempts to reach a storage that is unavailable.
        on_error: Called with the class of each failure of the storage.
    """

    def __init__(
        self,
        limits: RateLimits,
        *,
        minute: float = _MINUTE,
        pause: float = 1.0,
        on_error: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._limits = {name: int(limit) for name, limit in limits.limits().items()}
        self._windows = {
            name: Window(limits.here(limit), minute) for name, limit in self._limits.items()
        }
        self._step = minute / SLOTS  # no room is freed before the window moves by one slot
        self._shared = limits.shared_windows(
            "rates",
            {name: (self._limits[name], window) for name, window in self._windows.items()},
            on_error=on_error,
            pause=pause,
        )
        self._line = asyncio.Lock()  # binds to the loop that uses it first
        self._mean: float | None = None

    @property
    def storage(self) -> StorageState:
        """Storage of the counts, and whether it is reachable."""
        return storage_state(self._shared)

    async def take(self, guess: int) -> Permit:
        """Wait until a call is permitted.

        Args:
            guess: The tokens to expect before any other call was counted.
        """
        async with self._line:
            expected = max(0, guess if self._mean is None else round(self._mean))
            while True:
                costs, taken = _costs(expected, self._limits), None
                if self._shared is not None:
                    taken = await self._shared.take(list(costs.values()))
                now = taken.at if taken else time.monotonic()
                if taken is None:  # this process by itself, for now at least
                    limits = {name: window.limit for name, window in self._windows.items()}
                    costs = _costs(expected, limits)
                    wait = max(window.wait(costs[n], now) for n, window in self._windows.items())
                else:
                    wait = 0.0 if taken.fits else self._step
                if not wait:
                    break
                await asyncio.sleep(min(max(wait, _LOOK_AGAIN[0]), _LOOK_AGAIN[1]))
            for number, (name, window) in enumerate(self._windows.items()):
                window.forget(now)
                window.spend(costs[name], now)
                if self._shared is not None and taken is None:
                    self._shared.change(number, costs[name], at=now)
            return Permit(tokens=costs.get(_TOKENS, 0), at=now)

    def settle(self, permit: Permit, usage: JudgeUsage) -> None:
        """Count what a call really used in place of what was expected."""
        tokens = usage.total_tokens
        if usage.requests:
            self._mean = tokens if self._mean is None else self._mean
            self._mean += _RECENT * (tokens - self._mean)
        beyond = tokens - permit.tokens
        if _TOKENS not in self._windows or not beyond:
            return
        # Unused tokens are returned to the slot they were taken from, so that they do not make room
        # twice; extra tokens are counted now, for a whole minute.
        now = time.monotonic()
        at = permit.at if beyond < 0 else now
        self._windows[_TOKENS].forget(now)
        self._windows[_TOKENS].spend(beyond, at)
        if self._shared is not None:
            self._shared.change(len(self._windows) - 1, beyond, at=at)  # tokens come last

    async def aclose(self) -> None:
        """Deliver unsent changes to the storage, and close the connections."""
        if self._shared is not None:
            await self._shared.aclose()


def _costs(expected: int, limits: Mapping[str, int]) -> dict[str, int]:
    # A cost above the limit would never be permitted; the rest is counted after the call.
    return {name: min(expected, limit) if name == _TOKENS else 1 for name, limit in limits.items()}
