"""A bound on the values a metric attribute may take: each value is a time series somebody pays."""

from __future__ import annotations

import threading

from ragaliq.telemetry import names
from ragaliq.telemetry.content import identifier

__all__ = ["BoundedValues"]


class BoundedValues:
    """Lets the first values of each attribute through and says `_OTHER` for the rest.

    Args:
        limit: Values each attribute may take.
    """

    def __init__(self, limit: int = names.MAX_METRIC_VALUES) -> None:
        self._limit = limit
        self._seen: dict[str, set[str]] = {}
        self._lock = threading.Lock()

    def value(self, attribute: str, value: str) -> str:
        """`value`, or what stands for it."""
        value = identifier(value)
        with self._lock:
            seen = self._seen.setdefault(attribute, set())
            if value not in seen:
                if len(seen) >= self._limit:
                    return names.OTHER
                seen.add(value)
        return value
