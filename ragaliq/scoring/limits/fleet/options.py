"""The settings that limits have in common which hold for a fleet."""

from __future__ import annotations

import re

from ragaliq.errors import ConfigurationError
from ragaliq.scoring.limits.fleet.address import client_for
from ragaliq.scoring.limits.fleet.storage import ANSWERS_WITHIN

__all__ = ["IN_MEMORY", "require_fleet"]

IN_MEMORY = "memory://"
_NAME = re.compile(r"[\w.:-]{1,100}", re.ASCII)


def require_fleet(owner: str, *, storage: str, local_share: float, name: str) -> None:
    """Refuse wrong settings of a limit's storage.

    Args:
        owner: Whose settings they are.
        storage: See `Budget`.
        local_share: See there.
        name: See there.

    Raises:
        ConfigurationError: One is wrong; no password is shown.
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
    if storage != IN_MEMORY:
        client_for(owner, storage, timeout=ANSWERS_WITHIN)
