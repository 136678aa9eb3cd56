"""Assembly of spans, in any order and several batches, into runs for a monitor."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial

from ragaliq.capture import RunRegistry
from ragaliq.collect.requests import RawSpan
from ragaliq.core.checks import require_positive
from ragaliq.core.log_once import LogOnce
from ragaliq.core.results import Evaluation
from ragaliq.core.run import RunInfo, SpanTarget
from ragaliq.live.monitor import Monitor
from ragaliq.live.run import PendingResult, RunHandle
from ragaliq.traces import (
    AttributeNames,
    SpanRule,
    TextFetcher,
    TracedCase,
    TraceSpan,
    cases_of_trace,
)
from ragaliq.traces.conventions import MARKS, OWN_SCOPE
from ragaliq.traces.files import size_of
from ragaliq.traces.traced_runs import begin_traced, end_traced

logger = logging.getLogger(__name__)

_NO_NAMES = AttributeNames()


class Assembly:
    """Incomplete traces, bounded in number, bytes and age.

    A trace is complete when its first span has ended, no span lacks its parent, and `grace` seconds
    have passed; or when it got no span for `quiet` seconds. Sampled-out traces are not kept; each
    counts once as `sampled_out` if it has language model work.

    Not safe to use from several threads at the same time.

    Args:
        monitor: Samples, scores and counts the runs.
        attribute_names: Attributes in which applications keep what the conventions lack.
        mapping: Mapping of the applications' own spans.
        resolve: Returns the texts of documents without text in the spans.
        grace: Seconds to wait for late spans of a complete trace.
        quiet: Seconds without spans after which an incomplete trace is read.
        max_traces: Most traces; the oldest is evicted first (`evicted`).
        max_spans: Most spans of one trace; a trace with more is evicted (`evicted`).
        max_bytes: Most bytes of all traces; the oldest is evicted first (`evicted`).
        max_age: Seconds after which a trace that still gets spans expires (`expired`).
        on_settled: Called with a trace's id when everything in it has its outcome, on any thread.
        clock: Seconds, monotonic.

    Attributes:
        counts: Spans by what became of them: `kept`, `sampled_out`, `own`, `late`, `rejected`;
            and traces that were `evicted` or `expired`.

    Raises:
        ConfigurationError: A limit is not positive.
    """

    def __init__(
        self,
        monitor: Monitor,
        *,
        attribute_names: AttributeNames = _NO_NAMES,
        mapping: Sequence[SpanRule] = (),
        resolve: TextFetcher | None = None,
        grace: float = 2.0,
        quiet: float = 30.0,
        max_traces: int = 20_000,
        max_spans: int = 5000,
        max_bytes: int = 256 * 2**20,
        max_age: float = 600.0,
        on_settled: Callable[[str], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        require_positive(
            "Assembly", grace=grace, quiet=quiet, max_spans=max_spans, max_bytes=max_bytes
        )
        self.counts: Counter[str] = Counter()
        self._monitor, self._clock = monitor, clock
        self._names, self._mapping, self._resolve = attribute_names, tuple(mapping), resolve
        self._grace, self._quiet = grace, quiet
        self._max_spans, self._max_bytes = max_spans, max_bytes
        self._on_settled = on_settled or (lambda _: None)
        self._is_spooled = on_settled is not None
        self._log_once = LogOnce(logger)
        self._size = 0
        self._traces: RunRegistry[_Trace] = RunRegistry(
            max_runs=max_traces, max_bytes=max_bytes, max_age=max_age, clock=clock
        )

    def __len__(self) -> int:
        """Traces held now."""
        return len(self._traces)

    @property
    def size(self) -> int:
        """Bytes of all that is held, about."""
        return self._size

    def add(self, spans: Iterable[RawSpan | None], *, is_replayed: bool = False) -> set[str]:
        """Add spans; return the traces for which one was kept, and which are still held.

        Args:
            spans: The spans, None for one that cannot be parsed.
            is_replayed: Whether they come from a spool, all at once: a trace that begins with one
                is read only while the monitor's queue is at most half full.
        """
        kept: set[str] = set()
        for raw in spans:
            if raw is None:
                self.counts["rejected"] += 1
            elif raw.trace_id not in self._traces.runs and self._traces.is_ignored(raw.trace_id):
                self.counts["late"] += 1
            elif self._take(raw, is_replayed=is_replayed):
                kept.add(raw.trace_id)
        # A later span may have ended a trace: it is settled already, and never will be again.
        return kept & self._traces.runs.keys()

    def ignore(self, traces: Iterable[str]) -> None:
        """Count further spans of these traces as `late`: an earlier process read them."""
        self._traces.ignore(*traces)

    def _take(self, raw: RawSpan, *, is_replayed: bool) -> bool:
        trace = self._traces.runs.get(raw.trace_id)
        if raw.scope == OWN_SCOPE or raw.scope.startswith(f"{OWN_SCOPE}."):
            # What comes back of an evaluation, or was scored where it ran.
            self.counts["own"] += 1
            self._forget(raw.trace_id, trace)
            return False
        if trace is None:
            is_wanted = self._monitor.can_sample(raw.trace_id)
            trace = _Trace(self, raw.trace_id, self._clock(), is_wanted, is_replayed)
            self._traces.open(trace)
        trace.latest = self._clock()
        if not trace.is_wanted:
            self.counts["sampled_out"] += 1
            if self._is_work(raw):  # counted by the monitor, once
                if (run := _begin(self._monitor, raw.trace_id)) is not None:
                    run.withdraw()
                self._forget(raw.trace_id, trace)
            return False
        try:
            span = raw.read()
        except ValueError:
            span = None
        if span is None:
            self.counts["rejected"] += 1
            return False
        self.counts["kept"] += 1
        self._hold(trace, span)
        return True

    def _is_work(self, raw: RawSpan) -> bool:
        return any(name in MARKS for name in raw.names)

    def _hold(self, trace: _Trace, span: TraceSpan) -> None:
        size = size_of(span)
        trace.add(span, size)
        self._size += size
        if len(trace.spans) > self._max_spans:
            self._give_up(trace, "evicted")
        if self._size > self._max_bytes:
            for oldest in self._traces.open_runs():
                if self._size > self._max_bytes:
                    self._give_up(oldest, "evicted")

    def _give_up(self, trace: _Trace, reason: str) -> None:
        if self._traces.close(trace):
            trace.discard(reason)

    def _forget(self, trace_id: str, trace: _Trace | None) -> None:
        if trace is not None and self._traces.close(trace):
            self.release(trace)
        else:
            self._traces.ignore(trace_id)
        self._on_settled(trace_id)

    def release(self, trace: _Trace) -> None:
        """Remove a trace."""
        self._size -= trace.size

    def given_up(self, trace: _Trace, reason: str) -> None:
        """Count an evicted or expired trace, as a run if it has language model work."""
        self.release(trace)
        if not trace.is_wanted:
            return
        self.counts[reason] += 1
        is_work = any(not MARKS.isdisjoint(span.attributes) for span in trace.spans)
        if is_work and (run := _begin(self._monitor, trace.trace_id)) is not None:
            run.discard(reason)
        self._on_settled(trace.trace_id)

    # --- reading ------------------------------------------------------------------------------

    def read_due(self) -> int:
        """Read every complete or quiet trace; return the number. Call it every second or so."""
        self._traces.sweep()
        now = self._clock()
        due = [t for t in self._traces.open_runs() if t.is_due(now, self._grace, self._quiet)]
        number = 0
        for trace in due:
            if not trace.is_replayed or self._has_room:
                self._read(trace)
                number += 1
        return number

    @property
    def _has_room(self) -> bool:
        monitor, queue = self._monitor, self._monitor.queue
        return 2 * queue.size <= monitor.max_queue and 2 * queue.bytes <= monitor.max_queue_bytes

    def close(self) -> None:
        """Read the complete traces; the others, and what the queue cannot take, stay in a spool."""
        for trace in self._traces.open_runs():
            if trace.is_whole and (self._has_room or not self._is_spooled):
                self._read(trace)
        for trace in self._traces.open_runs():
            if self._traces.close(trace):
                self.release(trace)

    def _read(self, trace: _Trace) -> None:
        if not self._traces.close(trace):
            return
        self.release(trace)
        settling = _Settling(trace.trace_id, self._on_settled)
        try:
            for case in cases_of_trace(
                trace.spans,
                attribute_names=self._names,
                mapping=self._mapping,
                resolve=self._resolve,
            ):
                run = begin_traced(self._monitor, case)
                if run is not None:
                    settling.wait_for(run)
                    end_traced(run, case)
        except Exception as error:  # noqa: BLE001 - spans are anybody's
            self._log_once.failure("a trace could not be read", error)
        settling.done()


def _begin(monitor: Monitor, trace_id: str) -> RunHandle | None:
    """Announce a run known by its trace only."""
    target = SpanTarget(trace_id=trace_id, span_id="f" * 16)
    return begin_traced(monitor, TracedCase(run=RunInfo(run_id=trace_id, target=target)))


@dataclass(slots=True, eq=False)
class _Trace:
    """An incomplete trace, as the registry needs it, with its spans."""

    assembly: Assembly
    key: Hashable  # its id
    started: float
    is_wanted: bool  # whether it may be chosen
    is_replayed: bool
    latest: float = 0.0
    closed: bool = False
    size: int = 0
    spans: list[TraceSpan] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    parents: set[str] = field(default_factory=set)
    has_root: bool = False

    @property
    def trace_id(self) -> str:
        """Its id as text."""
        return str(self.key)

    @property
    def steps(self) -> Collection[Hashable]:
        """Itself: spans are found by their trace."""
        return (self.key,)

    def add(self, span: TraceSpan, size: int) -> None:
        """Hold a span."""
        self.spans.append(span)
        self.size += size
        if span.is_log:
            return
        self.ids.add(span.span_id)
        if span.parent_id is None:
            self.has_root = True
        else:
            self.parents.add(span.parent_id)

    @property
    def is_whole(self) -> bool:
        """True if its first span has ended and no span lacks its parent."""
        return self.has_root and self.parents <= self.ids

    def is_due(self, now: float, grace: float, quiet: float) -> bool:
        """True if it should be read now."""
        return now - self.latest >= (grace if self.is_whole else quiet)

    def discard(self, reason: str) -> None:
        """Discard the trace."""
        self.assembly.given_up(self, reason)


class _Settling:
    """Waits until every run of a trace has its outcome, and every sink has its result.

    A run that a shutdown ended, or a result that a sink dropped then, is not settled: the next
    process that uses the spool scores the trace again.
    """

    def __init__(self, trace_id: str, on_settled: Callable[[str], object]) -> None:
        self._trace_id, self._on_settled = trace_id, on_settled
        self._left: set[object] = {self}

    def wait_for(self, run: RunHandle) -> None:
        """Wait for a run's outcome as well."""
        run.awaited = pending = PendingResult()
        self._left.add(run)
        pending.then(lambda outcome: self._ended(run, outcome, pending.stored))

    def done(self) -> None:
        """No more runs come."""
        self._settled(self)

    def _ended(
        self, run: RunHandle, outcome: Evaluation | str, stored: Sequence[Future[str]]
    ) -> None:
        if outcome == "shutdown":
            return
        self._left.update(stored)
        for each in stored:
            each.add_done_callback(partial(self._kept, run))
        self._settled(run)

    def _kept(self, run: RunHandle, in_sink: Future[str]) -> None:
        # Dropped while the monitor goes on, it is lost: kept, it would fill the spool for good.
        if in_sink.result() != "dropped" or not run.counters.is_closed:
            self._settled(in_sink)

    def _settled(self, what: object) -> None:
        self._left.discard(what)
        if not self._left:
            self._on_settled(self._trace_id)
