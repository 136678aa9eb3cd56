"""Settings of limits that processes may share; the client of their storage is an annex."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal, NamedTuple, Protocol

from ragaliq.core.annexes import annex
from ragaliq.core.checks import require_limits, require_positive
from ragaliq.errors import ConfigurationError
from ragaliq.scoring.limits.windows import Window

StorageState = Literal["local", "shared", "unavailable"]
"""`local`: limits hold for this process. `shared`: for all processes. `unavailable`: the storage
cannot be reached, and this process keeps to its share."""

_IN_MEMORY = "memory://"
_NAME = re.compile(r"[\w.:-]{1,100}", re.ASCII)
_ADDRESS = re.compile(r"(rediss?://[^/?]*(/[0-9]*)?|unix:///[^?]+)([?].*)?", re.ASCII)


class Taken(NamedTuple):
    """Reply of the storage to `SharedWindows.take`.

    Attributes:
        fits: Whether the amounts fitted, and were taken from every window.
        at: Time of the reply, by the local clock.
    """

    fits: bool
    at: float


class SharedWindows(Protocol):
    """Client of windows in a storage; see `ragaliq.worker.shared_windows`."""

    is_unavailable: bool

    async def take(self, amounts: Sequence[int]) -> Taken | None:
        """Take amounts from every window, or from none; None while the storage is unavailable."""
        ...

    def change(self, window: int, amount: int, *, at: float) -> None:
        """Count a change of what was taken from a window."""
        ...

    def used(self, window: int) -> int | None:
        """Usage of one window by all processes, as last known."""
        ...

    async def aclose(self) -> None:
        """Deliver what is not delivered yet, and close the connection."""
        ...


@dataclass(frozen=True, kw_only=True)
class SharedLimits:
    """Base of the settings of limits that processes may share; see `Budget`.

    Raises:
        ConfigurationError: A limit cannot be counted, none is given, or the storage cannot be
            used. The message shows no password.
    """

    storage: str = field(default=_IN_MEMORY, repr=False)  # it may hold a password
    local_share: float = 0.1
    name: str = "default"

    _setting: ClassVar[str]
    """Name of a monitor's argument for these limits, for messages."""
    _example: ClassVar[str]
    """Limits to give, for the message if there are none."""

    def __post_init__(self) -> None:
        owner, limits = type(self).__name__, self.limits()
        if not limits:
            raise ConfigurationError(f"{owner}: give {self._example}")
        require_limits(self._setting, limits)
        require_positive(owner, local_share=self.local_share)
        if self.local_share > 1:
            raise ConfigurationError(
                f"{owner}: local_share must be at most 1, got {self.local_share!r}"
            )
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise ConfigurationError(
                f"{owner}: name must be 1 to 100 letters, digits or any of _ . : -, "
                f"got {self.name!r}"
            )
        if not self.is_shared:
            return
        client = annex("worker.shared_windows").client
        try:
            if not _ADDRESS.fullmatch(self.storage):
                raise ValueError  # noqa: TRY301 - as what the client raises
            pool = client(self.storage).connection_pool
            # The query of the address is only checked by the first connection: too late.
            pool.connection_class(**pool.connection_kwargs)
        except ImportError:
            raise ConfigurationError(
                f"{owner}: a storage on Redis needs a client library: pip install 'ragaliq[redis]'"
            ) from None
        except Exception:  # noqa: BLE001 - each part of an address is refused in another way
            # The message may quote the address, which may hold a password.
            raise ConfigurationError(
                f"{owner}: the storage cannot be used; use memory:// for this process alone, or "
                "the address of a Redis server with a host, a port and the number of a database, "
                "such as redis://host:6379/0"
            ) from None

    @property
    def is_shared(self) -> bool:
        """True if processes count together."""
        return self.storage != _IN_MEMORY

    def limits(self) -> dict[str, float]:
        """Limits that are set, by name."""
        settings = {each.name for each in fields(SharedLimits)}
        own = ((name, limit) for name, limit in vars(self).items() if name not in settings)
        return {name: limit for name, limit in own if limit is not None}

    def shared_windows(
        self,
        kind: str,
        windows: Mapping[str, tuple[int, Window]],
        *,
        on_error: Callable[[str], None],
        pause: float,
        lock: AbstractContextManager[object] | None = None,
    ) -> SharedWindows | None:
        """Client of the storage; None if this process counts alone.

        Args:
            kind: Separates these windows from those of other limits.
            windows: By name, the limit of all processes, and the local window that applies while
                the storage is unavailable.
            on_error: Called with the class of each failure of the storage.
            pause: Seconds between attempts to reach a storage that is unavailable.
            lock: Held while local windows change.
        """
        if not self.is_shared:
            return None
        found: SharedWindows = annex("worker.shared_windows").RedisWindows(
            self.storage,
            key=f"{kind}:{self.name}",
            windows=windows,
            local_share=self.local_share,
            on_error=on_error,
            pause=pause,
            lock=lock,
        )
        return found

    def here(self, limit: float) -> int:
        """Part of a limit that this process may use without the storage."""
        return max(1, math.floor(limit * self.local_share if self.is_shared else limit))


def storage_state(shared: SharedWindows | None) -> StorageState:
    """Storage of the counts, and whether it is reachable; None for this process alone."""
    if shared is None:
        return "local"
    return "unavailable" if shared.is_unavailable else "shared"
