"""Runs and queues of every monitor, read when metrics are collected.

They are read, not counted along: a run may end on the request path, or in the garbage collector
while this very thread holds one of the SDK's locks. And what is read from the monitors' own counts
cannot differ from them.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from typing import Protocol

from opentelemetry import metrics

from ragaliq.telemetry import names
from ragaliq.telemetry.instruments import meter, observe_count, observe_size

__all__ = ["RunReadings", "run_readings"]


class _Snapshot(Protocol):
    @property
    def outcomes(self) -> Mapping[str, int]: ...


class Counts(Protocol):
    """Counts of runs by outcome, which only grow."""

    def snapshot(self) -> _Snapshot:
        """The counts now."""
        ...


class Queue(Protocol):
    """Where runs wait."""

    @property
    def size(self) -> int:
        """Runs waiting."""
        ...


class RunReadings:
    """The sums over all monitors that report to one meter provider.

    An instrument is made once a provider: the SDK ignores the callbacks of a second one.

    Args:
        provider: The meter provider; the process's own when None.
    """

    def __init__(self, provider: metrics.MeterProvider | None) -> None:
        self._start_afresh()
        own = meter(provider)
        observe_count(own, names.METRIC_RUNS, self._read_outcomes)
        observe_size(own, names.METRIC_QUEUE_SIZE, self._read_sizes)

    def watch(self, queue: Queue, counts: Counts) -> None:
        """Report a monitor's queue for as long as it lives, and its counts for good."""
        if self._pid != os.getpid():
            self._start_afresh()
        with self._lock:
            self._keep_ended()  # here too, for applications that never collect metrics
            self._counts[id(counts)] = counts
            self._queues.add(queue)
        # The collector runs the callback at any moment, on any thread: an append needs no lock.
        weakref.finalize(queue, self._ended.append, id(counts)).atexit = False

    def _start_afresh(self) -> None:
        # In a forked child the counts are the parent's, which may have held the lock at the fork.
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._counts: dict[int, Counts] = {}
        self._queues: weakref.WeakSet[Queue] = weakref.WeakSet()
        self._ended: deque[int] = deque()
        self._kept: Counter[str] = Counter()

    def _read_outcomes(self, _: metrics.CallbackOptions) -> Iterator[metrics.Observation]:
        if self._pid != os.getpid():
            self._start_afresh()
        with self._lock:
            self._keep_ended()
            # From zero on: a count that begins with its first event shows no increase by it, and
            # an alert on the first dropped runs would never fire.
            total = Counter(dict.fromkeys(names.RUN_OUTCOMES, 0))
            total.update(self._kept)
            for counts in list(self._counts.values()):
                total.update(counts.snapshot().outcomes)
        for outcome, runs in total.items():
            yield metrics.Observation(runs, {names.RUN_OUTCOME: outcome})

    def _keep_ended(self) -> None:
        # A count must not shrink because its monitor is gone.
        while self._ended:
            self._kept.update(self._counts.pop(self._ended.popleft()).snapshot().outcomes)

    def _read_sizes(self, _: metrics.CallbackOptions) -> Iterator[metrics.Observation]:
        if self._pid != os.getpid():
            self._start_afresh()
        with self._lock:
            queues = list(self._queues)
        yield metrics.Observation(sum(queue.size for queue in queues))


_LOCK = threading.Lock()
_OF_PROCESS: list[RunReadings] = []
_OF_PROVIDER: weakref.WeakKeyDictionary[metrics.MeterProvider, RunReadings] = (
    weakref.WeakKeyDictionary()
)


def run_readings(provider: metrics.MeterProvider | None) -> RunReadings:
    """The readings of a meter provider, one for all its monitors."""
    with _LOCK:
        # The process's own provider may be set later; until then the API hands out a stand-in.
        if provider is None or provider is metrics.get_meter_provider():
            if not _OF_PROCESS:
                _OF_PROCESS.append(RunReadings(None))
            return _OF_PROCESS[0]
        readings = _OF_PROVIDER.get(provider)
        if readings is None:
            readings = _OF_PROVIDER[provider] = RunReadings(provider)
        return readings
