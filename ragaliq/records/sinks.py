"""Sinks: where records go besides OpenTelemetry, and how they get there.

Each sink has a bounded queue and a thread of its own that writes, waits and retries: a slow one
delays neither requests, nor judging, nor other sinks.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from opentelemetry.context import attach, set_value

from ragaliq._private import suppress_instrumentation_key
from ragaliq.core.concurrency import is_being_cancelled, spread
from ragaliq.core.results import Evaluation
from ragaliq.core.suppression import suppress
from ragaliq.core.sync import LoopThread
from ragaliq.errors import ConfigurationError, SinkError
from ragaliq.records.record import EvaluationRecord, evaluation_record
from ragaliq.telemetry.content import ContentPolicy

__all__ = [
    "ErrorHook",
    "Sink",
    "SinkLane",
    "SinkLimits",
    "SinkSet",
    "SinkSpec",
    "SinkStats",
    "in_turn",
]

logger = logging.getLogger(__name__)

_SETTLING = 0.25  # seconds for it at least

ErrorHook = Callable[[str, str], object]
"""Called with the sink's name and the kind of each failed attempt."""


@runtime_checkable
class Sink(Protocol):
    """A place where records go. One method does the work; any class that has it will do.

    `write` is called on a thread that serves this sink alone, never twice at the same time, and
    again for records it did not deliver: writing the same record twice must leave one.
    """

    @property
    def name(self) -> str:
        """Names the sink in counts and logs."""
        ...

    async def write(self, records: Sequence[EvaluationRecord]) -> None:
        """Store the records.

        Raises:
            SinkError: Some or all were not stored, and whether trying again can help. Any other
                exception counts as one that may pass.
        """
        ...

    async def aclose(self) -> None:
        """Let go of connections; the sink may be used again afterwards."""
        ...


@runtime_checkable
class Remembering(Protocol):
    """A sink that can tell what it has: a job that comes again is then not judged again."""

    async def holds(self, evaluation_id: str) -> bool:
        """Whether a record with this id is stored."""
        ...


@runtime_checkable
class Settling(Protocol):
    """A sink with something to do when nothing is left to be written: the process may end now."""

    async def settle(self) -> None:
        """Bring what was written to its last place; more may be written later."""
        ...


@dataclass(frozen=True, kw_only=True)
class SinkLimits:
    """How long and how often a sink is tried.

    Attributes:
        max_queue: Records that may wait; further ones are dropped and counted.
        max_characters: Characters their texts may have; further records are dropped and counted.
        max_batch: Records given to one `write`.
        timeout: Seconds one `write` may take.
        attempts: Times a record is tried.
        backoff: Seconds before the second attempt; doubled for each further one.
        max_backoff: Most seconds between two attempts, whatever the receiver asks for.
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
    """Counts of one sink: `records == written + failed + dropped + pending` always holds.

    Attributes:
        records: Records meant for the sink.
        written: Records it stored.
        failed: Records given up after the last attempt, or refused for good.
        dropped: Records that found the queue full, or were left over at the end.
        pending: Records that wait or are being written.
        errors: Failed attempts by kind.
    """

    records: int = 0
    written: int = 0
    failed: int = 0
    dropped: int = 0
    pending: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)


# --- all sinks of a monitor or a run --------------------------------------------------------------


class SinkSet:
    """Hands records to sinks, each on a thread of its own that starts with the first record.

    Args:
        sinks: Where records go.
        content: Whether texts may be kept.
        limits: How long and how often each is tried.
        on_error: Called for each failed attempt with the sink's name and the kind of failure.

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

    def record(self, evaluation: Evaluation) -> list[Future[str]]:
        """Have an evaluation stored; never blocks on a sink and never raises.

        Returns:
            One for each sink, to wait for: will be `written`, `failed` or `dropped`.
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
        """In a forked child: start with empty queues; the parent stores what waits there."""
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


SinkSpec = str | Sink
"""What may be given as a sink."""


def resolve_sinks(specs: Iterable[SinkSpec]) -> tuple[Sink, ...]:
    """The sinks in order; one address stands for itself alone.

    Raises:
        ConfigurationError: A spec names no sink, or the same object is given twice.
    """
    if isinstance(specs, str):
        specs = [specs]
    sinks: list[Sink] = []
    for spec in specs:
        sink = _resolve(spec)
        if any(sink is other for other in sinks):
            raise ConfigurationError(f"sinks: the sink {sink.name} is given twice")
        sinks.append(sink)
    return tuple(sinks)


def _resolve(spec: object) -> Sink:
    if isinstance(spec, str) and not spec.startswith("sqlite:"):
        raise ConfigurationError(
            "sinks: a sink that is named by a string has the form 'sqlite:///path'"
        )
    if isinstance(spec, str):
        # Loaded for those who use it: sqlite3 is not needed by `import ragaliq`.
        from ragaliq.records.store import SQLiteStore

        return SQLiteStore(spec)
    if isinstance(spec, type) or not isinstance(spec, Sink):
        what = spec.__name__ if isinstance(spec, type) else type(spec).__name__
        raise ConfigurationError(
            f"sinks: {what} is not a sink; give 'sqlite:///path', or an object with name, "
            "write(records) and aclose()"
        )
    return spec


# --- the way to one sink --------------------------------------------------------------------------


@dataclass(order=True, slots=True)
class _Entry:
    due: float
    number: int
    record: EvaluationRecord = field(compare=False)
    size: int = field(compare=False)
    attempts: int = field(default=0, compare=False)
    outcome: Future[str] = field(default_factory=Future, compare=False)

    def conclude(self, outcome: str) -> None:
        """Set what became of it for those who wait; only the first call counts."""
        with contextlib.suppress(InvalidStateError):
            self.outcome.set_result(outcome)


class SinkLane:
    """Feeds one sink from a thread of its own, so that a slow sink delays nobody.

    Args:
        sink: Where records go.
        name: Names it in counts and logs.
        limits: How long and how often it is tried.
        on_error: Called for each failed attempt.
    """

    def __init__(
        self, sink: Sink, *, name: str, limits: SinkLimits, on_error: ErrorHook | None = None
    ) -> None:
        self.sink, self.name = sink, name
        self._limits, self._on_error = limits, on_error
        self._thread = LoopThread(f"ragaliq-sink-{name}")
        self._changed = threading.Condition()
        self._waiting: deque[_Entry] = deque()
        self._delayed: list[_Entry] = []
        self._wake: asyncio.Event | None = None
        self._lane: asyncio.Task[None] | None = None
        self._counts: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._held = self._unsettled = 0
        self._closed = False

    def put(self, record: EvaluationRecord) -> Future[str]:
        """Queue a record; never blocks, never raises. What cannot be taken is counted.

        Returns:
            Will be what it is counted as: `written`, `failed` or `dropped`.
        """
        entry = _Entry(0.0, 0, record, record.size)
        if not self._take(entry):
            entry.conclude("dropped")
        return entry.outcome

    def _take(self, entry: _Entry) -> bool:
        with self._changed:
            self._counts["records"] += 1
            if self._closed or self._is_full(entry):
                self._counts["dropped"] += 1
                return False
            try:
                self._thread.loop().call_soon_threadsafe(self._roused)
            except RuntimeError:  # no thread can be started: the interpreter ends
                self._counts["dropped"] += 1
                return False
            entry.number = self._counts["records"]
            self._waiting.append(entry)
            self._held += entry.size
        return True

    def _is_full(self, entry: _Entry) -> bool:
        # The entry itself is pending already.
        too_many = self._pending() > self._limits.max_queue
        return too_many or self._held + entry.size > self._limits.max_characters

    def refuse(self, kind: str) -> None:
        """Count a result of which no record could be made."""
        with self._changed:
            self._counts["records"] += 1
            self._counts["failed"] += 1
        self._tell(SinkError("a result could not be recorded", kind=kind))

    def flush(self, timeout: float) -> bool:
        """Wait until nothing is pending; False if `timeout` seconds were not enough."""
        deadline = time.monotonic() + timeout
        finished = self._wait(timeout)
        if finished:
            # Servers end by a signal after the last flush: no close may ever follow.
            self._let_settle(max(_SETTLING, deadline - time.monotonic()))
        return finished

    def _wait(self, timeout: float) -> bool:
        if threading.get_ident() == self._thread.ident:
            return False
        with self._changed:
            return self._changed.wait_for(lambda: self._pending() == 0, timeout)

    def _let_settle(self, timeout: float) -> None:
        with self._changed:
            unsettled, self._unsettled = self._unsettled, 0
        if not unsettled or not isinstance(self.sink, Settling):
            return
        try:
            loop = self._thread.loop()
            asyncio.run_coroutine_threadsafe(self.sink.settle(), loop).result(timeout)
        except Exception as error:  # noqa: BLE001 - everything is stored, only not in its last place
            logger.debug("sink %s could not be settled: %s", self.name, type(error).__name__)

    def close(self, timeout: float) -> bool:
        """Refuse further records, wait, then drop what is left and let go of the sink."""
        with self._changed:
            self._closed = True
        finished = self._wait(timeout)
        with self._changed:
            left = [*self._waiting, *self._delayed]
            self._waiting.clear()
            self._delayed.clear()
            # What is being written just now may arrive all the same; it was not confirmed.
            self._counts["dropped"] += self._pending()
            self._held = 0
            self._changed.notify_all()
        for entry in left:
            entry.conclude("dropped")
        self._thread.stop(self._end, 1.0 if finished else 0.25)
        return finished

    def stats(self) -> SinkStats:
        """The counts now."""
        with self._changed:
            return SinkStats(
                records=self._counts["records"],
                written=self._counts["written"],
                failed=self._counts["failed"],
                dropped=self._counts["dropped"],
                pending=self._pending(),
                errors=dict(self._errors),
            )

    def _pending(self) -> int:
        counts = self._counts
        return counts["records"] - counts["written"] - counts["failed"] - counts["dropped"]

    # --- on the sink's own thread -------------------------------------------------------------

    def _roused(self) -> None:
        if self._wake is None:
            self._wake = asyncio.Event()
            self._lane = asyncio.ensure_future(self._drain())
        self._wake.set()

    async def _end(self) -> None:
        if self._lane is not None:
            self._lane.cancel()
            await asyncio.gather(self._lane, return_exceptions=True)
        await self.sink.aclose()

    async def _drain(self) -> None:
        assert self._wake is not None  # noqa: S101 - set by the one caller
        # What the application has instrumented must not take this for a part of itself.
        attach(set_value(suppress_instrumentation_key(), value=True))
        with suppress():
            while True:
                self._wake.clear()
                batch, idle = self._next_batch()
                if batch:
                    await self._write(batch)
                else:
                    await _wait(self._wake, idle)

    def _next_batch(self) -> tuple[list[_Entry], float | None]:
        """What is due, or for how long nothing will be."""
        with self._changed:
            now = time.monotonic()
            batch: list[_Entry] = []
            while self._delayed and self._delayed[0].due <= now and self._has_room(batch):
                batch.append(heapq.heappop(self._delayed))
            while self._waiting and self._has_room(batch):
                batch.append(self._waiting.popleft())
            return batch, self._delayed[0].due - now if self._delayed else None

    def _has_room(self, batch: Sequence[_Entry]) -> bool:
        return len(batch) < self._limits.max_batch

    async def _write(self, batch: Sequence[_Entry]) -> None:
        try:
            async with asyncio.timeout(self._limits.timeout):
                await self.sink.write([entry.record for entry in batch])
        except SinkError as error:
            await self._failed(batch, error)
        except BaseException as error:
            if is_being_cancelled():
                raise
            # A sink of the user's own may raise anything, with whatever in its message.
            unknown = SinkError("the sink raised it", kind=type(error).__name__)
            await self._failed(batch, unknown)
        else:
            self._settle(batch, "written")

    async def _failed(self, batch: Sequence[_Entry], how: SinkError) -> None:
        self._tell(how)
        left = batch
        if how.undelivered is not None:
            ids = {record.evaluation_id for record in how.undelivered}
            left = [entry for entry in batch if entry.record.evaluation_id in ids]
            self._settle([entry for entry in batch if entry not in left], "written")
        again = [entry for entry in left if self._deserves_another(entry, how)]
        self._settle([entry for entry in left if entry not in again], "failed")
        if not again:
            return
        delay = self._delay(again[0].attempts, how.retry_after)
        with self._changed:
            for entry in again:
                entry.due = time.monotonic() + delay
                heapq.heappush(self._delayed, entry)
        if len(left) == len(batch):
            # Nothing arrived: the receiver is in trouble, and further records can wait as well.
            await asyncio.sleep(delay)

    def _deserves_another(self, entry: _Entry, how: SinkError) -> bool:
        entry.attempts += 1
        return not how.permanent and entry.attempts < self._limits.attempts

    def _delay(self, attempts: int, asked: float | None) -> float:
        doubled = self._limits.backoff * 2.0 ** (attempts - 1)
        return min(max(spread(doubled), asked or 0.0), self._limits.max_backoff)

    def _settle(self, entries: Sequence[_Entry], outcome: str) -> None:
        with self._changed:
            if self._pending() >= len(entries):  # else counted as dropped by `close`
                self._counts[outcome] += len(entries)
                self._unsettled += len(entries)
                self._held -= sum(entry.size for entry in entries)
            self._changed.notify_all()
        for entry in entries:
            entry.conclude(outcome)

    def _tell(self, error: SinkError) -> None:
        with self._changed:
            first = error.kind not in self._errors
            self._errors[error.kind] += 1
        if first:
            logger.warning(
                "sink %s: %s (%s); further ones are counted, not logged",
                self.name,
                error,
                error.kind,
            )
        if self._on_error is not None:
            try:
                self._on_error(self.name, error.kind)
            except Exception as problem:  # noqa: BLE001 - counting must not end the lane
                logger.debug("counting a sink's error raised %s", type(problem).__name__)


async def _wait(wake: asyncio.Event, timeout: float | None) -> None:  # noqa: ASYNC109 - as wait_for
    try:
        async with asyncio.timeout(timeout):
            await wake.wait()
    except TimeoutError:
        return
