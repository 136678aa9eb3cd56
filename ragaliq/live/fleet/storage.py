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

from ragaliq.errors import ConfigurationError, RagaliqError

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
    folder = files("ragaliq.live.fleet") / "scripts"
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

    def open(self, owner: str) -> RedisStorage:
        """A client; nothing is connected yet.

        Raises:
            ConfigurationError: The address is not one of a Redis server, or the client library is
                missing.
        """
        # Loaded on first use: the library takes longer to load than all of ragaliq.
        scheme = self._address.partition("://")[0] if "://" in self._address else ""
        try:
            from limits.aio.storage import RedisStorage
            from limits.errors import ConfigurationError as UnusableStorageError
            from limits.storage import storage_from_string

            storage = storage_from_string(
                f"async+{self._address}",
                implementation="redispy",
                socket_timeout=self._timeout,
                socket_connect_timeout=self._timeout,
            )
        except ImportError:
            raise ConfigurationError(
                f"{owner}: storage {scheme}://... needs a client library: "
                "pip install 'ragaliq[redis]'"
            ) from None
        except (UnusableStorageError, ValueError, TypeError) as error:
            raise _unusable(owner, scheme, type(error).__name__) from None
        if not isinstance(storage, RedisStorage):
            raise _unusable(owner, scheme, "it is not Redis")
        return storage

    async def run(self, script: str, keys: Sequence[str], request: Mapping[str, Any]) -> list[Any]:
        """Run a script of this package, as a whole and alone.

        Raises:
            StorageAwayError: It did not answer in time, or with an error. The script may have run.
        """
        storage = self._own()
        try:
            async with asyncio.timeout(self._timeout):
                run = self._scripts.get(script)
                if run is None:
                    connection: Any = storage.bridge.get_connection()  # type: ignore[attr-defined]
                    run = self._scripts[script] = connection.register_script(_source(script))
                reply: list[Any] = await run(keys=list(keys), args=[dumps(request)])
                return reply
        except _failures(storage) as error:
            raise StorageAwayError(type(error).__name__) from None

    async def aclose(self) -> None:
        """Close the connections."""
        storage, self._storage, self._owner = self._storage, None, None
        self._scripts = {}
        if storage is not None:
            connection: Any = storage.bridge.get_connection()  # type: ignore[attr-defined]
            with suppress(Exception):  # what is being closed need not work
                async with asyncio.timeout(self._timeout):
                    await connection.aclose()

    def _own(self) -> RedisStorage:
        # Connections of the process this one was forked from, or of a loop that is gone, are left
        # to whoever they belong to.
        owner = os.getpid(), asyncio.get_running_loop()
        if self._storage is None or self._owner != owner:
            self._storage, self._owner, self._scripts = self.open("storage"), owner, {}
        return self._storage


def _failures(storage: RedisStorage) -> tuple[type[Exception], ...]:
    known = storage.base_exceptions
    return (OSError, *(known if isinstance(known, tuple) else (known,)))


def _unusable(owner: str, scheme: str, reason: str) -> ConfigurationError:
    # The rest of the address may hold a password.
    return ConfigurationError(
        f"{owner}: storage {scheme or '(without ://)'}://... cannot be used ({reason}); "
        "use memory:// for this process alone, or redis://host:6379/0"
    )
