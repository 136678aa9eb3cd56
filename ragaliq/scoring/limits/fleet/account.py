"""Windows that many processes count in: with the storage, without it, and back again."""

from __future__ import annotations

import asyncio
import logging
import os
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any
from uuid import uuid4

from ragaliq.scoring.limits.fleet.outbox import Batch, Outbox
from ragaliq.scoring.limits.fleet.reply import Reply
from ragaliq.scoring.limits.fleet.storage import ANSWERS_WITHIN, SharedStorage, StorageAwayError
from ragaliq.scoring.limits.windows import Window

__all__ = ["FleetAccount"]

logger = logging.getLogger(__name__)

_PAUSE = 1.0
"""Seconds after which a storage that failed is tried again, in the background: no call waits."""
_TOLD_EVERY = 0.1
"""Seconds after which what was spent is told while other processes may not be back."""


class FleetAccount:
    """This process's part in windows that are counted in the shared storage.

    Used on one event loop at a time. Asking may fail; what is told never does: it is gathered, and
    delivered in the background as soon as the storage is there.

    Args:
        address: Of the storage.
        key: Tells these windows from others in the same storage.
        windows: By name, the fleet's limits, each with a local window of the same length.
        local_share: Part of the limits this process keeps to while the storage is away.
        own_reserved: What is set aside here, by the name of the window.
        lock: Held while local windows are changed.
        on_error: Told the class of each failure.
        pause: Seconds between attempts to find a storage that is away.
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
        self.is_away = False
        self.latest: Reply | None = None
        self._address, self._on_error = address, on_error
        self._storage = SharedStorage(address)
        self._key, self._local_share, self._pause = key, local_share, pause
        self._own_reserved, self._lock = own_reserved, lock or nullcontext()
        self._local = {name: window for name, (_, window) in windows.items()}
        self._windows: list[dict[str, Any]] = [
            {"name": name, "limit": limit, "length": round(window.length * 1000)}
            for name, (limit, window) in windows.items()
        ]
        self.outbox = Outbox(list(self._local.values()))
        # By the process and its number, a batch is told from all others.
        prefix = f"ragaliq:{{{key}}}"
        self._keys = [f"{prefix}:seen:{uuid4().hex}", f"{prefix}:expected"]
        for name in windows:
            self._keys += [f"{prefix}:{name}:{what}" for what in ("spent", "reserved", "leases")]
        self._batch: Batch | None = None
        self._number = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._line = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        _LIVING.add(self)

    async def ask(
        self, script: str, windows: list[dict[str, int]], **request: object
    ) -> Reply | None:
        """Run a script; None while the storage is away, which is known at once.

        Args:
            script: Its name.
            windows: For each window, what the script wants to know besides limit and length.
            **request: What else it wants to know.
        """
        self._settle_in()
        if self.is_away:
            self.deliver_soon()
            return None
        try:
            await self._deliver()  # what was spent before counts before this
            return await self._run(script, windows, request)
        except StorageAwayError as error:
            self._lost(error)
            self.deliver_soon()
            return None

    def untold(self, window: int) -> int:
        """What this process spent in one window and the storage has not confirmed; any thread."""
        batch = self._batch
        return self.outbox.total(window) + (batch.total(window) if batch is not None else 0)

    def deliver_soon(self) -> None:
        """Have what was gathered delivered in the background."""
        if self._task is None or self._task.done():
            with suppress(RuntimeError):  # no loop runs here: it goes with the next question
                self._settle_in()
                self._task = asyncio.ensure_future(self._deliver_in_background())

    async def aclose(self) -> None:
        """Deliver what is left, if the storage is there, and close the connections."""
        self._settle_in()
        if self._task is not None:
            self._task.cancel()
        if not self.is_away:
            with suppress(StorageAwayError):
                await self._deliver()
        await self._storage.aclose()

    def leave_to_parent(self) -> None:
        """In a forked child: begin with connections of its own."""
        # Closed here, even by the garbage collector, a connection would be struck from what the
        # parent's event loop waits for: a child shares that list. So it is kept, and not used.
        _OF_THE_PARENT.append((self._storage, self._task))
        self._storage = SharedStorage(self._address)
        self._loop = None

    def _settle_in(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._line, self._task = loop, asyncio.Lock(), None

    async def _deliver_in_background(self) -> None:
        while True:
            if self.is_away:
                await asyncio.sleep(self._pause)
                await self._storage.aclose()  # other connections of the pool are as dead
            try:
                if self.is_away:
                    await self._deliver_until_all_are_back()
                await self._deliver()
            except StorageAwayError as error:
                self._lost(error)
                continue
            if not self.outbox:
                return

    async def _deliver_until_all_are_back(self) -> None:
        # Others find the storage a little later, and it does not know before what they spent: who
        # asked it now might be given the same once more.
        until = None
        while until is None or time.monotonic() < until:
            await self._deliver(tries=True)
            until = until or time.monotonic() + 2 * self._pause + ANSWERS_WITHIN
            await asyncio.sleep(min(_TOLD_EVERY, self._pause))
        self._found()

    async def _deliver(self, *, tries: bool = False) -> None:
        async with self._line:
            if self.is_away and not tries:
                raise StorageAwayError("away")  # found out while this one waited in line
            if self._batch is None:
                if not (self.outbox or tries):
                    return
                self._batch, self._number = self.outbox.take(), self._number + 1
            # Sent again it is the same batch under the same number, which counts once.
            request = self._batch.request(time.monotonic())
            await self._run("settle", [], {"number": self._number, **request})
            self._batch = None

    async def _run(
        self, script: str, windows: list[dict[str, int]], request: Mapping[str, Any]
    ) -> Reply:
        more = windows or [{} for _ in self._windows]
        described = [{**a, **b} for a, b in zip(self._windows, more, strict=True)]
        try:
            raw = await self._storage.run(script, self._keys, {"windows": described, **request})
        except StorageAwayError as error:
            self._on_error(str(error))
            raise
        self.latest = reply = Reply.of(raw, at=time.monotonic())
        return reply

    def _lost(self, error: StorageAwayError) -> None:
        if not self.is_away:
            with self._lock:
                self._begin_alone()
            self.is_away = True
            logger.warning(
                "the storage of the limits %s is away (%s): this process keeps to its local share "
                "of %g until it is back",
                self._key,
                error,
                self._local_share,
            )

    def _begin_alone(self) -> None:
        if self.latest is None:
            return  # all that is known is what was spent here, which the local windows have
        for number, (name, window) in enumerate(self._local.items()):
            own = self._own_reserved(name)
            self.latest.leave(number, window, share=self._local_share, own_reserved=own)
        for untold in (self._batch, self.outbox):
            if untold is not None:
                untold.count_in(list(self._local.values()))

    def _found(self) -> None:
        self.is_away = False
        logger.warning("the storage of the limits %s is back", self._key)


_LIVING: weakref.WeakSet[FleetAccount] = weakref.WeakSet()
_OF_THE_PARENT: list[object] = []


def _after_fork() -> None:
    for account in list(_LIVING):
        account.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
