"""Counting what sampling did beside choosing."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Literal

__all__ = ["Count", "SamplingCounts"]

Count = Literal["thinned", "capped", "crowded_out", "rule_errors"]


class SamplingCounts:
    """Thread-safe counters behind `MonitorStats.sampling`."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Start anew, with a lock that nobody holds: for a forked child."""
        self._lock = threading.RLock()  # re-entrant, as in `Tally`
        self._counts: Counter[str] = Counter()

    def add(self, what: Count, number: int = 1) -> int:
        """Count something; returns how often it has happened."""
        with self._lock:
            self._counts[what] += number
            return self._counts[what]

    def snapshot(self) -> dict[str, int]:
        """The counts now."""
        with self._lock:
            return dict(self._counts)
