"""The storage that processes share: a Redis server, or one that speaks its language."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from json import dumps
from typing import TYPE_CHECKING, Any, Literal

from ragaliq.errors import RagaliqError
from ragaliq.scoring.limits.fleet.address import client_for, connections_of

if TYPE_CHECKING:
    from limits.aio.storage import RedisStorage

__all__ = ["ANSWERS_WITHIN", "SharedStorage", "StorageAwayError", "StorageState"]

StorageState = Literal["local", "shared", "away"]
"""`local`: limits hold for this process. `shared`: for the fleet. `away`: for the fleet, but its
storage cannot be reached, and this process keeps to its share."""

ANSWERS_WITHIN = 1.0
"""Seconds. A call of the judge takes longer; a server that does not answer must not be one more
thing that holds all of them up."""


class StorageAwayError(RagaliqError):
    """The storage did not do what it was asked, as far as is known."""


@cache
def _source(script: str) -> str:
    folder = files("ragaliq.scoring.limits.fleet") / "scripts"
    return "\n".join((folder / f"{name}.lua").read_text("utf-8") for name in ("windows", script))


class SharedStorage:
    """Runs our scripts on the server; the client belongs to one process and one event loop.

    Of the `limits` library this uses the storages, which know the addresses of single servers,
    Sentinels and clusters. Its strategies count one window at a time, and none can take back what
    turned out not to be used: the sliding window counter lets nearly twice the limit through in
    some minutes, the moving window keeps an entry for each token and goes by the clients' clocks.

    Args:
        address: Such as `redis://host:6379/0`.
        timeout: Seconds within which it has to answer.
    """

    def __init__(self, address: str, *, timeout: float = ANSWERS_WITHIN) -> None:
        self._address, self._timeout = address, timeout
        self._owner: tuple[int, asyncio.AbstractEventLoop] | None = None
        self._storage: RedisStorage | None = None
        self._scripts: dict[str, Any] = {}

    async def run(self, script: str, keys: Sequence[str], request: Mapping[str, Any]) -> list[Any]:
        """Run a script of this package, as a whole and alone.

        Raises:
            StorageAwayError: It did not answer in time, or with an error. The script may have run.
        """
        cancellations = _cancellations()
        try:
            storage = self._own()
            async with asyncio.timeout(self._timeout):
                run = self._scripts.get(script)
                if run is None:
                    connection: Any = storage.bridge.get_connection()  # type: ignore[attr-defined]
                    run = self._scripts[script] = connection.register_script(_source(script))
                reply: list[Any] = await run(keys=list(keys), args=[dumps(request)])
        # Not all that the client raises has a class of its own in common: a cluster that cannot be
        # found is no RedisError. Whatever it is, it must not cost a run.
        except Exception as error:  # noqa: BLE001
            raise StorageAwayError(type(error).__name__) from None
        finally:
            # The client waits with `asyncio.wait_for`, which before Python 3.12 forgets that it was
            # cancelled if that happens at a certain moment: the call would wait past its deadline.
            if _cancellations() > cancellations:
                raise asyncio.CancelledError
        return reply

    async def aclose(self) -> None:
        """Close the connections."""
        storage, self._storage, self._owner = self._storage, None, None
        self._scripts = {}
        if storage is not None:
            for connection in connections_of(storage):
                with suppress(Exception):  # what is being closed need not work
                    async with asyncio.timeout(self._timeout):
                        await connection.aclose()

    def _own(self) -> RedisStorage:
        # Connections of the process this one was forked from, or of a loop that is gone, are left
        # to whoever they belong to.
        owner = os.getpid(), asyncio.get_running_loop()
        if self._storage is None or self._owner != owner:
            self._storage = client_for("storage", self._address, timeout=self._timeout)
            self._owner, self._scripts = owner, {}
        return self._storage


def _cancellations() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0
