"""Judge calls in a minute: those beyond the limit wait for their turn."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import ConfigurationError
from ragaliq.live.settings import require_positive

if TYPE_CHECKING:
    from limits import RateLimitItem
    from limits.aio.storage import Storage

__all__ = ["RateLimits", "RunPace", "Turns"]

logger = logging.getLogger(__name__)

_LOOK_AGAIN = 0.1
"""Seconds after which the call that is next in line looks again if there is room."""
_CHARACTERS_PER_TOKEN = 4
_RECENT = 0.1
"""Weight of the latest call in the mean that the next one is expected to use."""


@dataclass(frozen=True, kw_only=True)
class RateLimits:
    """How often the judge may be asked, in any minute.

    Calls wait for their turn on the worker, in the order they came, at most until their metric's
    deadline. The tokens of a call are known only when it is over: until then the mean of recent
    calls stands for them, and what it misses is made up for by the next call.

    Attributes:
        requests_per_minute: Calls of the judge. Repeats made by an SDK on its own are not seen.
        tokens_per_minute: Tokens read and written, cached ones included.
        storage: Where the counts are kept, as an address the `limits` library knows: `memory://`
            for this process alone. Others need a client library beside it.

    Raises:
        ConfigurationError: A limit is not positive, none is given, or the storage is not available.
    """

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    storage: str = "memory://"

    def __post_init__(self) -> None:
        given = {
            f"judge_limits.{name}": limit
            for name in ("requests_per_minute", "tokens_per_minute")
            if (limit := getattr(self, name)) is not None
        }
        if not given:
            raise ConfigurationError(
                "RateLimits: give requests_per_minute, tokens_per_minute or both"
            )
        require_positive(**given)
        _open(self.storage)


def _open(address: str) -> Storage:
    # Loaded on first use: the library takes longer to load than all of ragaliq.
    from limits.errors import ConfigurationError as UnusableStorage
    from limits.storage import storage_from_string

    try:
        return storage_from_string(f"async+{address}", wrap_exceptions=True)  # type: ignore[return-value]
    except (UnusableStorage, ImportError, ValueError) as error:
        scheme = address.partition("://")[0]  # the rest may hold a password
        raise ConfigurationError(
            f"RateLimits: storage {scheme}://... cannot be used ({type(error).__name__}); "
            "use memory://, or install the client library it needs"
        ) from None


class Turns:
    """Rate limits at work; used on one event loop.

    Args:
        limits: The limits.
    """

    def __init__(self, limits: RateLimits) -> None:
        from limits import RateLimitItemPerMinute
        from limits.aio.strategies import SlidingWindowCounterRateLimiter

        # Of the library's strategies the one that costs the same however high the limit is: the
        # moving window keeps an entry for each token, and looks at them in another thread.
        self._limiter = SlidingWindowCounterRateLimiter(_open(limits.storage))
        self._requests = _item(RateLimitItemPerMinute, limits.requests_per_minute, "requests")
        self._tokens = _item(RateLimitItemPerMinute, limits.tokens_per_minute, "tokens")
        self._line = asyncio.Lock()  # binds to the loop that uses it first
        self._mean: float | None = None
        self._owed = 0
        self._has_complained = False

    async def take(self, guess: int) -> int:
        """Wait for a turn; returns the tokens the call is expected to use.

        Args:
            guess: What to expect while nothing is known of other calls.
        """
        from limits.errors import StorageError

        expected = guess if self._mean is None else round(self._mean)
        async with self._line:
            try:
                await self._take(expected)
            except StorageError as error:
                # The judge's own limits still hold; without this the storage would be one more
                # thing that can stop every evaluation.
                if not self._has_complained:
                    self._has_complained = True
                    logger.warning(
                        "the storage of the rate limits failed (%s): calls are made without "
                        "waiting; further failures are not logged",
                        type(error).__name__,
                    )
        return expected

    def used(self, expected: int, usage: JudgeUsage) -> None:
        """Note what a call really used."""
        tokens = usage.total_tokens
        self._owed += tokens - expected
        if usage.requests:
            self._mean = tokens if self._mean is None else self._mean
            self._mean += _RECENT * (tokens - self._mean)

    async def _take(self, expected: int) -> None:
        while True:
            # Nothing larger than the limit would ever pass; the rest stays owed, up to a minute's.
            wanted = expected + self._owed
            limit = self._tokens.amount if self._tokens is not None else wanted
            tokens = min(max(0, wanted), limit)
            if await self._has_room(self._requests, 1) and await self._has_room(
                self._tokens, tokens
            ):
                break
            await asyncio.sleep(_LOOK_AGAIN)
        self._owed = min(wanted - tokens, limit)
        if self._requests is not None:
            await self._limiter.hit(self._requests, "judge")
        if self._tokens is not None and tokens:
            await self._limiter.hit(self._tokens, "judge", cost=tokens)

    async def _has_room(self, item: RateLimitItem | None, cost: int) -> bool:
        if item is None or not cost:
            return True
        return await self._limiter.test(item, "judge", cost=cost)


def _item(kind: type[RateLimitItem], limit: int | None, name: str) -> RateLimitItem | None:
    return None if limit is None else kind(limit, namespace=f"ragaliq-{name}")


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

    async def turn(self) -> int:
        """Wait for a turn."""
        self._waiting += 1
        try:
            return await self._turns.take(self._guess)
        except asyncio.CancelledError:
            self._given_up = True
            raise
        finally:
            self._waiting -= 1

    def replied(self, expected: int, usage: JudgeUsage) -> None:
        """Note what a call used."""
        self._turns.used(expected, usage)
