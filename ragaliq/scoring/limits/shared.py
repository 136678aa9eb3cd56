"""Windows that processes share: counters in Redis, and a share of them without it.

One script takes what a call is expected to use from every window, or from none; what was not used
is given back in the slot it was taken from. Scripts run as a whole and by the server's clock. A
window counts in slots of a sixtieth of its length and expires with the last of them; what a process
that died had taken is free again then, at the latest.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import re
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from json import dumps
from typing import Any, Literal, NamedTuple
from uuid import uuid4

from ragaliq.errors import ConfigurationError, StorageUnavailableError
from ragaliq.scoring.limits.windows import Window

logger = logging.getLogger(__name__)

StorageState = Literal["local", "shared", "unavailable"]
"""`local`: limits hold for this process. `shared`: for all processes. `unavailable`: the storage
cannot be reached, and this process keeps to its share."""

IN_MEMORY = "memory://"
_NAME = re.compile(r"[\w.:-]{1,100}", re.ASCII)
_ADDRESS = re.compile(r"(rediss?://[^/?]*(/[0-9]*)?|unix:///[^?]+)([?].*)?", re.ASCII)

_ANSWERS_WITHIN = 1.0
"""Seconds. A call of the judge takes longer; a server that does not answer must not be one more
thing that holds all of them up."""
_PAUSE = 1.0
_TOLD_EVERY = 0.1
_RATE_OVER = 1.0  # seconds over which the use of others is measured

_SCRIPT = """
local SLOTS, DAY = 60, 86400000
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local request = cjson.decode(ARGV[1])

local function slot_at(at, length)
  local step = length / SLOTS
  return (math.floor(at / step) + 1) * step
end

local function count(i, slot, amount)
  local length, key = request.lengths[i], KEYS[i + 1]
  if slot + length <= now then return end
  if amount < 0 then
    -- Given back elsewhere, it would make room that is still there when the slot is gone.
    amount = math.max(amount, -(tonumber(redis.call('HGET', key, slot)) or 0))
  end
  if amount ~= 0 then
    redis.call('HINCRBY', key, slot, amount)
    redis.call('PEXPIRE', key, 2 * length)
  end
end

-- A server that lost its data is sent again what this process used, before anything is counted.
if request.is_known and redis.call('EXISTS', KEYS[1]) == 0 then return { -1, now, {}, {} } end
redis.call('SET', KEYS[1], redis.call('GET', KEYS[1]) or 0, 'PX', 2 * DAY)

-- What a process used beyond what it took, and gives back; once, however often it arrives.
if request.number > (tonumber(redis.call('GET', KEYS[1])) or 0) then
  redis.call('SET', KEYS[1], request.number, 'PX', 2 * DAY)
  for _, entry in ipairs(request.changes) do
    local i, slot, age, amount = unpack(entry)
    if slot == 0 then slot = slot_at(now - age, request.lengths[i]) end
    count(i, slot, amount)
  end
end

local figures, wait, slots = {}, 0, {}
for i, length in ipairs(request.lengths) do
  local total, counted, latest = 0, {}, slot_at(now, length)
  local stored = redis.call('HGETALL', KEYS[i + 1])
  for n = 1, #stored, 2 do
    local ends, amount = tonumber(stored[n]), tonumber(stored[n + 1])
    if ends + length <= now then
      redis.call('HDEL', KEYS[i + 1], stored[n])
    else
      if ends > latest then  -- the server's clock was set back
        redis.call('HDEL', KEYS[i + 1], stored[n])
        redis.call('HINCRBY', KEYS[i + 1], latest, amount)
        ends = latest
      end
      total = total + amount
      counted[#counted + 1] = { ends, amount }
    end
  end
  figures[i] = { total, counted }
  local need = request.needs[i]
  if need then
    local missing = total + need - request.limits[i]
    -- One run always fits into an unused window, however dear.
    if total > 0 and need > 0 and missing > 0 then
      table.sort(counted, function(a, b) return a[1] < b[1] end)
      local until_room = length
      for _, slot in ipairs(counted) do
        missing = missing - slot[2]
        if missing <= 0 then until_room = math.max(1, slot[1] + length - now) break end
      end
      wait = math.max(wait, until_room)
    end
  end
end
if wait == 0 then
  for i in ipairs(request.needs) do
    slots[i] = slot_at(now, request.lengths[i])
    count(i, slots[i], request.amounts[i])
    figures[i][1] = figures[i][1] + request.amounts[i]
    table.insert(figures[i][2], { slots[i], request.amounts[i] })
  end
end
return { wait, now, figures, slots }
"""


class Taken(NamedTuple):
    """What came of asking for room.

    Attributes:
        wait: Seconds until there may be room; 0 where it was taken.
        slots: For each window the slot in which it was counted.
    """

    wait: float
    slots: tuple[int, ...]


class _View(NamedTuple):
    """What is known of the shared windows.

    Attributes:
        at: When, by the local clock.
        server_now: The same moment by the server's clock, in milliseconds.
        figures: For each window what is used, and the end of each slot with what is used in it.
        others: For each window what other processes have used.
    """

    at: float
    server_now: int
    figures: list[Any]
    others: list[int]


def require_shared(owner: str, *, storage: str, local_share: float, name: str) -> None:
    """Refuse wrong settings of a limit's storage.

    Args:
        owner: Whose settings they are.
        storage: See `Budget`.
        local_share: See there.
        name: See there.

    Raises:
        ConfigurationError: One is wrong, or the client library is missing; no password is shown.
    """
    is_share = isinstance(local_share, int | float) and not isinstance(local_share, bool)
    if not is_share or not 0 < local_share <= 1:
        raise ConfigurationError(
            f"{owner}: local_share must be above 0 and at most 1, got {local_share!r}"
        )
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{owner}: name must be 1 to 100 letters, digits or any of _ . : -, got {name!r}"
        )
    if storage == IN_MEMORY:
        return
    if not isinstance(storage, str) or not _ADDRESS.fullmatch(storage):
        raise ConfigurationError(
            f"{owner}: the storage cannot be used; use memory:// for this process alone, or the "
            "address of a Redis server with a host, a port and the number of a database, such as "
            "redis://host:6379/0"
        )
    try:
        pool = _client(storage).connection_pool
        # What is after the question mark is looked at with the first connection: too late.
        pool.connection_class(**pool.connection_kwargs)
    except ImportError:
        raise ConfigurationError(
            f"{owner}: a storage on Redis needs a client library: pip install 'ragaliq[redis]'"
        ) from None
    except Exception as error:  # noqa: BLE001 - each part of an address is refused in another way
        # Its message may quote the address, which may hold a password.
        raise ConfigurationError(
            f"{owner}: the storage's address cannot be used ({type(error).__name__})"
        ) from None


def _client(address: str) -> Any:
    from redis.asyncio import Redis  # loaded on first use: it takes longer than all of ragaliq

    return Redis.from_url(
        address, socket_timeout=_ANSWERS_WITHIN, socket_connect_timeout=_ANSWERS_WITHIN
    )


class SharedWindows:
    """This process's part in windows that many processes count in; used on one event loop.

    Asking may fail; what is sent never does: it is gathered, and delivered in the background as
    soon as the storage is there.

    Args:
        address: Of the storage.
        key: Tells these windows from others in the same storage.
        windows: By name, the limits of all, each with a local window of the same length.
        local_share: Part of the limits this process keeps to while the storage is unavailable.
        own_reserved: What is taken for runs of this process, by the name of the window.
        lock: Held while local windows are changed.
        on_error: Called with the class of each failure.
        pause: Seconds between attempts to find a storage that is unavailable.
    """

    def __init__(
        self,
        address: str,
        *,
        key: str,
        windows: Mapping[str, tuple[int, Window]],
        local_share: float,
        own_reserved: Callable[[str], int] = lambda _: 0,
        lock: AbstractContextManager[object] | None = None,
        on_error: Callable[[str], None] = lambda _: None,
        pause: float = _PAUSE,
    ) -> None:
        self.is_unavailable = False
        self._address, self._key, self._share, self._pause = address, key, local_share, pause
        self._own_reserved, self._lock, self._on_error = (
            own_reserved,
            lock or nullcontext(),
            on_error,
        )
        self._local = {name: window for name, (_, window) in windows.items()}
        # What this process used itself, whatever becomes of the storage.
        self._used_here = [Window(window.limit, window.length) for _, window in windows.values()]
        self._limits = [limit for limit, _ in windows.values()]
        self._lengths = [round(window.length * 1000) for _, window in windows.values()]
        prefix = f"ragaliq:{{{key}}}"
        # By the process and its number a batch of changes is told from all others.
        self._keys = [f"{prefix}:seen:{uuid4().hex}", *(f"{prefix}:{name}" for name in windows)]
        self._changes: Counter[tuple[int, int, float]] = Counter()  # window, slot, local time
        self._batch: Counter[tuple[int, int, float]] | None = None  # perhaps delivered
        self._is_delivering = False
        self._number = 0
        self._is_known, self._generation = False, 0  # to the storage, and how often it lost us
        self._views: deque[_View] = deque()
        self._owner: tuple[int, asyncio.AbstractEventLoop] | None = None
        self._connection: Any = None
        self._script: Any = None
        self._task: asyncio.Task[None] | None = None
        _LIVING.add(self)

    async def take(self, needs: Sequence[int], amounts: Sequence[int]) -> Taken | None:
        """Take from every window, or from none; None while the storage is unavailable.

        Args:
            needs: What must be free in each window.
            amounts: What is counted then.
        """
        if self.is_unavailable:
            self.deliver_soon()
            return None
        asking = asyncio.ensure_future(self._run(needs, amounts))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            # The caller does not wait any longer: what is taken all the same goes back.
            asking.add_done_callback(lambda done: self._give_back(done, amounts))
            raise
        except StorageUnavailableError as error:
            self._lost(error)
            self.deliver_soon()
            return None

    def _give_back(self, done: asyncio.Task[Taken], amounts: Sequence[int]) -> None:
        if done.cancelled() or done.exception() is not None:
            return
        for number, slot in enumerate(done.result().slots):
            self.change(number, -amounts[number], at=time.monotonic(), slot=slot)
        self.deliver_soon()

    def change(self, window: int, amount: int, *, at: float, slot: int = 0) -> None:
        """Note what was used beyond what was taken; less than nothing gives back.

        Args:
            window: Number of the window, from 0.
            amount: Whole units.
            at: When, by the local clock.
            slot: The slot it was taken in, where the server said so.
        """
        if not amount:
            return
        local = list(self._local.values())[window]
        self._used_here[window].forget(time.monotonic())
        self._used_here[window].spend(amount, at)
        # All of a slot is told as one, with the time of its end: late rather than too early.
        self._changes[window + 1, slot, local.slot(at)] += amount
        if len(self._changes) > 500:
            for entry in [e for e in self._changes if e[2] + local.length * 2 <= at]:
                del self._changes[entry]

    def used(self, window: int) -> int | None:
        """What is used in one window by all, as far as known; None where nothing is. Any thread."""
        latest = self._views[-1] if self._views else None
        if self.is_unavailable or latest is None:
            return None
        changes = [*list(self._changes.items()), *list((self._batch or {}).items())]
        untold = sum(amount for (number, _, _), amount in changes if number == window + 1)
        return int(latest.figures[window][0]) + untold

    def deliver_soon(self) -> None:
        """Have the changes delivered in the background."""
        if self._task is None or self._task.done() or self._task.get_loop() is not _loop():
            with suppress(RuntimeError):  # no loop runs here: they go with the next question
                self._task = asyncio.ensure_future(self._deliver_in_background())

    async def aclose(self) -> None:
        """Deliver what is left, if the storage is there, and close the connection."""
        if self._task is not None and self._task.get_loop() is _loop():
            self._task.cancel()
        if not self.is_unavailable and (self._changes or self._batch):
            with suppress(StorageUnavailableError):
                await self._run((), ())
        await self._close()

    async def _deliver_in_background(self) -> None:
        while True:
            try:
                if self.is_unavailable:
                    await asyncio.sleep(self._pause)
                    await self._close()  # other connections of the pool are as dead
                    await self._run((), ())
                    # Others find the storage a little later, and it does not know before what they
                    # used: a caller that asked now might get the same once more.
                    until = time.monotonic() + 2 * self._pause + _ANSWERS_WITHIN
                    while time.monotonic() < until:
                        await asyncio.sleep(min(_TOLD_EVERY, self._pause))
                        await self._run((), ())
                    self.is_unavailable = False
                    logger.warning("the storage of the limits %s is back", self._key)
                elif self._changes or self._batch:
                    await self._run((), ())
                if not self._changes and not self._batch:
                    return
            except StorageUnavailableError as error:
                self._lost(error)

    async def _run(self, needs: Sequence[int], amounts: Sequence[int]) -> Taken:
        mine = not self._is_delivering
        if mine and self._batch is None and self._changes:
            self._batch, self._changes = self._changes, Counter()
            self._number += 1
        # Sent again it is the same batch under the same number, which counts once.
        batch, generation = self._batch if mine else None, self._generation
        now = time.monotonic()
        request = {
            "is_known": self._is_known,
            "number": self._number if batch else 0,
            "changes": [
                (i, slot, max(0, round((now - at) * 1000)), amount)
                for (i, slot, at), amount in (batch or {}).items()
            ],
            "lengths": self._lengths,
            "limits": self._limits,
            "needs": list(needs),
            "amounts": list(amounts),
        }
        self._is_delivering |= batch is not None
        try:
            async with asyncio.timeout(_ANSWERS_WITHIN):
                reply = await self._script_here()(keys=self._keys, args=[dumps(request)])
        # Not all that the client raises has a class of its own in common. Whatever it is, it must
        # not cost a run.
        except Exception as error:  # noqa: BLE001
            self._on_error(type(error).__name__)
            raise StorageUnavailableError(type(error).__name__) from None
        finally:
            if batch is not None:
                self._is_delivering = False
        wait, server_now, figures, slots = reply
        if wait < 0:
            if generation == self._generation:  # else another call has noticed it
                self._tell_again(now)
            return await self._run(needs, amounts)
        self._is_known = True
        if batch is not None:
            self._batch = None
        if slots:
            for own, amount in zip(self._used_here, amounts, strict=True):
                own.spend(amount, time.monotonic())
        self._note(server_now, figures)
        return Taken(wait / 1000, tuple(slots))

    def _tell_again(self, now: float) -> None:
        """Have all that this process used delivered to a storage that lost it."""
        self._is_known = False
        self._generation += 1
        self._batch, self._changes = None, Counter()
        for number, own in enumerate(self._used_here, 1):
            own.forget(now)
            for ends, amount in own.slots():
                # Late rather than too early, and not in the future.
                self._changes[number, 0, min(ends, now)] += amount

    def _note(self, server_now: int, figures: list[Any]) -> None:
        """Keep what is known now, and what was known about a second ago."""
        now, others = time.monotonic(), []
        for own, (total, _) in zip(self._used_here, figures, strict=True):
            own.forget(now)
            others.append(max(0, total - own.spent))
        self._views.append(_View(now, server_now, figures, others))
        while self._views[0].at < now - _RATE_OVER and len(self._views) > 1:
            self._views.popleft()

    def _unseen(self, number: int, window: Window) -> float:
        """What others have used since this process last heard of them, as they did before."""
        first, last = self._views[0], self._views[-1]
        rate = (1 - self._share) * self._limits[number] / window.length
        if last.at - first.at > _RATE_OVER / 10:
            seen = (last.others[number] - first.others[number]) / (last.at - first.at)
            rate = max(rate, seen)
        return rate * (time.monotonic() - last.at)

    def _script_here(self) -> Any:
        # Connections of the process this one was forked from, or of a loop that is gone, are left
        # to their owner.
        owner = os.getpid(), asyncio.get_running_loop()
        if self._connection is None or self._owner != owner:
            _OF_OTHERS.append(self._connection)
            self._owner, self._connection = owner, _client(self._address)
            self._script = self._connection.register_script(_SCRIPT)
        return self._script

    async def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and self._owner == (os.getpid(), asyncio.get_running_loop()):
            with suppress(Exception):  # what is being closed need not work
                async with asyncio.timeout(_ANSWERS_WITHIN):
                    await connection.aclose()

    def _lost(self, error: StorageUnavailableError) -> None:
        if self.is_unavailable:
            return
        with self._lock:
            self._begin_alone()
        self.is_unavailable = True
        logger.warning(
            "the storage of the limits %s is unavailable (%s): this process keeps to its local "
            "share of %g until it is back",
            self._key,
            error,
            self._share,
        )

    def _begin_alone(self) -> None:
        """Have the local windows begin where those of all were, for this process's share of both.

        So what all processes use from then on is no more than what was left for them.
        """
        if not self._views:
            return  # all that is known is what was used here, which the local windows have
        at, server_now, figures, _ = self._views[-1]
        for number, (name, window) in enumerate(self._local.items()):
            counted = figures[number][1]
            window.clear()
            own = self._own_reserved(name)
            due = counted_so_far = 0.0
            for ends, amount in sorted(counted):
                others = max(0, amount - own)
                own = max(0, own - amount)
                due += others * self._share
                whole = math.ceil(due - counted_so_far)
                counted_so_far += whole
                # By the end of its slot, so that it leaves late rather than too early.
                window.spend(whole, at - max(0.0, (server_now - ends) / 1000))
            unseen = self._unseen(number, window) * self._share
            window.spend(min(round(unseen), max(0, window.limit - window.spent)), time.monotonic())
        windows = list(self._local.values())
        for untold in (self._batch or Counter(), self._changes):
            for (number, _, moment), amount in untold.items():
                windows[number - 1].spend(amount, moment)


def _loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


_LIVING: weakref.WeakSet[SharedWindows] = weakref.WeakSet()
# Closed in a forked child, even by the garbage collector, a connection would be struck from what
# the parent's event loop waits for: a child shares that list.
_OF_OTHERS: list[object] = []


def _after_fork() -> None:
    for shared in list(_LIVING):
        _OF_OTHERS.append((shared._connection, shared._task))
        shared._connection = shared._task = None
        shared._is_delivering = False
        shared._keys[0] = f"{shared._keys[0].rpartition(':')[0]}:{uuid4().hex}"
        shared._number = 0
        shared._is_known = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
