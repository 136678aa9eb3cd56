"""A bound on the values a metric attribute may take: each value is a time series somebody pays."""

from __future__ import annotations

from ragaliq.telemetry import names
from ragaliq.telemetry.content import identifier

__all__ = ["BoundedValues"]


class BoundedValues:
    """Lets the first values of each attribute through and says `_OTHER` for the rest.

    Without a lock, which a fork could leave held for good: threads that meet here may together let
    a value too many through.

    Args:
        limit: Values each attribute may take.
    """

    def __init__(self, limit: int = names.MAX_METRIC_VALUES) -> None:
        self._limit = limit
        self._seen: dict[str, set[str]] = {}

    def value(self, attribute: str, value: str) -> str:
        """`value`, or what stands for it."""
        value = identifier(value)
        seen = self._seen.setdefault(attribute, set())
        if value not in seen:
            if len(seen) >= self._limit:
                return names.OTHER
            seen.add(value)
        return value
