"""What is read from a reply that should have been JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

__all__ = ["JsonObject", "JsonValue"]

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | JsonObject | None"


class JsonObject(dict[str, "JsonValue"]):
    """A JSON object that remembers what was wrong with it; the last value of a key counts.

    Attributes:
        complete: False when the object was cut off, or a part of it could not be read.
        disputed: Keys that were given twice, with different values.
    """

    __slots__ = ("complete", "disputed")

    def __init__(self, pairs: Iterable[tuple[str, JsonValue]] = ()) -> None:
        super().__init__()
        self.complete = True
        self.disputed: frozenset[str] = frozenset()
        for key, value in pairs:
            self.put(key, value)

    def put(self, key: str, value: JsonValue) -> None:
        """Set a key, noting when it had another value before."""
        if key in self and not _same(self[key], value):
            self.disputed |= {key}
        self[key] = value


def _same(one: JsonValue, other: JsonValue) -> bool:
    # Nested values may be deeper than a comparison can go; they count as different.
    return (
        not isinstance(one, (list, dict)) and not isinstance(other, (list, dict)) and one == other
    )
