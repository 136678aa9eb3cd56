"""The waiting runs: bounded in number and in bytes, the most important ones first."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from ragaliq.live.job import Submission

__all__ = ["RunQueue", "WaitingRun"]


class WaitingRun(NamedTuple):
    """A run in the queue.

    Attributes:
        submission: The run.
        size: Bytes its texts take.
        epoch: Which calls of `flush` wait for it; see `Worker`.
    """

    submission: Submission
    size: int
    epoch: int


@dataclass(slots=True)
class _Level:
    """The waiting runs of one priority, oldest first."""

    runs: deque[WaitingRun] = field(default_factory=deque)
    size: int = 0


class RunQueue:
    """Runs in the order in which they are to be judged; not safe for threads by itself.

    Within a priority, first come is first served. A run that finds the queue full takes the place
    of the newest ones of the lowest priority below its own.

    Args:
        max_runs: Runs that may wait.
        max_bytes: Bytes their texts may take together.
    """

    def __init__(self, *, max_runs: int, max_bytes: int) -> None:
        self._max_runs = max_runs
        self._max_bytes = max_bytes
        self._levels: dict[int, _Level] = {}
        self._count = 0
        self.size = 0

    def __len__(self) -> int:
        return self._count

    def put(self, run: WaitingRun) -> list[WaitingRun] | None:
        """Add a run.

        Returns:
            The runs that lost their place to it, or None when there is no room for it.
        """
        priority = run.submission.priority
        displaced: list[WaitingRun] | None = []
        if not self._fits(run, self._count, self.size):
            displaced = self._make_room(run, priority)
            if displaced is None:
                return None
        level = self._levels.get(priority)
        if level is None:
            level = self._levels[priority] = _Level()
        level.runs.append(run)
        level.size += run.size
        self._count += 1
        self.size += run.size
        return displaced

    def take(self) -> WaitingRun | None:
        """Remove and return the run that is next."""
        return self._remove(max(self._levels), newest=False) if self._levels else None

    def clear(self) -> list[WaitingRun]:
        """Remove and return all runs."""
        taken = []
        while (run := self.take()) is not None:
            taken.append(run)
        return taken

    def _make_room(self, run: WaitingRun, priority: int) -> list[WaitingRun] | None:
        below = sorted(level for level in self._levels if level < priority)
        count = self._count - sum(len(self._levels[level].runs) for level in below)
        size = self.size - sum(self._levels[level].size for level in below)
        if not self._fits(run, count, size):
            return None
        displaced = []
        while not self._fits(run, self._count, self.size):
            lowest = next(level for level in below if level in self._levels)
            displaced.append(self._remove(lowest, newest=True))
        return displaced

    def _fits(self, run: WaitingRun, count: int, size: int) -> bool:
        return count < self._max_runs and size + run.size <= self._max_bytes

    def _remove(self, priority: int, *, newest: bool) -> WaitingRun:
        level = self._levels[priority]
        run = level.runs.pop() if newest else level.runs.popleft()
        level.size -= run.size
        self._count -= 1
        self.size -= run.size
        if not level.runs:
            del self._levels[priority]
        return run
