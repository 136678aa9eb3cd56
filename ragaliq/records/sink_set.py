"""All sinks of a monitor or a run: each is fed for itself, and none is ever felt."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future

from ragaliq.core.results import Evaluation
from ragaliq.records.base import Remembering, Sink, SinkLimits, SinkStats
from ragaliq.records.lane import ErrorHook, SinkLane
from ragaliq.records.record import evaluation_record
from ragaliq.records.resolve import SinkSpec, resolve_sinks
from ragaliq.telemetry.content import ContentPolicy

__all__ = ["SinkSet", "in_turn"]

logger = logging.getLogger(__name__)


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
        self._sinks = tuple(_named(resolve_sinks(sinks)))
        self._lanes = self._new_lanes()

    def _new_lanes(self) -> tuple[SinkLane, ...]:
        return tuple(
            SinkLane(sink, name=name, limits=self._limits, on_error=self._on_error)
            for name, sink in self._sinks
        )

    def record(self, evaluation: Evaluation) -> None:
        """Have an evaluation stored; never blocks on a sink and never raises."""
        self.store(evaluation)

    def store(self, evaluation: Evaluation) -> list[Future[str]]:
        """`record`, for callers that wait for what becomes of it.

        Returns:
            One for each sink: will be `written`, `failed` or `dropped`.
        """
        if not self._lanes:
            return []
        try:
            record = evaluation_record(evaluation, content=self._content)
        except Exception as error:  # noqa: BLE001 - the evaluation itself is fine
            for lane in self._lanes:
                lane.refuse("unrecordable")
            unrecordable: Future[str] = Future()
            unrecordable.set_result("failed")
            # The message may quote what could not be recorded.
            logger.debug("a result could not be recorded: %s", type(error).__name__)
            return [unrecordable]
        return [lane.put(record) for lane in self._lanes]

    async def holds(self, evaluation_id: str) -> bool:
        """Whether a sink that can tell says that it has the record already; never raises."""
        for _, sink in self._sinks:
            if isinstance(sink, Remembering):
                try:
                    if await sink.holds(evaluation_id):
                        return True
                except Exception as error:  # noqa: BLE001 - then it is not known to be there
                    logger.debug("a sink could not be asked: %s", type(error).__name__)
        return False

    def flush(self, timeout: float) -> bool:
        """Wait until everything is stored; False if `timeout` seconds were not enough."""
        return in_turn(timeout, *(lane.flush for lane in self._lanes))

    def close(self, timeout: float) -> bool:
        """Store what is pending within `timeout` seconds, then drop and count what is left."""
        return in_turn(timeout, *(lane.close for lane in self._lanes))

    def stats(self) -> dict[str, SinkStats]:
        """Counts by sink."""
        return {lane.name: lane.stats() for lane in self._lanes}

    def restart_after_fork(self) -> None:
        """In a forked child: start anew; what waits in the parent is stored by the parent."""
        self._lanes = self._new_lanes()


def in_turn(timeout: float, *steps: Callable[[float], bool], at_least: float = 0.0) -> bool:
    """Give each step what the ones before it left of `timeout` seconds; whether all succeeded.

    Args:
        timeout: Seconds for all of them.
        steps: Called with the seconds they may take.
        at_least: Seconds that each step but the first gets in any case.
    """
    deadline = time.monotonic() + timeout
    done = [step(timeout) for step in steps[:1]]
    # Every one gets its chance, also after one that failed.
    done += [step(max(at_least, deadline - time.monotonic())) for step in steps[1:]]
    return all(done)


def _named(sinks: Iterable[Sink]) -> Iterator[tuple[str, Sink]]:
    seen: Counter[str] = Counter()
    for sink in sinks:
        seen[sink.name] += 1
        yield (f"{sink.name}-{seen[sink.name]}" if seen[sink.name] > 1 else sink.name), sink
