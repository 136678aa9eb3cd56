"""Errors that say where a wrong value came from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ragaliq.errors import ConfigurationError

__all__ = ["naming"]


@contextmanager
def naming(variable: str | None) -> Iterator[None]:
    """Say in a `ConfigurationError` which variable the wrong value came from, if from any."""
    try:
        yield
    except ConfigurationError as error:
        if variable is None or variable in str(error):
            raise
        raise ConfigurationError(f"{variable}: {error}") from None
