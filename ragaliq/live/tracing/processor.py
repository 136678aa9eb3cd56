"""Scores an application's answers from the spans that it makes already."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import SpanContext

from ragaliq._private import suppress_instrumentation_key
from ragaliq.core.checks import require_positive
from ragaliq.core.suppression import is_suppressed
from ragaliq.errors import ConfigurationError
from ragaliq.live.lifecycle import watch_process
from ragaliq.live.monitor import Monitor
from ragaliq.live.open_run import OpenRun
from ragaliq.live.tracing.copied import begins_run, copied
from ragaliq.live.tracing.following import Bounds
from ragaliq.live.tracing.reading import UnitReader
from ragaliq.live.tracing.recognition import (
    Part,
    Recognition,
    framework_of,
    scope_of,
)
from ragaliq.live.tracing.unit import Unit
from ragaliq.live.tracing.upkeep import Upkeep
from ragaliq.traces import AttributeNames
from ragaliq.traces import conventions as names

__all__ = ["RagaliqSpanProcessor"]

logger = logging.getLogger(__name__)

# What says that instrumentations are to leave something out. The API has no public name for it.
_SUPPRESSED = suppress_instrumentation_key()
_NO_NAMES = AttributeNames()


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
        self._recognition = Recognition(roots)
        self._upkeep = Upkeep(
            monitor,
            UnitReader(monitor, attribute_names=attribute_names, pipeline=pipeline),
            grace=grace,
            bounds=Bounds(max_traces, max_spans, max_bytes, max_age),
        )
        own = (attribute_names.question, attribute_names.answer, attribute_names.contexts)
        self._wanted = [n for n in (*names.SESSIONS, *own) if n]
        self._is_off = not monitor.is_enabled
        watch_process(self)

    def __len__(self) -> int:
        """Runs followed now."""
        return len(self._upkeep.followed)

    # --- the request path ---------------------------------------------------------------------

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
        followed = self._upkeep.followed
        if parent is not None:
            unit = followed.unit_of(parent.span_id)
            if unit is not None and (unit.ticket is None or not is_suppressed()):
                self._join(unit, span, context)
                return
            if unit is None and followed.is_past(parent.span_id):
                followed.forget(context.span_id)
                return
        part = self._recognition.at_start(span)
        if part is Part.NONE:
            return
        if part is Part.EVALUATION:
            followed.forget(context.span_id)
            return
        loose = followed.loose_in(context.trace_id) if part is Part.STEP else None
        if loose is not None:
            self._join(loose, span, context)
        else:
            self._open(span, context, part, parent_context)

    def _join(self, unit: Unit, span: Span, context: SpanContext) -> None:
        # Asked only where it matters.
        is_step = unit.ticket is not None and self._recognition.at_start(span) is not Part.NONE
        self._evict(self._upkeep.followed.join(unit, context.span_id, is_step=is_step))

    def _open(
        self, span: Span, context: SpanContext, part: Part, parent_context: Context | None
    ) -> None:
        unit = Unit(
            self._begin(span, context, parent_context),
            top=context.span_id,
            trace_id=context.trace_id,
            started=time.monotonic(),
            start_ns=span.start_time or 0,
            is_sampled=context.trace_flags.sampled,
        )
        is_loose = part is Part.STEP and _is_local(span.parent)
        self._evict(self._upkeep.followed.open(unit, is_loose=is_loose))
        self._upkeep.opened()

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
                framework=framework_of(scope_of(span)),
            )
        finally:
            otel_context.detach(token)

    def _ended(self, span: ReadableSpan) -> None:
        context = span.context
        if context is None:
            return
        followed = self._upkeep.followed
        unit = followed.unit_of(context.span_id)
        if unit is None:
            loose = followed.loose_in(context.trace_id)
            if loose is not None:
                self._ended_around(loose, span, context)
            self._recognition.learn(span)
        elif unit.ticket is None:
            if context.span_id == unit.top and not unit.is_loose:
                followed.end(unit, due=0.0)
        else:
            copy = copied(span, context, self._wanted)
            self._evict(followed.keep(unit, copy))
            if context.span_id != unit.top or unit.is_loose:
                return
            is_run = span.name in self._recognition.roots or begins_run(copy)
            if is_run or not _is_local(span.parent):
                self._upkeep.end(unit)
            elif followed.loosen(unit):
                unit.ticket.withdraw()

    def _ended_around(self, loose: Unit, span: ReadableSpan, context: SpanContext) -> None:
        """A span that may be around an application's own steps, perhaps the whole request's."""
        if loose.ticket is not None:
            copy = copied(span, context, self._wanted)
            self._evict(self._upkeep.followed.keep(loose, copy))
        # A service that calls itself has several such spans in a trace, one inside the other.
        if not _is_local(span.parent) and (span.start_time or 0) <= loose.start_ns:
            self._upkeep.end(loose)

    def _evict(self, units: list[Unit]) -> None:
        if units:
            self._upkeep.give_up(units, "evicted")

    def _complain(self, error: Exception) -> None:
        self.errors += 1
        if self.errors == 1:
            logger.warning(
                "a span could not be handled (%s); further errors are counted in `errors`",
                type(error).__name__,
            )

    # --- where there is time ------------------------------------------------------------------

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
        self._upkeep.hand_over_ended()
        self._upkeep.give_up_all("shutdown")

    def flush_at_exit(self) -> None:
        """Hand over what has ended; called when the main thread has ended."""
        self._upkeep.hand_over_ended()

    def close_at_exit(self) -> None:
        """Do so once more, and give up the rest; called when the interpreter ends."""
        self.shutdown()

    def give_up_at_exit(self) -> None:
        """As `close_at_exit`; called when the user does not want to wait."""
        self.shutdown()

    def restart_after_fork(self) -> None:
        """Forget everything, in a forked child: what was running runs in the parent."""
        self._upkeep.forget_everything()


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
