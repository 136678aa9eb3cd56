"""Keeping several handlers of one monitor from counting the same run once each."""

from __future__ import annotations

from collections import OrderedDict
from weakref import WeakKeyDictionary

from ragaliq import Monitor

__all__ = ["Claims", "claims_of"]

_RUNS = 10_000


class Claims:
    """Which of a monitor's handlers each run belongs to: the first that heard of it.

    A chain may be given a handler with names of keys while the process as a whole is attached with
    the same monitor. LangChain tells the chain's own handlers first. Two handlers are told of one
    start right after each other, so that of runs that never end only the latest are remembered.
    """

    def __init__(self) -> None:
        # Each of its methods is one step of the interpreter's: threads need no lock.
        self._by_run: OrderedDict[int, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_run)

    def take(self, run: int, follower: object) -> bool:
        """Whether the run that has just started is this follower's to report."""
        by_run = self._by_run
        if by_run.setdefault(run, id(follower)) != id(follower):
            return False
        if len(by_run) > _RUNS:
            by_run.popitem(last=False)
        return True

    def release(self, run: int) -> None:
        """The run is over: another one may have the same id."""
        self._by_run.pop(run, None)


_CLAIMS: WeakKeyDictionary[Monitor, Claims] = WeakKeyDictionary()


def claims_of(monitor: Monitor) -> Claims:
    """What all handlers of this monitor share."""
    return _CLAIMS.setdefault(monitor, Claims())
