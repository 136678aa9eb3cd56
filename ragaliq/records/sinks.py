"""Sinks: stores and products that receive records besides OpenTelemetry.

Each sink has a bounded queue and its own thread, which writes, waits and retries: a slow sink
delays neither requests, nor evaluations, nor other sinks.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from importlib import import_module
from typing import Protocol, runtime_checkable

from opentelemetry.context import attach, set_value

from ragaliq._private import suppress_instrumentation_key
from ragaliq.core.concurrency import is_being_cancelled, spread
from ragaliq.core.results import Evaluation
from ragaliq.core.suppression import suppress
from ragaliq.core.sync import LoopThread, wait_for
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import ConfigurationError
from ragaliq.records.record import EvaluationRecord, SinkError, evaluation_record
from ragaliq.telemetry.content import ContentPolicy

logger = logging.getLogger(__name__)

_SETTLE_WITHIN = 0.25  # least seconds for a sink's final step
_ENDED = ("written", "passed_over", "failed", "dropped")

ErrorHook = Callable[[str, str], object]
"""Called with the sink's name and the kind of each failed attempt."""


@runtime_checkable
class Sink(Protocol):
    """Receiver of records; any class with these methods will do.

    `write` is called on a thread that serves this sink alone, never twice at the same time, and
    again for records it did not deliver: writing the same record twice must leave one.
    """

    @property
    def name(self) -> str:
        """Name of the sink in counts and logs."""
        ...

    async def write(self, records: Sequence[EvaluationRecord]) -> None:
        """Store the records.

        Raises:
            SinkError: Some or all were not stored; says whether a retry can help. Any other
                exception is retried.
        """
        ...

    async def aclose(self) -> None:
        """Close connections; the sink may be used again afterwards."""
        ...


@runtime_checkable
class Remembering(Protocol):
    """A sink that can look up its records: a job delivered again is then not evaluated again."""

    async def holds(self, evaluation_id: str) -> bool:
        """Check whether a record with this id is stored."""
        ...


@runtime_checkable
class Choosing(Protocol):
    """A sink that skips some records, such as those of runs without a span."""

    def passes_over(self, record: EvaluationRecord) -> str:
        """Reason to skip a record, and the remedy; empty if the sink takes it."""
        ...


@runtime_checkable
class Settling(Protocol):
    """A sink with a final step once nothing is left to write: the process may end now."""

    async def settle(self) -> None:
        """Finish what was written; more may be written later."""
        ...


@dataclass(frozen=True, kw_only=True)
class SinkLimits:
    """Queue size, time limit and retries of a sink.

    Attributes:
        max_queue: Most queued records; further ones are dropped and counted.
        max_characters: Most characters of their texts; further records are dropped and counted.
        max_batch: Records given to one `write`.
        timeout: Most seconds of one `write`.
        attempts: Attempts for each record.
        backoff: Seconds before the second attempt; doubled for each further one.
        max_backoff: Most seconds between two attempts, even if the receiver asks for more.
    """

    max_queue: int = 1000
    max_characters: int = 32_000_000
    max_batch: int = 100
    timeout: float = 10.0
    attempts: int = 5
    backoff: float = 0.5
    max_backoff: float = 30.0


@dataclass(frozen=True, kw_only=True)
class SinkStats:
    """Counts of one sink.

    `records == written + passed_over + failed + dropped + pending` always holds.

    Attributes:
        records: Records addressed to the sink.
        written: Records it stored.
        passed_over: Records it skips, such as those of runs without a span.
        failed: Records given up after the last attempt, or refused for good.
        dropped: Records that found the queue full, or were left over at the end.
        pending: Records queued or being written.
        errors: Failed attempts by kind.
    """

    records: int = 0
    written: int = 0
    passed_over: int = 0
    failed: int = 0
    dropped: int = 0
    pending: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)


SinkSpec = str | Sink
"""A sink, or the name or address of one."""


class SinkSet:
    """Passes records to sinks, each on its own thread, which starts with the first record.

    Args:
        sinks: The sinks.
        content: Whether texts may be kept.
        limits: Queue size, time limit and retries of each sink.
        on_error: Called for each failed attempt with the sink's name and the kind of failure.
        worker_of: Returns the worker of a sink that is shared with other monitors.

    Attributes:
        workers: The worker of each sink.

    Raises:
        ConfigurationError: A spec names no sink, or the same object is given twice.
    """

    def __init__(
        self,
        sinks: Iterable[SinkSpec],
        *,
        content: ContentPolicy | None = None,
        limits: SinkLimits | None = None,
        on_error: ErrorHook | None = None,
        worker_of: Callable[[SinkSpec], SinkWorker] | None = None,
    ) -> None:
        self._content = content or ContentPolicy()
        given = [sinks] if isinstance(sinks, str) else sinks
        self.workers: list[SinkWorker] = []
        for spec in given:
            worker = (
                worker_of(spec) if worker_of else SinkWorker(resolve_sink(spec), limits, on_error)
            )
            if any(worker.sink is other.sink for other in self.workers):
                raise ConfigurationError(f"sinks: the sink {worker.sink.name} is given twice")
            self.workers.append(worker)
        names = Counter[str]()
        self._names = []
        for worker in self.workers:
            names[worker.sink.name] += 1
            same = names[worker.sink.name]
            self._names.append(f"{worker.sink.name}-{same}" if same > 1 else worker.sink.name)

    def record(self, evaluation: Evaluation) -> list[Future[str]]:
        """Queue an evaluation for every sink; never blocks on a sink and never raises.

        Returns:
            A future for each sink: `written`, `passed_over`, `failed` or `dropped`.
        """
        if not self.workers:
            return []
        try:
            record = evaluation_record(evaluation, content=self._content_of(evaluation.case))
        except Exception as error:  # noqa: BLE001 - the evaluation itself is fine
            # The error's message may quote content.
            logger.debug("a result could not be recorded: %s", type(error).__name__)
            why = SinkError("a result could not be recorded", kind="unrecordable")
            return [worker.refuse("failed", why) for worker in self.workers]
        return [worker.put(record) for worker in self.workers]

    def _content_of(self, case: RAGTestCase) -> ContentPolicy:
        fetched = case.sources.has_fetched_texts
        return self._content.without_chunks() if fetched else self._content

    async def again(self, earlier: EvaluationRecord) -> None:
        """Queue a results file's record for each sink that may lack it."""
        content = self._content if earlier.case is None else self._content_of(earlier.case)
        record = earlier.for_sinks(content)
        for worker in self.workers:
            if not await _holds(worker.sink, record.evaluation_id):
                worker.put(record)

    async def holds(self, evaluation_id: str) -> bool:
        """Ask the sinks that can look up records whether one has it; never raises."""
        for worker in self.workers:
            if await _holds(worker.sink, evaluation_id):
                return True
        return False

    def flush(self, timeout: float) -> bool:
        """Wait until everything is stored; False if `timeout` seconds were not enough."""
        return self._each(SinkWorker.flush, timeout)

    def close(self, timeout: float) -> bool:
        """Store what is pending within `timeout` seconds, then drop and count what is left."""
        return self._each(SinkWorker.close, timeout)

    def _each(self, method: Callable[[SinkWorker, float], bool], timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        done = [method(worker, max(0.0, deadline - time.monotonic())) for worker in self.workers]
        return all(done)  # a failed one does not keep the others from their turn

    def stats(self) -> dict[str, SinkStats]:
        """Counts by sink."""
        named = zip(self._names, self.workers, strict=True)
        return {name: worker.stats() for name, worker in named}


async def _holds(sink: Sink, evaluation_id: str) -> bool:
    try:
        return isinstance(sink, Remembering) and await sink.holds(evaluation_id)
    except Exception as error:  # noqa: BLE001 - then it is not known to be there
        logger.debug("a sink could not be asked: %s", type(error).__name__)
        return False


# Imported only when used.
_SERVERS = {
    "phoenix": ("ragaliq.records.phoenix", "PhoenixSink"),
    "langfuse": ("ragaliq.records.langfuse", "LangfuseSink"),
    "mlflow": ("ragaliq.records.mlflow", "MLflowSink"),
    "langsmith": ("ragaliq.records.langsmith", "LangSmithSink"),
}


def resolve_sink(spec: object) -> Sink:
    """Return the sink that a spec names, or is."""
    if isinstance(spec, str) and spec.startswith("sqlite:"):
        # Imported only when used: `import ragaliq` does not need sqlite3.
        from ragaliq.records.store import SQLiteStore

        return SQLiteStore(spec)
    if isinstance(spec, str):
        address, separator, place = spec.partition("://")
        product, _, scheme = address.partition("+")
        if product not in _SERVERS:
            raise ConfigurationError(
                "sinks: a sink that is named by a string has the form 'sqlite:///path', or is one "
                f"of {', '.join(_SERVERS)}, perhaps with an address: 'phoenix://localhost:6006', "
                "'phoenix+https://host'"
            )
        module, kind = _SERVERS[product]
        made: Sink = getattr(import_module(module), kind)(
            f"{scheme or 'http'}://{place}" if separator else None
        )
        return made
    if isinstance(spec, type) or not isinstance(spec, Sink):
        what = spec.__name__ if isinstance(spec, type) else type(spec).__name__
        raise ConfigurationError(
            f"sinks: {what} is not a sink; give 'sqlite:///path', or an object with name, "
            "write(records) and aclose()"
        )
    return spec


@dataclass(order=True, slots=True)
class _QueuedRecord:
    """Record in the queue of a `SinkWorker`, ordered by the time of its next attempt.

    Attributes:
        due: Time of the next attempt, monotonic.
        number: Order of arrival, for equal times.
        record: The record.
        size: Characters of its texts.
        attempts: Failed attempts so far.
        outcome: Set to `written`, `failed` or `dropped` after the last attempt.
    """

    due: float
    number: int
    record: EvaluationRecord = field(compare=False)
    size: int = field(compare=False)
    attempts: int = field(default=0, compare=False)
    outcome: Future[str] = field(default_factory=Future, compare=False)

    def conclude(self, outcome: str) -> None:
        """Set the outcome for callers that wait; only the first call counts."""
        with contextlib.suppress(InvalidStateError):
            self.outcome.set_result(outcome)


def _done(outcome: str) -> Future[str]:
    """Make a future that has its outcome already."""
    future: Future[str] = Future()
    future.set_result(outcome)
    return future


class SinkWorker:
    """Writes records to one sink on its own thread, so that a slow sink delays nothing else."""

    def __init__(
        self, sink: Sink, limits: SinkLimits | None = None, on_error: ErrorHook | None = None
    ) -> None:
        self.sink, self.name = sink, sink.name
        self._limits, self._on_error = limits or SinkLimits(), on_error
        self._choosing = sink if isinstance(sink, Choosing) else None
        self._thread = LoopThread(f"ragaliq-sink-{sink.name}")
        self._changed = threading.Condition()
        self._waiting: list[
            _QueuedRecord
        ] = []  # a heap: first what is due first, then what came first
        self._wake = asyncio.Event()
        self._draining: asyncio.Task[None] | None = None
        self._counts: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._held = self._unsettled = 0
        self._closed = False

    def put(self, record: EvaluationRecord) -> Future[str]:
        """Queue a record; never blocks, never raises. Records that cannot be queued are counted.

        Returns:
            A future of its outcome: `written`, `passed_over`, `failed` or `dropped`.
        """
        if why := self._passes_over(record):
            return self.refuse("passed_over", SinkError(why, kind="passed_over"))
        limits, size, failure = self._limits, record.size, None
        with self._changed:
            is_full = self._pending() >= limits.max_queue
            is_full |= self._held + size > limits.max_characters
            self._counts["records"] += 1
            item = _QueuedRecord(time.monotonic(), self._counts["records"], record, size)
            try:
                if not (self._closed or is_full):
                    self._thread.loop().call_soon_threadsafe(self._wake_up)
                    heapq.heappush(self._waiting, item)
                    self._held += size
                    return item.outcome
            except RuntimeError:  # the interpreter ends
                failure = SinkError("no thread can be started any more", kind="no_thread")
            self._counts["dropped"] += 1
        if failure is not None:
            self._report(failure)
        return _done("dropped")

    def _passes_over(self, record: EvaluationRecord) -> str:
        try:
            return self._choosing.passes_over(record) if self._choosing is not None else ""
        except Exception as error:  # noqa: BLE001 - a sink of the user's own may raise anything
            logger.debug("sink %s could not choose: %s", self.name, type(error).__name__)
            return ""

    def refuse(self, outcome: str, why: SinkError) -> Future[str]:
        """Count a record under this outcome without queueing it."""
        with self._changed:
            self._counts["records"] += 1
            self._counts[outcome] += 1
        self._report(why)
        return _done(outcome)

    def flush(self, timeout: float) -> bool:
        """Wait until nothing is pending; False if `timeout` seconds were not enough."""
        deadline = time.monotonic() + timeout
        if not self._wait(timeout):
            return False
        with self._changed:
            unsettled, self._unsettled = self._unsettled, 0
        # Servers end by a signal after the last flush: a close may never follow.
        if unsettled and isinstance(self.sink, Settling):
            try:
                settling = asyncio.run_coroutine_threadsafe(self.sink.settle(), self._thread.loop())
                settling.result(max(_SETTLE_WITHIN, deadline - time.monotonic()))
            except Exception as error:  # noqa: BLE001 - it is stored, only not in its last place
                logger.debug("sink %s did not settle: %s", self.name, type(error).__name__)
        return True

    def close(self, timeout: float) -> bool:
        """Refuse further records, wait, then drop what is left and close the sink."""
        with self._changed:
            self._closed = True
        finished = self._wait(timeout)
        with self._changed:
            left, self._waiting = self._waiting, []
            # The batch in progress may still arrive; it was not confirmed.
            self._counts["dropped"] += self._pending()
            self._held = 0
            self._changed.notify_all()
        for item in left:
            item.conclude("dropped")
        self._thread.stop(1.0 if finished else 0.25, self._end)
        return finished

    def stats(self) -> SinkStats:
        """Current counts."""
        with self._changed:
            counts = {name: self._counts[name] for name in ("records", *_ENDED)}
            return SinkStats(**counts, pending=self._pending(), errors=dict(self._errors))

    def _wait(self, timeout: float) -> bool:
        if self._thread.is_current:
            return False
        with self._changed:
            return wait_for(self._changed, lambda: self._pending() == 0, timeout)

    def _pending(self) -> int:
        return self._counts["records"] - sum(self._counts[name] for name in _ENDED)

    # --- on the sink's own thread -------------------------------------------------------------

    def _wake_up(self) -> None:
        """Let the writing task look at the queue again; start one if none runs."""
        self._wake.set()
        if self._draining is None or self._draining.done():
            self._draining = asyncio.ensure_future(self._drain())

    async def _end(self) -> None:
        if self._draining is not None:
            self._draining.cancel()
            await asyncio.gather(self._draining, return_exceptions=True)
        await self.sink.aclose()

    async def _drain(self) -> None:
        """Write until the queue is empty: an idle task would cause a warning when collected."""
        # The application's instrumentation must not trace the sink's requests.
        attach(set_value(suppress_instrumentation_key(), value=True))
        with suppress():
            while True:
                self._wake.clear()
                batch, idle = self._next_batch()
                if batch:
                    await self._write(batch)
                    continue
                if idle is None:
                    return
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(idle):
                        await self._wake.wait()

    def _next_batch(self) -> tuple[list[_QueuedRecord], float | None]:
        """Next batch that is due, or the seconds until one is."""
        with self._changed:
            now, batch = time.monotonic(), list[_QueuedRecord]()
            while self._waiting and len(batch) < self._limits.max_batch:
                if (due := self._waiting[0].due) > now:
                    return batch, due - now
                batch.append(heapq.heappop(self._waiting))
            return batch, None

    async def _write(self, batch: Sequence[_QueuedRecord]) -> None:
        try:
            async with asyncio.timeout(self._limits.timeout):
                await self.sink.write([item.record for item in batch])
        except SinkError as error:
            await self._failed(batch, error)
        except BaseException as error:
            if is_being_cancelled():
                raise
            # A user's sink may raise anything, and the message may quote content.
            unknown = SinkError("the sink raised it", kind=type(error).__name__)
            await self._failed(batch, unknown)
        else:
            self._settle(batch, "written")

    async def _failed(self, batch: Sequence[_QueuedRecord], how: SinkError) -> None:
        self._report(how)
        limits, left = self._limits, list(batch)
        if how.undelivered is not None:
            ids = {record.evaluation_id for record in how.undelivered}
            left = [item for item in batch if item.record.evaluation_id in ids]
            self._settle([item for item in batch if item not in left], "written")
        for item in left:
            item.attempts += 1
        again = [] if how.permanent else [e for e in left if e.attempts < limits.attempts]
        self._settle([item for item in left if item not in again], "failed")
        if not again:
            return
        doubled = limits.backoff * 2.0 ** (again[0].attempts - 1)
        delay = min(max(spread(doubled), how.retry_after or 0.0), limits.max_backoff)
        with self._changed:
            for item in again:
                item.due = time.monotonic() + delay
                heapq.heappush(self._waiting, item)
        if len(left) == len(batch):
            # Nothing arrived: the receiver is failing, and further records can wait as well.
            await asyncio.sleep(delay)

    def _settle(self, queued: Sequence[_QueuedRecord], outcome: str) -> None:
        with self._changed:
            if self._pending() >= len(queued):  # else counted as dropped by `close`
                self._counts[outcome] += len(queued)
                self._unsettled += len(queued)
                self._held -= sum(item.size for item in queued)
            self._changed.notify_all()
        for item in queued:
            item.conclude(outcome)

    def _report(self, error: SinkError) -> None:
        """Count a failure, log the first one of its kind, and call `on_error`."""
        with self._changed:
            self._errors[error.kind] += 1
            is_first = self._errors[error.kind] == 1
        if is_first:
            logger.warning(
                "sink %s: %s (%s); further ones are counted, not logged",
                self.name,
                error,
                error.kind,
            )
        if self._on_error is not None:
            try:
                self._on_error(self.name, error.kind)
            except Exception as problem:  # noqa: BLE001 - counting must not end the worker
                logger.debug("counting a sink's error raised %s", type(problem).__name__)
