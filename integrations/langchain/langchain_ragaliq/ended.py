"""Runs that are over or left out, so that what still runs below them is not taken for a new one."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

__all__ = ["EndedRuns"]

_RUNS = 16_384


class EndedRuns:
    """A bounded memory of runs whose children are nobody's business; under its owner's lock.

    It remembers the latest `_RUNS` of them at least and about twice as many at most. Every root
    inside a traced function asks, so asking must not take longer the more there is. Most processes
    never ask: until the first question runs are only kept in line, which costs a request less than
    putting each of them into a set.
    """

    def __init__(self) -> None:
        self._unread: deque[Collection[int]] | None = deque()
        self._unread_runs = 0
        self._latest: set[int] = set()
        self._before: set[int] = set()

    def __contains__(self, run: int | None) -> bool:
        if self._unread is not None:
            self._read()
        return run in self._latest or run in self._before

    def __len__(self) -> int:
        return self._unread_runs + len(self._latest) + len(self._before)

    def add_tree(self, runs: Collection[int]) -> None:
        """Remember a root with everything below it; `runs` is kept and must not change."""
        unread = self._unread
        if unread is not None:
            unread.append(runs)
            self._unread_runs += len(runs)
            while self._unread_runs > _RUNS and self._unread_runs - len(unread[0]) >= _RUNS:
                self._unread_runs -= len(unread.popleft())
            return
        self._latest.update(runs)
        if len(self._latest) >= _RUNS:
            self._latest, self._before = set(), self._latest

    def add(self, run: int) -> None:
        """Remember a single run."""
        self.add_tree((run,))

    def _read(self) -> None:
        # First: the garbage collector may end a run meanwhile, and it must not be added in vain.
        unread, self._unread, self._unread_runs = self._unread, None, 0
        self._latest.update(*(unread or ()))
