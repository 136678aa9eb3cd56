"""Scores an application's answers from the spans that it makes already."""

from __future__ import annotations

import contextvars
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Collection, Iterator, Sequence

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import SpanContext

from ragaliq._private import suppress_instrumentation_key
from ragaliq.capture import RunRegistry
from ragaliq.core.checks import require_positive
from ragaliq.core.suppression import is_suppressed
from ragaliq.errors import ConfigurationError
from ragaliq.live.lifecycle import watch_process
from ragaliq.live.monitor import Monitor
from ragaliq.live.run import OpenRun
from ragaliq.live.span_units import (
    Copied,
    Kept,
    Part,
    Recognition,
    Unit,
    copied,
    framework_of,
    trace_span,
)
from ragaliq.telemetry.emit import target_context
from ragaliq.traces import AttributeNames, TracedCase, cases_of_trace
from ragaliq.traces.conventions import SESSIONS, Kind, step_of

__all__ = ["RagaliqSpanProcessor"]

logger = logging.getLogger(__name__)

# What says that instrumentations are to leave something out. The API has no public name for it.
_SUPPRESSED = suppress_instrumentation_key()
_NO_NAMES = AttributeNames()
_SOONEST_SECONDS = 0.01
_AT_ONCE = 20
"""Units read in one go on the monitor's loop, which judges meanwhile."""


class RagaliqSpanProcessor(SpanProcessor):
    """Scores the RAG runs in the spans of OpenInference, GenAI or OpenLLMetry instrumentation.

    Add it to the application's tracer provider, before the exporter's processor; nothing else of
    the application changes. A run is the outermost span of language model work, whatever request
    is around it, with all below it. Retrievers and models that the application calls itself,
    without a chain, are one run in each request.

    Copying a finished span takes microseconds. What the spans mean is read `grace` seconds after
    the run's end, on the monitor's thread. Nothing is kept of runs that are sampled out, and of
    spans that belong to no run.

    Do not attach a handler of ragaliq's to the same application: its runs would be scored twice.

    Args:
        monitor: Samples, scores and counts the runs.
        roots: Names of the application's own spans that are each a run.
        pipeline: Name for every run; by default the name of its first span.
        attribute_names: Where the application itself keeps what the conventions do not say.
        grace: Seconds to wait for late spans after the end of a run.
        max_traces: Runs followed at the same time; beyond it the oldest is given up (`evicted`).
        max_spans: Spans of one run; one with more is given up (`evicted`).
        max_bytes: Bytes of all that is kept; beyond it the oldest run is given up (`evicted`).
        max_age: Seconds after which a run that never ended is given up (`expired`).

    Attributes:
        errors: Spans that could not be handled.

    Raises:
        ConfigurationError: An argument is wrong.
    """

    def __init__(
        self,
        monitor: Monitor,
        *,
        roots: Collection[str] = (),
        pipeline: str = "",
        attribute_names: AttributeNames = _NO_NAMES,
        grace: float = 1.0,
        max_traces: int = 1000,
        max_spans: int = 5000,
        max_bytes: int = 64 * 2**20,
        max_age: float = 600.0,
    ) -> None:
        _require(monitor, roots, attribute_names)
        require_positive(
            "RagaliqSpanProcessor",
            grace=grace,
            max_traces=max_traces,
            max_spans=max_spans,
            max_bytes=max_bytes,
            max_age=max_age,
        )
        self.errors = 0
        self._monitor = monitor
        self._pipeline = pipeline
        self._names = attribute_names
        self._grace = grace
        self._max_spans = max_spans
        self._max_bytes = max_bytes
        self._recognition = Recognition(roots)
        own = (attribute_names.question, attribute_names.answer, attribute_names.contexts)
        self._wanted = [name for name in (*SESSIONS, *own) if name]
        self._runs: RunRegistry[Unit] = RunRegistry(
            max_runs=max_traces,
            max_age=max_age,
            max_bytes=max_bytes,
            sweep_later=monitor.sweep_later,
        )
        self._kept = Kept()
        self._due: deque[Unit] = deque()
        self._wakes_at: float | None = None
        # Held while a unit is in no list, so that waiting for all runs misses none.
        self._reading = threading.RLock()
        self._is_off = not monitor.is_enabled
        watch_process(self)

    def __len__(self) -> int:
        """Runs followed now."""
        return len(self._runs)

    # --- the request path: spans start and end on any thread ----------------------------------

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Note a span that has started; never raises."""
        if self._is_off:
            return
        try:
            self._started(span, parent_context)
        except Exception as error:  # noqa: BLE001 - the application's request must not notice
            self._complain(error)

    def on_end(self, span: ReadableSpan) -> None:
        """Copy a span that has ended, if it belongs to a run that is scored; never raises."""
        if self._is_off:
            return
        try:
            self._ended(span)
        except Exception as error:  # noqa: BLE001 - as above
            self._complain(error)

    def _started(self, span: Span, parent_context: Context | None) -> None:
        context, parent = span.context, span.parent
        if context is None:
            return
        if parent is not None:
            unit = self._runs.runs.get(parent.span_id)
            if unit is not None and (unit.ticket is None or not is_suppressed()):
                self._join(unit, span, context)
                return
            if unit is None and self._runs.is_ignored(parent.span_id):
                self._runs.ignore(context.span_id)
                return
        part = self._recognition.at_start(span)
        if part is Part.NONE:
            return
        if part is Part.EVALUATION:
            self._runs.ignore(context.span_id)
            return
        loose = self._kept.loose.get(context.trace_id) if part is Part.STEP else None
        if loose is not None:
            self._join(loose, span, context)
        else:
            self._open(span, context, part, parent_context)

    def _join(self, unit: Unit, span: Span, context: SpanContext) -> None:
        unit.steps.add(context.span_id)
        # Asked only where it matters.
        if unit.ticket is not None and self._recognition.at_start(span) is not Part.NONE:
            unit.open.add(context.span_id)
        self._runs.join(unit, context.span_id)
        if len(unit.steps) > self._max_spans:
            self._evict(unit)

    def _open(
        self, span: Span, context: SpanContext, part: Part, parent_context: Context | None
    ) -> None:
        unit = Unit(
            self._kept,
            self._begin(span, context, parent_context),
            context,
            started=time.monotonic(),
            start_ns=span.start_time or 0,
        )
        if part is Part.STEP and _is_local(span.parent):
            self._kept.loose[unit.trace_id] = unit
        self._runs.open(unit)

    def _begin(
        self, span: Span, context: SpanContext, parent_context: Context | None
    ) -> OpenRun | None:
        if otel_context.get_value(_SUPPRESSED, parent_context):
            return None
        # Sampling goes by the current trace, which this span may have begun just now.
        token = otel_context.attach(trace.set_span_in_context(span, parent_context))
        try:
            return self._monitor.begin(
                f"{context.trace_id:032x}-{context.span_id:016x}",
                pipeline=self._pipeline or span.name,
                framework=framework_of(span),
            )
        finally:
            otel_context.detach(token)

    def _ended(self, span: ReadableSpan) -> None:
        context = span.context
        if context is None:
            return
        unit = self._runs.runs.get(context.span_id)
        if unit is None:
            loose = self._kept.loose.get(context.trace_id)
            if loose is not None:
                self._ended_around(loose, span, context)
            self._recognition.learn(span)
        elif unit.ticket is None:
            if context.span_id == unit.top and not unit.is_loose:
                self._close(unit)
        else:
            copy = copied(span, context, self._wanted)
            self._keep(unit, copy)
            if context.span_id != unit.top or unit.is_loose:
                return
            if self._recognition.is_run(copy) or not _is_local(span.parent):
                self._end(unit)
            elif self._loosen(unit):
                unit.ticket.withdraw()

    def _ended_around(self, loose: Unit, span: ReadableSpan, context: SpanContext) -> None:
        """A span that may be around an application's own steps, perhaps the whole request's."""
        if loose.ticket is not None:
            self._keep(loose, copied(span, context, self._wanted))
        # A service that calls itself has several such spans in a trace, one inside the other.
        if not _is_local(span.parent) and (span.start_time or 0) <= loose.start_ns:
            self._end(loose)

    def _keep(self, unit: Unit, copy: Copied) -> None:
        unit.keep(copy)
        if len(unit.spans) > self._max_spans:  # those around steps are in no other count
            self._evict(unit)
        if self._kept.size > self._max_bytes:
            for oldest in self._runs.open_runs():
                if self._kept.size <= self._max_bytes:
                    break
                self._evict(oldest)

    def _loosen(self, unit: Unit) -> bool:
        """Have a unit's steps wait for the request around them; whether others did already.

        Then they are that unit's, and this one is closed.
        """
        kept = self._kept
        with kept.lock:
            other = kept.loose.get(unit.trace_id)
            if unit.closed or other is unit:
                return False
            if other is None or (other.ticket is None) != (unit.ticket is None):
                kept.loose[unit.trace_id] = unit
                return False
            if self._close(unit):
                other.take_over(unit)
                for step in unit.steps:
                    self._runs.join(other, step)
            return True

    def _end(self, unit: Unit) -> None:
        """Have a unit read when its time of grace is over; one without a ticket is over at once."""
        if unit.ticket is None:
            self._close(unit)
            return
        with self._kept.lock:
            if unit.closed or unit.due is not None:
                return
            unit.due = due = time.monotonic() + self._grace
            self._due.append(unit)
        if self._wakes_at is None or due < self._wakes_at:
            self._wake(self._grace)

    def _evict(self, unit: Unit) -> None:
        if self._runs.close(unit):
            unit.discard("evicted")

    def _close(self, unit: Unit) -> bool:
        """Follow a unit no more; whether it was followed."""
        is_first = self._runs.close(unit)
        if is_first:
            unit.release()
        return is_first

    def _complain(self, error: Exception) -> None:
        self.errors += 1
        if self.errors == 1:
            logger.warning(
                "a span could not be handled (%s); further errors are counted in `errors`",
                type(error).__name__,
            )

    # --- where there is time ------------------------------------------------------------------

    def sweep(self) -> None:
        """Read the units that are due, and come back for others; called by the monitor's timer."""
        # The timer's context is that of whatever request asked for it.
        contextvars.Context().run(self._sweep)

    def _sweep(self) -> None:
        # Another thread that reads now may wait for this very thread: come back rather than wait.
        if self._reading.acquire(blocking=False):
            try:
                for unit in self._take_due(time.monotonic(), at_most=_AT_ONCE):
                    self._read(unit)
            finally:
                self._reading.release()
        self._wakes_at = None
        with self._kept.lock:
            due = self._due[0].due if self._due else None
        if due is not None:
            self._wake(max(due - time.monotonic(), _SOONEST_SECONDS))

    def _wake(self, delay: float) -> None:
        # A racing thread may do the same: then it is swept once more.
        self._wakes_at = time.monotonic() + delay
        if not self._monitor.sweep_later(delay, self):
            self._wakes_at = None
            self._runs.give_up("shutdown")  # the monitor is closed: nobody will ever come back

    def _take_due(self, now: float, *, at_most: float = math.inf) -> list[Unit]:
        """The units that are to be read by now, which are followed no more."""
        taken: list[Unit] = []
        with self._kept.lock:
            while len(taken) < at_most and self._due:
                unit = self._due[0]
                if not unit.closed and (unit.due or 0.0) > now:
                    break
                self._due.popleft()
                if self._close(unit):
                    taken.append(unit)
        return taken

    def hand_over_ended(self) -> None:
        """Read every unit that has ended, without grace."""
        with self._reading:
            for unit in self._take_due(math.inf):
                contextvars.Context().run(self._read, unit)

    def _read(self, unit: Unit) -> None:
        """Make cases of a unit's spans, and end its ticket; never raises."""
        ticket = unit.ticket
        if ticket is None:
            return
        try:
            found = cases_of_trace(map(trace_span, unit.spans), attribute_names=self._names)
            for case, its_ticket in self._tickets(found, ticket, unit):
                _submit(case, its_ticket, unit)
            ticket.withdraw()  # it was not a run after all; does nothing where it has ended
        except Exception as error:  # noqa: BLE001 - on the monitor's thread, or the application's
            logger.debug("a run could not be read: %s", type(error).__name__)
            ticket.discard("internal_error")

    def _tickets(
        self, found: Sequence[TracedCase], ticket: OpenRun, unit: Unit
    ) -> Iterator[tuple[TracedCase, OpenRun]]:
        """Each case with a ticket: the unit's own for one, new ones for the others."""
        top = f"{unit.top:016x}"
        own = next(
            (case for case in found if case.target.span_id == top), found[0] if found else None
        )
        for case in found:
            if case is own:
                yield case, ticket
                continue
            # Sampling goes by the current trace.
            token = otel_context.attach(target_context(case.target))
            try:
                another = self._monitor.begin(
                    case.id, pipeline=self._pipeline or ticket.pipeline, framework=case.framework
                )
            finally:
                otel_context.detach(token)
            if another is not None:
                yield case, another

    # --- its ends -----------------------------------------------------------------------------

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Hand over every run that has ended, without grace, and wait for the scores.

        Returns:
            Whether all were scored in time; False at once when called from `on_result`.
        """
        return self._monitor.flush(timeout_millis / 1000)

    def shutdown(self) -> None:
        """Hand over every run that has ended and give up the others, counted `shutdown`.

        The monitor goes on: closing it is the application's.
        """
        self._is_off = True
        self.hand_over_ended()
        self._runs.give_up("shutdown")

    def flush_at_exit(self) -> None:
        """Hand over what has ended; called when the main thread has ended."""
        self.hand_over_ended()

    def close_at_exit(self) -> None:
        """Do so once more, and give up the rest; called when the interpreter ends."""
        self.shutdown()

    def give_up_at_exit(self) -> None:
        """As `close_at_exit`; called when the user does not want to wait."""
        self.shutdown()

    def restart_after_fork(self) -> None:
        """Forget everything, in a forked child: what was running runs in the parent."""
        self._kept, self._due, self._wakes_at = Kept(), deque(), None
        self._reading = threading.RLock()


def _submit(case: TracedCase, ticket: OpenRun, unit: Unit) -> None:
    if case.draft is None:
        ticket.discard(case.reason)
    elif unit.open and not _was_said(case.draft.response, unit):
        # The run is over and a step of it is not: what there is of the answer is its beginning.
        ticket.discard("truncated")
    else:
        target = case.target
        if not unit.is_sampled:
            target = target.model_copy(update={"trace_flags": 0})
        ticket.submit(
            case.draft,
            target=target,
            session_id=case.session_id,
            response_id=case.response_id,
            ended_at=case.ended_at,
        )


def _was_said(answer: str, unit: Unit) -> bool:
    """Whether a model that came to its end gave the answer, while another was given up."""
    steps = map(step_of, map(trace_span, unit.spans))
    return any(step.kind is Kind.LLM and step.reply == answer for step in steps)


def _require(monitor: object, roots: object, attribute_names: object) -> None:
    if not isinstance(monitor, Monitor):
        raise ConfigurationError(
            f"RagaliqSpanProcessor needs a Monitor, got {type(monitor).__name__}: "
            "RagaliqSpanProcessor(Monitor(judge=...))"
        )
    if isinstance(roots, str) or not isinstance(roots, Collection):
        raise ConfigurationError(
            f"RagaliqSpanProcessor: roots must be a list of span names, got {roots!r}"
        )
    if not isinstance(attribute_names, AttributeNames):
        raise ConfigurationError(
            "RagaliqSpanProcessor: attribute_names must be an AttributeNames, got "
            f"{type(attribute_names).__name__}"
        )


def _is_local(parent: SpanContext | None) -> bool:
    """Whether a span is inside another of this process."""
    return parent is not None and not parent.is_remote
