"""All sinks of a monitor or a run: each is fed for itself, and none is ever felt."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from ragaliq.core.results import EvaluationResult
from ragaliq.core.run import EvaluatedRun
from ragaliq.core.test_case import RAGTestCase
from ragaliq.sinks.base import Sink, SinkLimits, SinkStats
from ragaliq.sinks.lane import ErrorHook, SinkLane
from ragaliq.sinks.recording import evaluation_record
from ragaliq.sinks.resolve import SinkSpec, resolve_sinks
from ragaliq.telemetry.content import ContentPolicy

__all__ = ["SinkSet"]

logger = logging.getLogger(__name__)

_Step = Callable[[float], bool]


class SinkSet:
    """Hands records to sinks, each on a thread of its own that starts with the first record.

    Args:
        sinks: Where records go.
        content: Whether texts may be kept.
        limits: How long and how often each is tried.
        on_error: Told of each failed attempt: the sink's name and the kind of failure.

    Raises:
        ConfigurationError: A spec names no sink.
    """

    def __init__(
        self,
        sinks: Iterable[SinkSpec],
        *,
        content: ContentPolicy | None = None,
        limits: SinkLimits | None = None,
        on_error: ErrorHook | None = None,
    ) -> None:
        self._content = content or ContentPolicy()
        self._limits = limits or SinkLimits()
        self._on_error = on_error
        self._lanes = tuple(
            SinkLane(sink, name=name, limits=self._limits, on_error=on_error)
            for name, sink in _named(resolve_sinks(sinks))
        )

    def record(
        self,
        case: RAGTestCase,
        results: Mapping[str, EvaluationResult],
        run: EvaluatedRun,
        *,
        lag: float | None = None,
    ) -> None:
        """Have an evaluated run stored; never blocks on a sink and never raises."""
        if not self._lanes:
            return
        try:
            record = evaluation_record(case, results, run, content=self._content, lag=lag)
        except Exception as error:  # noqa: BLE001 - the evaluation itself is fine
            for lane in self._lanes:
                lane.refuse("unrecordable")
            # The message may quote what could not be recorded.
            logger.debug("a result could not be recorded: %s", type(error).__name__)
            return
        for lane in self._lanes:
            lane.put(record)

    def flush(self, timeout: float) -> bool:
        """Wait until everything is stored; False if `timeout` seconds were not enough."""
        return self._before(timeout, [lane.flush for lane in self._lanes])

    def close(self, timeout: float) -> bool:
        """Store what is pending within `timeout` seconds, then drop and count what is left."""
        return self._before(timeout, [lane.close for lane in self._lanes])

    def stats(self) -> dict[str, SinkStats]:
        """Counts by sink."""
        return {lane.name: lane.stats() for lane in self._lanes}

    def after_fork(self) -> SinkSet:
        """The same sinks for a forked child: what waits in the parent is stored by the parent."""
        return SinkSet(
            [lane.sink for lane in self._lanes],
            content=self._content,
            limits=self._limits,
            on_error=self._on_error,
        )

    @staticmethod
    def _before(timeout: float, steps: Iterable[_Step]) -> bool:
        deadline = time.monotonic() + timeout
        # Every sink gets its chance, also after one that failed.
        done = [step(max(0.0, deadline - time.monotonic())) for step in steps]
        return all(done)


def _named(sinks: Iterable[Sink]) -> Iterator[tuple[str, Sink]]:
    seen: Counter[str] = Counter()
    for sink in sinks:
        seen[sink.name] += 1
        yield (f"{sink.name}-{seen[sink.name]}" if seen[sink.name] > 1 else sink.name), sink
