"""Runs that are over or left out, so that what still runs below them is not taken for a new one."""

from __future__ import annotations

import threading
from collections.abc import Iterable

__all__ = ["EndedRuns"]

_RUNS = 16_384


class EndedRuns:
    """A bounded memory of runs whose children are nobody's business.

    It remembers the latest `_RUNS` of them at least and about twice as many at most. Every root
    inside a traced function asks, so asking must not take longer the more there is.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # as in the tracker
        self._latest: set[int] = set()
        self._before: set[int] = set()

    def __contains__(self, run: int | None) -> bool:
        return run in self._latest or run in self._before

    def __len__(self) -> int:
        return len(self._latest) + len(self._before)

    def add_tree(self, runs: Iterable[int]) -> None:
        """Remember a root with everything below it."""
        with self._lock:
            self._latest.update(runs)
            if len(self._latest) >= _RUNS:
                self._latest, self._before = set(), self._latest

    def add(self, run: int) -> None:
        """Remember a single run."""
        self.add_tree((run,))
