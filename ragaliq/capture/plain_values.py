"""Values of the application as their base classes hold them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from ragaliq.core.passages import Passage

_KNOWN = frozenset({str, dict, list, tuple, set, frozenset, int, float, bool, type(None), Passage})
_READS: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,
    dict: lambda held: dict(dict.items(held)),
    list: list.copy,
    tuple: lambda held: tuple.__getitem__(held, slice(None)),
    set: lambda held: set().union(held),
    frozenset: lambda held: set().union(held),
}


def plain(value: Any) -> Any:
    """A text or container of a class of the application's as one of the base class.

    Its own methods may be slow, fail or never end, and the request waits for them.
    """
    kind = type(value)
    if kind in _KNOWN:
        return value
    # By `type`, as `isinstance` asks the object for its class.
    for base, read in _READS.items():
        if issubclass(kind, base):
            return read(value)
    return value


def named_id(value: Any) -> str | None:
    """Id of a conversation as text: one of a text, a number or a UUID."""
    return str(plain(value)) if issubclass(type(value), str | int | UUID) else None
