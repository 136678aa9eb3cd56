"""Runs that are over or left out, so that what still runs below them is not taken for a new one."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection

__all__ = ["EndedRuns"]

_TREES = 1024
_STRAYS = 4096


class EndedRuns:
    """A bounded memory of runs whose children are nobody's business."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # as in the tracker
        self._trees: deque[Collection[int]] = deque(maxlen=_TREES)
        self._strays: deque[int] = deque(maxlen=_STRAYS)

    def __contains__(self, run: int | None) -> bool:
        if run is None:
            return False
        # Rare: only for runs below one that is not followed.
        with self._lock:
            return run in self._strays or any(run in tree for tree in self._trees)

    def add_tree(self, runs: Collection[int]) -> None:
        """Remember a root with everything below it."""
        with self._lock:
            self._trees.append(runs)

    def add(self, run: int) -> None:
        """Remember a single run."""
        with self._lock:
            self._strays.append(run)
