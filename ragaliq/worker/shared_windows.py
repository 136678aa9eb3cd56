"""Windows shared by processes: counters in Redis, and a local share of them without it.

Each request carries the process's cumulative usage of each window (replacing its last report) and
the amount to take; a Lua script takes it from every window or from none. So no request counts
twice, an amount whose reply was lost is free again with the next request, and a server that lost
its data gets it back. A window counts in slots of a sixtieth of its length and expires with the
last of them, which frees what a dead process had taken.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from json import dumps
from typing import Any, NamedTuple
from uuid import uuid4

from ragaliq.core.proxies import untrusted_certificate
from ragaliq.scoring.limits.shared import Taken
from ragaliq.scoring.limits.windows import Window

logger = logging.getLogger(__name__)

_ANSWERS_WITHIN = 1.0
"""Seconds. A call of the judge takes longer; a server that does not answer must not be one more
thing that holds all of them up."""
_DELIVER_EVERY = 0.1
_SOON = 0.02

_SCRIPT = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local request = cjson.decode(ARGV[1])

local function slot_at(at, length)
  local step = length / 60
  return (math.floor(at / step) + 1) * step
end

local function count(key, slot, amount, length)
  redis.call('HINCRBY', key, slot, amount)
  redis.call('PEXPIRE', key, 2 * length)
end

local totals, fits = {}, true
for i, length in ipairs(request.lengths) do
  local all, own = KEYS[2 * i - 1], KEYS[2 * i]
  local changes, stored = {}, redis.call('HGETALL', own)
  for n = 1, #stored, 2 do changes[tonumber(stored[n])] = -stored[n + 1] end
  for _, entry in ipairs(request.used[i]) do
    local slot = slot_at(now - entry[1], length)
    changes[slot] = (changes[slot] or 0) + entry[2]
  end
  for slot, amount in pairs(changes) do
    if slot + length <= now then
      redis.call('HDEL', own, slot)
    elseif amount ~= 0 then
      count(own, slot, amount, length)
      count(all, slot, amount, length)
    end
  end

  local total = 0
  stored = redis.call('HGETALL', all)
  for n = 1, #stored, 2 do
    if stored[n] + length <= now then
      redis.call('HDEL', all, stored[n])
    else
      total = total + stored[n + 1]
    end
  end
  totals[i] = total
  local amount, limit = request.amounts[i] or 0, request.limits[i]
  -- One run always fits into an unused window, however dear.
  if total > 0 and (total >= limit or total + amount > limit) then fits = false end
end
if fits then
  for i, amount in ipairs(request.amounts) do
    local length = request.lengths[i]
    local slot = slot_at(now, length)
    count(KEYS[2 * i - 1], slot, amount, length)
    count(KEYS[2 * i], slot, amount, length)
  end
end
return { fits, totals }
"""


def client(address: str) -> Any:
    """Client of a storage; nothing is connected yet."""
    from redis.asyncio import Redis  # loaded on first use: it takes longer than all of ragaliq

    return Redis.from_url(
        address, socket_timeout=_ANSWERS_WITHIN, socket_connect_timeout=_ANSWERS_WITHIN
    )


class _LastReply(NamedTuple):
    """Usage of the windows as of the storage's last reply.

    If the storage becomes unavailable, this process computes from it how much it may still use.

    Attributes:
        at: Time of the reply, by the local clock.
        totals: Usage of each window by all processes.
        own: The part of it that this process had reported.
    """

    at: float
    totals: list[int]
    own: list[int]


class RedisWindows:
    """Client of windows in Redis that many processes share; used on one event loop.

    Usage is counted here and delivered with the next request, or in the background once the storage
    is reachable.

    Args:
        address: The storage.
        key: Separates these windows from others in the same storage.
        windows: By name, the limit of all processes, and the local window that applies while the
            storage is unavailable.
        local_share: Part of each limit that the local window allows.
        on_error: Called with the class of each failure of the storage.
        pause: Seconds between attempts to reach a storage that is unavailable.
        lock: Held while local windows change.

    Attributes:
        is_unavailable: Whether the storage cannot be reached.
    """

    def __init__(
        self,
        address: str,
        *,
        key: str,
        windows: Mapping[str, tuple[int, Window]],
        local_share: float,
        on_error: Callable[[str], None],
        pause: float,
        lock: AbstractContextManager[object] | None = None,
    ) -> None:
        self.is_unavailable = False
        self._address, self._key, self._share, self._pause = address, key, local_share, pause
        self._lock, self._on_error = lock or nullcontext(), on_error
        self._local = [window for _, window in windows.values()]
        # Usage of this process, independent of the storage.
        self._used_here = [Window(window.limit, window.length) for window in self._local]
        process = uuid4().hex
        names = [f"ragaliq:{{{key}}}:{name}" for name in windows]
        self._keys = [each for name in names for each in (name, f"{name}:{process}")]
        self._always_sent = {
            "limits": [limit for limit, _ in windows.values()],
            "lengths": [round(window.length * 1000) for window in self._local],
        }
        self._changes = self._delivered = 0  # number of changes made here, and delivered
        self._last_reply: _LastReply | None = None
        self._connection: Any = None
        self._line = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    async def take(self, amounts: Sequence[int]) -> Taken | None:
        """Take amounts from every window, or from none; None while the storage is unavailable.

        A window that is used up refuses an amount of 0 as well.
        """
        asking = asyncio.ensure_future(self._ask(amounts))
        try:
            taken = await asyncio.shield(asking)  # the client may not notice that it is cancelled
        except asyncio.CancelledError:
            asking.add_done_callback(partial(self._give_back, amounts))
            raise
        if taken is None:
            self._deliver_soon()
        return taken

    def _give_back(self, amounts: Sequence[int], asked: asyncio.Task[Taken | None]) -> None:
        if not asked.cancelled() and (taken := asked.result()) and taken.fits:
            for number, amount in enumerate(amounts):
                self.change(number, -amount, at=taken.at)
        self._deliver_soon()

    def change(self, window: int, amount: int, *, at: float) -> None:
        """Count a change of what was taken from a window.

        A negative amount is returned to the slot of `at`, by the local clock.
        """
        if amount:
            self._used_here[window].spend(amount, at)
            self._changes += 1
            self._deliver_soon()

    def used(self, window: int) -> int | None:
        """Usage of one window by all processes, as last known; None if unknown. Thread-safe."""
        last = self._last_reply
        if self.is_unavailable or last is None:
            return None
        return max(0, last.totals[window] - last.own[window]) + self._used_here[window].spent

    def _deliver_soon(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._deliver_in_background())

    async def aclose(self) -> None:
        """Deliver unsent changes, if the storage is reachable, and close the connection."""
        if self._task is not None:
            self._task.cancel()
        if self._delivered < self._changes and not self.is_unavailable:
            await self._ask()
        await self._close()
        _CONNECTED.discard(self)

    async def _deliver_in_background(self) -> None:
        while self.is_unavailable or self._delivered < self._changes:
            if not self.is_unavailable:
                await asyncio.sleep(_SOON)  # by then the next call may have delivered them
                if self._delivered < self._changes:
                    await self._ask()
                continue
            await asyncio.sleep(self._pause)
            await self._close()  # other connections of the pool are as dead
            # Other processes reconnect a little later and report their usage only then: a call
            # permitted now might exceed the limit.
            until = time.monotonic() + 2 * self._pause + _ANSWERS_WITHIN
            while await self._ask() is not None:
                if time.monotonic() >= until:
                    self.is_unavailable = False
                    logger.warning("the storage of the limits %s is back", self._key)
                    break
                await asyncio.sleep(min(_DELIVER_EVERY, self._pause))

    async def _ask(self, amounts: Sequence[int] = ()) -> Taken | None:
        # One at a time: a request includes the outcome of the one before.
        async with self._line:
            if amounts and self.is_unavailable:
                return None
            now, changes, own = time.monotonic(), self._changes, self._used_here
            for window in own:
                window.forget(now)
            sent = [window.spent for window in own]
            request = {
                **self._always_sent,
                # By the end of its slot, so that usage expires late rather than early.
                "used": [
                    [(max(0, round((now - ends) * 1000)), amount) for ends, amount in each.slots()]
                    for each in own
                ],
                "amounts": list(amounts),
            }
            try:
                if self._connection is None:
                    _CONNECTED.add(self)
                    self._connection = client(self._address)
                async with asyncio.timeout(_ANSWERS_WITHIN):
                    parameters = len(self._keys), *self._keys, dumps(request)
                    fits, totals = await self._connection.eval(_SCRIPT, *parameters)
            # The client's exceptions have no common base class, and none of them may fail a run.
            except Exception as error:  # noqa: BLE001
                self._lost(error)
                return None
            self._delivered, now = changes, time.monotonic()
            if fits:
                for window, amount in zip(own, amounts, strict=False):
                    window.spend(amount, now)
            self._last_reply = _LastReply(now, totals, sent)
            return Taken(bool(fits), now)

    async def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):  # the connection may be broken already
                async with asyncio.timeout(_ANSWERS_WITHIN):
                    await connection.aclose()

    def _lost(self, error: Exception) -> None:
        self._on_error(type(error).__name__)
        if self.is_unavailable:
            return
        if self._last_reply is not None:  # else the local windows hold all that is known
            with self._lock:
                self._begin_alone(self._last_reply)
        self.is_unavailable = True
        logger.warning(
            "the storage of the limits %s is unavailable (%s): this process keeps to its local "
            "share of %g until it is back",
            self._key,
            untrusted_certificate(error) or type(error).__name__,
            self._share,
        )

    def _begin_alone(self, last: _LastReply) -> None:
        """Set each local window to this process's share of what is left.

        The usage of all processes counts as of now, so that it expires late rather than early.
        """
        now = time.monotonic()
        for number, window in enumerate(self._local):
            limit, total = self._always_sent["limits"][number], last.totals[number]
            # Assume that the other processes have used their shares since the last reply.
            others = (1 - self._share) * limit * (now - last.at) / window.length
            others = min(others, max(0, limit - total))
            # Reservations here count as reserved, not as spent.
            own = max(0, self._used_here[number].spent - last.own[number]) - window.reserved
            total = max(0, total + min(0, own))
            window.clear()
            window.spend(math.ceil(total * self._share) + round(others * self._share), now)
            window.spend(max(0, own), now)


_CONNECTED: set[RedisWindows] = set()
"""Keeps windows with a connection alive until they are closed. If a forked child collected its copy
as garbage, the connection would leave the epoll set that parent and child share, and the parent's
event loop would no longer be woken by it."""
