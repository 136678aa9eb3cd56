"""The address of a storage that processes share, and a client for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from ragaliq.errors import ConfigurationError

if TYPE_CHECKING:
    from limits.aio.storage import RedisStorage

__all__ = ["client_for", "connections_of"]

_SCHEME = re.compile(r"[a-z][a-z+]{0,30}(?=://)", re.ASCII | re.IGNORECASE)
_DATABASE = re.compile(r"rediss?://[^/?]*(/[0-9]*)?([?].*)?", re.ASCII)


def client_for(owner: str, address: str, *, timeout: float) -> RedisStorage:
    """A client; nothing is connected yet.

    Args:
        owner: Whose storage it is, for messages.
        address: Such as `redis://host:6379/0`.
        timeout: Seconds within which each command has to be answered.

    Raises:
        ConfigurationError: The address is not one of a Redis server, or the client library is
            missing. The message shows nothing of the address but its kind.
    """
    if not isinstance(address, str):
        raise ConfigurationError(
            f"{owner}: storage must be an address, such as redis://host:6379/0, "
            f"got {type(address).__name__}"
        )
    known = _SCHEME.match(address)
    shown = f"{known[0]}://..." if known else "(not of the form kind://...)"
    if not shown.startswith("redis"):
        raise _unusable(owner, shown, "it is not Redis")
    if known and known[0] in ("redis", "rediss") and not _DATABASE.fullmatch(address):
        # The client would go to database 0 without a word.
        raise _unusable(owner, shown, "what follows the host is not the number of a database")
    try:
        # Loaded on first use: the library takes longer to load than all of ragaliq.
        import redis  # noqa: F401 - where it is missing, limits speaks of a wrong address
        from limits.storage import storage_from_string

        storage = cast(
            "RedisStorage",
            storage_from_string(
                f"async+{address}",
                implementation="redispy",
                socket_timeout=timeout,
                socket_connect_timeout=timeout,
            ),
        )
        _try_options(storage)
    except ImportError:
        raise ConfigurationError(
            f"{owner}: storage {shown} needs a client library: pip install 'ragaliq[redis]'"
        ) from None
    except Exception as error:  # noqa: BLE001 - each part of an address is refused in another way
        # Its message may quote the address, which may hold a password.
        raise _unusable(owner, shown, type(error).__name__) from None
    return storage


def connections_of(storage: RedisStorage) -> list[Any]:
    """All that is to be closed: the client's connections, and those to Sentinels."""
    bridge: Any = storage.bridge
    sentinels: list[Any] = getattr(getattr(bridge, "sentinel", None), "sentinels", [])
    return [bridge.get_connection(), *sentinels]


def _try_options(storage: RedisStorage) -> None:
    # Those after the question mark are looked at when the first connection is made: too late.
    for client in connections_of(storage):
        pool = getattr(client, "connection_pool", None)
        if pool is not None:
            pool.connection_class(**pool.connection_kwargs)


def _unusable(owner: str, shown: str, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"{owner}: storage {shown} cannot be used ({reason}); use memory:// for this process "
        "alone, or an address with a host and a port, such as redis://host:6379/0"
    )
