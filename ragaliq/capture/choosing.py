"""Choice of runs to follow, by name, tag or metadata."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from ragaliq.errors import ConfigurationError

Chosen = str | Mapping[str, Any] | Iterable[str | Mapping[str, Any]]
"""A name or tag (`support-*`), metadata (`{"tenant": "acme"}`), or several of them."""


class RunFilter:
    """Selects the runs that a handler captures.

    Args:
        only: Names, tags or metadata of the runs to follow; of nested ones the outermost is
            followed. None follows every run.
        ignore: Names, tags or metadata of runs that are not followed, nor anything inside them.

    Attributes:
        is_empty: Whether every run is followed.

    Raises:
        ConfigurationError: One of them is neither a text nor a mapping.
    """

    def __init__(self, only: Chosen | None = None, ignore: Chosen | None = None) -> None:
        self._only = None if only is None else _listed("only", only)
        self._ignore = () if ignore is None else _listed("ignore", ignore)
        self.is_empty = only is None and ignore is None

    def chooses(self, name: str, tags: Collection[str], metadata: Mapping[str, Any]) -> bool:
        """Check whether `only` matches a run."""
        return self._only is None or _describes(self._only, name, tags, metadata)

    def ignores(self, name: str, tags: Collection[str], metadata: Mapping[str, Any]) -> bool:
        """Check whether `ignore` matches a run."""
        return _describes(self._ignore, name, tags, metadata)


def _listed(option: str, given: Chosen) -> tuple[str | Mapping[str, Any], ...]:
    several = isinstance(given, Iterable) and not isinstance(given, str | Mapping)
    held: tuple[Any, ...] = tuple(given) if several else (given,)
    wrong = [each for each in held if not (isinstance(each, str | Mapping) and each)]
    if wrong or not held:
        raise ConfigurationError(
            f"{option} takes names, tags such as 'support-*', and metadata such as "
            f"{{'tenant': 'acme'}}, got {given!r}"
        )
    return held


def _describes(
    wanted: Iterable[str | Mapping[str, Any]],
    name: str,
    tags: Collection[str],
    metadata: Mapping[str, Any],
) -> bool:
    for each in wanted:
        if isinstance(each, str):
            if any(fnmatchcase(label, each) for label in (name, *tags)):
                return True
        elif all(key in metadata and metadata[key] == value for key, value in each.items()):
            return True
    return False
