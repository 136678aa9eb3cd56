"""Where a store is: `sqlite:///relative/path`, `sqlite:////absolute/path`, or a path."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from ragaliq._private import working_folder
from ragaliq.errors import ConfigurationError

__all__ = ["Location", "parse_location", "parse_options"]

Location = str | os.PathLike[str]
"""A path, or an address that starts with `sqlite:///`."""

_SCHEME = "sqlite:"
_FORMS = "sqlite:///relative/path or sqlite:////absolute/path"


def parse_location(location: Location) -> Path:
    """The store's absolute path; a change of the working directory later does not move it.

    Raises:
        ConfigurationError: It is no such address.
    """
    if not isinstance(location, str) or "://" not in location:
        path = os.fspath(location)
    else:
        parts = urlsplit(location)
        if parts.scheme != "sqlite" or parts.netloc or not parts.path.startswith("/"):
            # The address may hold a password: not repeated.
            raise ConfigurationError(f"a store's address has the form {_FORMS}")
        path = unquote(parts.path[1:])
    if not path or path == ":memory:" or "\0" in path:
        raise ConfigurationError(f"a store is a file: give {_FORMS}")
    return Path(working_folder(), path)


def parse_options(location: Location, *known: str) -> dict[str, float]:
    """The numbers after `?`, such as `sqlite:///live.db?max_age_days=30`.

    Args:
        location: The address.
        *known: The names of the options there are.

    Raises:
        ConfigurationError: An option has another name, or no number.
    """
    if not isinstance(location, str) or "://" not in location:
        return {}
    options: dict[str, float] = {}
    for name, value in parse_qsl(urlsplit(location).query, keep_blank_values=True):
        if name not in known:
            raise ConfigurationError(f"a store's address knows {', '.join(known)}, not {name!r}")
        try:
            options[name] = float(value)
        except ValueError:
            raise ConfigurationError(f"{name} must be a number, got {value!r}") from None
    return options
