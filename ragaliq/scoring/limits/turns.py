"""Rate limits at work: each call of the judge waits for its turn."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

from ragaliq.core.pacing import Turn
from ragaliq.core.results import JudgeUsage
from ragaliq.scoring.limits.fleet import FleetAccount, StorageState
from ragaliq.scoring.limits.fleet.options import IN_MEMORY
from ragaliq.scoring.limits.rate_limits import RateLimits
from ragaliq.scoring.limits.windows import Window

__all__ = ["RunPace", "Turns"]

_MINUTE = 60.0
_LOOK_AGAIN = 0.01, 0.5
"""Seconds after which the call that is next in line looks again, at least and at most: others may
have given back what they did not use."""
_CHARACTERS_PER_TOKEN = 4
_RECENT = 0.1
"""Weight of the latest call in the mean that the next one is expected to use."""


class Turns:
    """Rate limits at work; used on one event loop.

    Args:
        limits: The limits.
        minute: Seconds of a minute.
        pause: Seconds between attempts to find a storage that is away.
        on_error: Told the class of each failure of the storage.
    """

    def __init__(
        self,
        limits: RateLimits,
        *,
        minute: float = _MINUTE,
        pause: float = 1.0,
        on_error: Callable[[str], None] = lambda _: None,
    ) -> None:
        is_shared = limits.storage != IN_MEMORY
        share = limits.local_share if is_shared else 1.0
        self._limits = limits.limits()
        self._windows = {
            name: Window(max(1, math.floor(limit * share)), minute)
            for name, limit in self._limits.items()
        }
        self._fleet = None
        if is_shared:
            self._fleet = FleetAccount(
                limits.storage,
                key=f"rates:{limits.name}",
                windows={n: (self._limits[n], window) for n, window in self._windows.items()},
                local_share=limits.local_share,
                on_error=on_error,
                pause=pause,
            )
        self._line = asyncio.Lock()  # binds to the loop that uses it first
        self._mean: float | None = None

    @property
    def storage(self) -> StorageState:
        """Where the counts are, and whether they can be reached."""
        if self._fleet is None:
            return "local"
        return "away" if self._fleet.is_away else "shared"

    async def take(self, guess: int) -> Turn:
        """Wait for a turn.

        Args:
            guess: The tokens to expect while nothing is known of other calls.
        """
        async with self._line:
            expected = max(0, guess if self._mean is None else round(self._mean))
            while True:
                wait, turn = await self._try(expected)
                if turn is not None:
                    return turn
                await asyncio.sleep(min(max(wait, _LOOK_AGAIN[0]), _LOOK_AGAIN[1]))

    def used(self, turn: Turn, usage: JudgeUsage) -> None:
        """Note what a call really used."""
        tokens = usage.total_tokens
        if usage.requests:
            self._mean = tokens if self._mean is None else self._mean
            self._mean += _RECENT * (tokens - self._mean)
        if "tokens" in self._windows and tokens != turn.tokens:
            self._correct(turn, tokens - turn.tokens)

    async def aclose(self) -> None:
        """Tell the storage what is left to tell, and close the connections."""
        if self._fleet is not None:
            await self._fleet.aclose()

    async def _try(self, expected: int) -> tuple[float, Turn | None]:
        """A turn; or None, and the seconds until there may be room."""
        if self._fleet is not None:
            costs = self._costs(expected, self._limits)
            reply = await self._fleet.ask("take", [{"cost": cost} for cost in costs.values()])
            if reply is not None:
                if reply.answer:
                    return reply.answer / 1000, None
                return 0.0, self._taken(costs, slots=dict(zip(costs, reply.taken, strict=True)))
        now = time.monotonic()
        costs = self._costs(expected, {n: window.limit for n, window in self._windows.items()})
        wait = max(self._windows[name].wait(cost, now) for name, cost in costs.items())
        return wait, None if wait else self._taken(costs)

    @staticmethod
    def _costs(expected: int, limits: dict[str, int]) -> dict[str, int]:
        # Nothing larger than the limit would ever pass; the rest is counted when the call is over.
        return {
            name: 1 if name == "requests" else min(expected, limit)
            for name, limit in limits.items()
        }

    def _taken(self, costs: dict[str, int], slots: dict[str, int] | None = None) -> Turn:
        now = time.monotonic()
        for number, (name, cost) in enumerate(costs.items()):
            self._windows[name].forget(now)
            self._windows[name].spend(cost, now)
            if self._fleet is not None and slots is None:
                self._fleet.outbox.spent(number, cost, at=now)
        slot = (slots or {}).get("tokens", 0)
        return Turn(tokens=costs.get("tokens", 0), at=now, slot=slot)

    def _correct(self, turn: Turn, tokens: int) -> None:
        # Given back where it was taken, so that it does not make room twice; what came on top is
        # counted now, so that it counts for a whole minute.
        now = time.monotonic()
        at, slot = (turn.at, turn.slot) if tokens < 0 else (now, 0)
        self._windows["tokens"].forget(now)
        self._windows["tokens"].spend(tokens, at)
        if self._fleet is not None:
            number = list(self._windows).index("tokens")
            self._fleet.outbox.spent(number, tokens, at=at, slot=slot)
            self._fleet.deliver_soon()


class RunPace:
    """The turns of one run's calls.

    Args:
        turns: Whose turns they are.
        characters: Length of the run's texts.
    """

    def __init__(self, turns: Turns, characters: int) -> None:
        self._turns = turns
        self._guess = characters // _CHARACTERS_PER_TOKEN
        self._waiting = 0
        self._given_up = False

    @property
    def held_up(self) -> bool:
        """Whether a call waits for its turn, or did so when it was given up."""
        return self._given_up or self._waiting > 0

    async def turn(self) -> Turn:
        """Wait for a turn."""
        self._waiting += 1
        try:
            return await self._turns.take(self._guess)
        except asyncio.CancelledError:
            self._given_up = True
            raise
        finally:
            self._waiting -= 1

    def replied(self, turn: Turn, usage: JudgeUsage) -> None:
        """Note what a call used."""
        self._turns.used(turn, usage)
