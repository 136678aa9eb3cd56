"""The way to one sink: a bounded queue, and a thread that writes, waits and tries again."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, attach, set_value

from ragaliq.core.backoff import spread
from ragaliq.core.concurrency import is_being_cancelled
from ragaliq.core.suppression import suppress
from ragaliq.core.sync import LoopThread
from ragaliq.records.base import Settling, Sink, SinkError, SinkLimits, SinkStats
from ragaliq.records.record import EvaluationRecord

__all__ = ["ErrorHook", "SinkLane"]

logger = logging.getLogger(__name__)

_SETTLING = 0.25  # seconds for it at least

ErrorHook = Callable[[str, str], object]
"""Called with the sink's name and the kind of each failed attempt."""


@dataclass(order=True, slots=True)
class _Entry:
    due: float
    number: int
    record: EvaluationRecord = field(compare=False)
    size: int = field(compare=False)
    attempts: int = field(default=0, compare=False)
    outcome: Future[str] = field(default_factory=Future, compare=False)

    def conclude(self, outcome: str) -> None:
        """Tell whoever waits what became of it; only the first call counts."""
        with contextlib.suppress(InvalidStateError):
            self.outcome.set_result(outcome)


class SinkLane:
    """Feeds one sink from a thread of its own, so that a slow sink delays nobody.

    Args:
        sink: Where records go.
        name: Names it in counts and logs.
        limits: How long and how often it is tried.
        on_error: Told of each failed attempt.
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
        attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, value=True))
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
