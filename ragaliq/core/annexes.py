"""Way into the annexes: the main house imports their modules by name only, when it needs one."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ragaliq.errors import ConfigurationError


def annex(module: str) -> Any:
    """Import a module of an annex by its name in `ragaliq`, such as `traces.opening`.

    Raises:
        ConfigurationError: The annex is missing. A library that it lacks raises as usual.
    """
    try:
        return import_module(f"ragaliq.{module}")
    except ModuleNotFoundError as error:
        if error.name is None or not f"ragaliq.{module}.".startswith(f"{error.name}."):
            raise
        raise ConfigurationError(
            f"this needs {error.name}, which this installation of ragaliq lacks; reinstall ragaliq"
        ) from None
