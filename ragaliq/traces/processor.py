"""Span processor that scores an application's answers from its existing spans."""

from __future__ import annotations

import contextvars
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from sys import getsizeof

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import SpanContext, StatusCode

from ragaliq.capture import RunRegistry
from ragaliq.core.checks import require_positive
from ragaliq.core.passages import TextFetcher, require_text_fetcher
from ragaliq.core.process import watch_process
from ragaliq.core.suppression import is_suppressed
from ragaliq.core.sync import WorkThread, wait_for
from ragaliq.errors import ConfigurationError
from ragaliq.live.monitor import Monitor
from ragaliq.live.run import RunHandle
from ragaliq.traces import llama_index
from ragaliq.traces.cases import AttributeNames, TracedCase, cases_of_trace, pipeline_of
from ragaliq.traces.conventions import (
    FRAMEWORKS,
    MARKS,
    OWN_SCOPE,
    RULE_KINDS,
    SESSIONS,
    Kind,
    Step,
    convention_of,
    is_hit,
    kind_of,
)
from ragaliq.traces.mapping import SpanRule, rule_for
from ragaliq.traces.span import SpanEvent, TraceSpan
from ragaliq.traces.traced_runs import begin_traced, end_traced
from ragaliq.traces.tree import is_plumbing

logger = logging.getLogger(__name__)

_NO_NAMES = AttributeNames()
_READING_SECONDS = 10.0
"""The longest that a flush waits for runs to be read, which may fetch texts."""


class RagaliqSpanProcessor(SpanProcessor):
    """Scores the RAG runs in the spans of OpenInference, GenAI or OpenLLMetry instrumentation.

    Add it to the application's tracer provider, before the exporter's processor; nothing else
    changes. A run is the outermost span of language model work within a request, with all spans
    below it. Retrievers and models that the application calls without a chain are one run in each
    request.

    Copying a finished span takes microseconds. The spans are interpreted `grace` seconds after the
    run's end, on a separate thread. Runs that are sampled out, and spans outside runs, are not
    kept.

    Do not also attach a ragaliq handler to the application: its runs would be scored twice.

    Args:
        monitor: Samples, scores and counts the runs.
        roots: Names of the application's own spans that are each a run.
        pipeline: Name for every run; by default the name of its first span.
        attribute_names: Attributes in which the application keeps what the conventions lack.
        mapping: Mapping of the application's own spans; `ragaliq.traces.read_mapping` reads a file.
        resolve: Called with the ids of documents without text in the spans; returns the known texts
            as a dictionary. It may block.
        grace: Seconds to wait for late spans after the end of a run.
        max_traces: Most open runs; the oldest is evicted first (`evicted`).
        max_spans: Most spans of one run; a run with more is evicted (`evicted`).
        max_bytes: Most bytes of all kept spans; the oldest run is evicted first (`evicted`).
        max_age: Seconds after which a run that never ended expires (`expired`).

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
        mapping: Sequence[SpanRule] = (),
        resolve: TextFetcher | None = None,
        grace: float = 1.0,
        max_traces: int = 1000,
        max_spans: int = 5000,
        max_bytes: int = 64 * 2**20,
        max_age: float = 600.0,
    ) -> None:
        name = type(self).__name__
        if not isinstance(monitor, Monitor):
            raise ConfigurationError(
                f"{name} needs a Monitor, got {type(monitor).__name__}: {name}(Monitor(judge=...))"
            )
        if isinstance(roots, str):  # each of its letters would be a name
            raise ConfigurationError(f"{name}: roots must be a list of span names, got {roots!r}")
        require_positive(
            name,
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
        self._mapping = tuple(mapping)
        require_text_fetcher(resolve, name)
        self._resolve = resolve
        self._recognition = _Recognition(roots, self._mapping)
        named = [attribute_names.question, attribute_names.answer, attribute_names.contexts]
        for rule in self._mapping:
            named += [rule.attribute, rule.question, rule.answer, rule.documents]
        self._wanted = [name for name in (*SESSIONS, *named) if name]
        self._runs: RunRegistry[_SpanRun] = RunRegistry(
            max_runs=max_traces,
            max_age=max_age,
            max_bytes=max_bytes,
            sweep_later=lambda delay, _: monitor.sweep_later(delay, self),
        )
        self.restart_after_fork()
        self._is_off = not monitor.is_enabled
        watch_process(self)

    def restart_after_fork(self) -> None:
        """Forget everything in a forked child: the parent's runs go on there."""
        # Held while anything of what all runs keep together changes. Re-entrant: a stream that is
        # dropped half-read ends its spans from the garbage collector, which may run on this thread
        # while it is held.
        self._lock = threading.RLock()
        self._size = 0  # bytes of all copies, about
        # By trace, the run whose steps wait for the end of the request around them.
        self._loose: dict[int, _SpanRun] = {}
        # Runs in the order in which they ended; the reader takes each when its grace is over.
        self._due: deque[_SpanRun] = deque()
        self._reader = WorkThread("ragaliq-traces")
        self._asked = threading.Condition(self._lock)
        self._asked_at = -math.inf  # what ended before is wanted without grace

    def __len__(self) -> int:
        """Number of open runs."""
        return len(self._runs)

    # --- the request path: spans start and end on any thread ----------------------------------

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Register a span that has started; never raises."""
        if self._is_off:
            return
        try:
            self._started(span, parent_context)
        except Exception as error:  # noqa: BLE001 - the application's request must not notice
            self._log_failure(error)

    def on_end(self, span: ReadableSpan) -> None:
        """Copy a span that has ended, if it belongs to a run that is scored; never raises."""
        if self._is_off:
            return
        try:
            self._ended(span)
        except Exception as error:  # noqa: BLE001 - as above
            self._log_failure(error)

    def _log_failure(self, error: Exception) -> None:
        self.errors += 1
        if self.errors == 1:
            logger.warning(
                "a span could not be handled (%s); further errors are counted in `errors`",
                type(error).__name__,
            )

    def _started(self, span: Span, parent_context: Context | None) -> None:
        context, parent = span.context, span.parent
        if context is None:
            return
        if parent is not None:
            run = self._runs.runs.get(parent.span_id)
            if run is not None and (run.handle is None or not is_suppressed()):
                self._join(run, span, context)
                return
            if run is None and self._runs.is_ignored(parent.span_id):
                self._runs.ignore(context.span_id)
                return
        kind = self._recognition.at_start(span)
        if kind is Kind.EVALUATOR:  # whose models are not the application's
            self._runs.ignore(context.span_id)
        if kind is not None and kind not in _WORK:
            return
        loose = self._loose.get(context.trace_id) if kind in _STEPS else None
        if loose is not None:
            self._join(loose, span, context)
            return
        self._open(span, context, kind, parent_context)

    def _open(
        self,
        span: ReadableSpan,
        context: SpanContext,
        kind: Kind | None,
        parent_context: Context | None,
    ) -> None:
        handle = self._begin(span, context, parent_context)
        run = _SpanRun(
            self,
            handle,
            context.span_id,
            context.trace_id,
            span.start_time or 0,
            is_sampled=context.trace_flags.sampled,
        )
        if kind in _STEPS and _is_local(span.parent):
            self._loose[run.trace_id] = run
        self._runs.open(run)

    def _join(self, run: _SpanRun, span: Span, context: SpanContext) -> None:
        run.steps.add(context.span_id)
        if run.handle is not None:
            kind = self._recognition.at_start(span)
            # OpenInference never ends spans of LlamaIndex's streams that no event of theirs ends;
            # a root that was streamed itself has no answer.
            if _scope_of(span) != llama_index.SCOPE and (kind is None or kind in _WORK):
                run.open.add(context.span_id)
        self._runs.join(run, context.span_id)
        if len(run.steps) > self._max_spans:
            self._give_up(run, "evicted")

    def _begin(
        self, span: ReadableSpan, context: SpanContext, parent_context: Context | None
    ) -> RunHandle | None:
        # Sampling goes by the current trace, which this span may have begun just now.
        current = trace.NonRecordingSpan(context)
        token = otel_context.attach(trace.set_span_in_context(current, parent_context))
        try:
            return self._monitor.begin(
                f"{context.trace_id:032x}-{context.span_id:016x}",
                pipeline=self._pipeline or pipeline_of(span.name),
                framework=FRAMEWORKS.get(_scope_of(span), ""),
            )
        finally:
            otel_context.detach(token)

    def _ended(self, span: ReadableSpan) -> None:
        context = span.context
        if context is None:
            return
        run = self._runs.runs.get(context.span_id)
        if run is None:
            self._ended_outside(span, context)
        elif run.handle is None:
            if context.span_id == run.key and not run.is_loose:
                self._runs.close(run)
        else:
            copy = self._keep(run, span, context)
            if context.span_id != run.key or run.is_loose:
                return
            is_run = self._recognition.is_run(copy)
            # A chain that searched nothing itself answers from what its request searched before.
            is_part = is_run and run.trace_id in self._loose and not self._has_searched(run)
            if (is_run and not is_part) or not _is_local(span.parent):
                self._end(run)
            elif self._loosen(run):
                run.handle.withdraw()

    def _ended_outside(self, span: ReadableSpan, context: SpanContext) -> None:
        """Handle a span outside runs; it may enclose an application's steps: a whole request."""
        kind = self._recognition.learn(span)
        if kind in _STEPS and context.trace_id not in self._loose and not self._is_past(context):
            # It says only now what it is: a step of a request that goes on.
            self._open(span, context, kind, None)
        loose = self._loose.get(context.trace_id)
        if loose is not None:
            if loose.handle is not None:
                self._keep(loose, span, context)
            # A service that calls itself has several such spans in a trace, one inside the other.
            if not _is_local(span.parent) and (span.start_time or 0) <= loose.start_ns:
                self._end(loose)

    def _is_past(self, context: SpanContext) -> bool:
        return self._runs.is_ignored(context.span_id)

    def _keep(self, run: _SpanRun, span: ReadableSpan, context: SpanContext) -> TraceSpan:
        """Copy a finished span for its run, and evict runs beyond the limits."""
        copy, size = _copied(span, self._wanted)
        parent = span.parent
        ids = context.trace_id, context.span_id, None if parent is None else parent.span_id
        with self._lock:
            if not run.closed:
                run.open.discard(context.span_id)
                run.spans.append((ids, copy))
                run.size += size
                self._size += size
        if len(run.spans) > self._max_spans:  # those around steps are in no other count
            self._give_up(run, "evicted")
        if self._size > self._max_bytes:
            for oldest in self._runs.open_runs():
                if self._size <= self._max_bytes:
                    break
                self._give_up(oldest, "evicted")
        return copy

    def _has_searched(self, run: _SpanRun) -> bool:
        return any(self._recognition.kind(copy) in _SOURCES for _, copy in run.spans)

    def _loosen(self, run: _SpanRun) -> bool:
        """Make a run's steps wait for the enclosing request; return True if others did already.

        Then they are that run's, and this one is closed.
        """
        with self._lock:
            other = self._loose.get(run.trace_id)
            if run.closed or other is run:
                return False
            if other is None or (other.handle is None) != (run.handle is None):
                self._loose[run.trace_id] = run
                return False
            if self._close(run):
                other.steps |= run.steps
                other.open |= run.open
                other.spans += run.spans
                other.size += run.size
                self._size += run.size
                other.start_ns = min(other.start_ns, run.start_ns)
                for step in run.steps:
                    self._runs.join(other, step)
            return True

    def _end(self, run: _SpanRun) -> None:
        """Schedule the reading of a run after its grace; close one without a handle at once."""
        if run.handle is None:
            self._close(run)
            return
        if self._monitor.counters.is_closed:  # nobody would wait until it is read
            self._give_up(run, "shutdown")
            return
        with self._lock:
            if run.closed or run.ended:
                return
            run.ended = time.monotonic()
            self._due.append(run)
            is_first = len(self._due) == 1  # or else the reader is at work
        if is_first:
            try:
                # In an empty context; otherwise the request's context variables stay alive.
                contextvars.Context().run(self._reader.submit, self._read_due)
            except RuntimeError:  # no thread can be started
                self._due.clear()
                self._runs.give_up("shutdown")

    def _give_up(self, run: _SpanRun, reason: str) -> None:
        if self._runs.close(run):
            run.discard(reason)

    def _close(self, run: _SpanRun) -> bool:
        """Stop following a run; return whether it was followed."""
        is_first = self._runs.close(run)
        if is_first:
            self._release(run)
        return is_first

    def _release(self, run: _SpanRun) -> None:
        with self._lock:
            self._size -= run.size
            if run.is_loose:
                del self._loose[run.trace_id]

    # --- where there is time ------------------------------------------------------------------

    def sweep(self) -> None:
        """Expire overdue runs; called by the monitor's timer."""
        self._runs.sweep()

    def hand_over_ended(self) -> bool:
        """Read every run that has ended, without grace; False where that takes too long."""
        if self._reader.is_current:
            return False  # the application's own function asks, and would wait for itself
        with self._asked:
            self._asked_at = asked = time.monotonic()
            self._asked.notify_all()
            return wait_for(
                self._asked,
                lambda: not self._due or self._due[0].ended > asked,
                _READING_SECONDS,
            )

    def _read_due(self) -> None:
        """Read each run after its grace, or when a flush waits for it, until none is left."""
        while self._due:
            run = self._due[0]
            due = run.ended + self._grace
            with self._asked:
                while run.ended > self._asked_at and (left := due - time.monotonic()) > 0:
                    self._asked.wait(left)
            try:
                if self._close(run):
                    self._read(run)
            finally:
                with self._asked:
                    self._due.popleft()  # only now: a flush waits for what is there
                    self._asked.notify_all()

    def _read(self, run: _SpanRun) -> None:
        """Make cases of a run's spans, and end its handle; never raises."""
        handle = run.handle
        if handle is None:
            return
        try:
            spans = [_with_ids(*each) for each in run.spans]
            found = cases_of_trace(
                spans,
                attribute_names=self._names,
                mapping=self._mapping,
                resolve=self._resolve,
            )
            for case, its_handle in self._handles(found, handle, run):
                end_traced(its_handle, case, is_sampled=run.is_sampled, is_open=bool(run.open))
            handle.withdraw()  # it was not a run after all; does nothing where it has ended
        except BaseException as error:  # noqa: BLE001 - spans are anybody's, and so is `resolve`
            logger.debug("a run could not be read: %s", type(error).__name__)
            handle.discard("internal_error")

    def _handles(
        self, found: Sequence[TracedCase], handle: RunHandle, run: _SpanRun
    ) -> Iterator[tuple[TracedCase, RunHandle]]:
        """Pair each case with a handle: the run's own for one, new ones for the others."""
        top = f"{run.key:016x}"
        own = next((case for case in found if case.target.span_id == top), None)
        for case in found:
            if case is (own or found[0]):
                yield case, handle
                continue
            another = begin_traced(self._monitor, case, self._pipeline or handle.pipeline)
            if another is not None:
                yield case, another

    # --- its ends -----------------------------------------------------------------------------

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Read every run that has ended, without grace, and wait for the scores.

        Returns:
            Whether all were scored in time; False at once when called from `on_result`.
        """
        return self._monitor.flush(timeout_millis / 1000)

    def shutdown(self) -> None:
        """Read every run that has ended and give up the others, counted `shutdown`.

        The monitor goes on: closing it is the application's.
        """
        self._is_off = True
        self.hand_over_ended()
        self._runs.give_up("shutdown")

    # As `watch_process` calls them: when the main thread has ended, when the interpreter ends, and
    # when the user does not want to wait.
    def flush_at_exit(self) -> None:
        """See `Living`."""
        self.hand_over_ended()

    close_at_exit = shutdown
    give_up_at_exit = shutdown


def _is_local(parent: SpanContext | None) -> bool:
    """True if the span's parent is in this process."""
    return parent is not None and not parent.is_remote


@dataclass(slots=True, eq=False)
class _SpanRun:
    """A run in progress, or the steps that an application takes in one trace without a chain.

    What the registry asks of it: `key`, `started`, `closed`, `steps`, `size`, `discard`.
    """

    processor: RagaliqSpanProcessor
    handle: RunHandle | None  # None where it is only followed to skip the spans below it
    key: Hashable  # the number of its first span
    trace_id: int
    start_ns: int
    is_sampled: bool  # whether the application's tracer keeps its spans
    started: float = field(default_factory=time.monotonic)
    steps: set[Hashable] = field(init=False)
    open: set[Hashable] = field(init=False)  # those of language model work that have not ended
    # Copies of those that have. Their ids are formatted when it is read: that takes longer.
    spans: list[tuple[_Ids, TraceSpan]] = field(default_factory=list)
    size: int = 0  # bytes of the copies
    ended: float = 0.0  # when, in seconds on the monotonic clock; 0 while it goes on
    closed: bool = False

    def __post_init__(self) -> None:
        self.steps, self.open = {self.key}, {self.key}

    @property
    def is_loose(self) -> bool:
        """True while it waits for the end of the enclosing request."""
        return self.processor._loose.get(self.trace_id) is self

    def discard(self, reason: str) -> None:
        """Discard the run."""
        self.processor._release(self)
        if self.handle is not None:
            self.handle.discard(reason)


# --- what a span is -------------------------------------------------------------------------------
#
# Several instrumentations say that only when it ends: OpenInference's for LangChain and LlamaIndex,
# and OpenLLMetry's, set every attribute last. At the start their names have to do.

_SCOPES = (
    "openinference.",
    "opentelemetry.instrumentation.genai.",
    "opentelemetry.instrumentation.langchain",
    "opentelemetry.instrumentation.llamaindex",
    "traceloop.",
    "langfuse-sdk",
    # Which set every attribute after the start.
    "langsmith",
    "langtrace_python_sdk.instrumentation",
    "logfire.openai",
    "logfire.anthropic",
    "openlit.instrumentation",
    "trulens",
    # OpenLLMetry's of vector stores, whose spans have nothing else to tell them from a database's.
    "opentelemetry.instrumentation.chromadb",
    "opentelemetry.instrumentation.lancedb",
    "opentelemetry.instrumentation.marqo",
    "opentelemetry.instrumentation.milvus",
    "opentelemetry.instrumentation.pinecone",
    "opentelemetry.instrumentation.qdrant",
    "opentelemetry.instrumentation.weaviate",
)
_MOST_NAMES = 1000
_RUNS = frozenset({Kind.CHAIN, Kind.AGENT})
# What an application may also do itself, without a chain.
_STEPS = frozenset({Kind.RETRIEVER, Kind.RERANKER, Kind.LLM, Kind.TOOL, Kind.PROMPT})
_WORK = _RUNS | _STEPS
_SOURCES = frozenset({Kind.RETRIEVER, Kind.RERANKER, Kind.TOOL})


class _Recognition:
    """Recognises spans by their instrumentation, their first attributes and their names."""

    def __init__(self, roots: Collection[str], mapping: Sequence[SpanRule]) -> None:
        self.roots = frozenset(roots)
        self._mapping = mapping
        # Spans that said only at their end what they are, known from the second one on.
        self._learned: set[tuple[str, str]] = set()

    def at_start(self, span: ReadableSpan) -> Kind | None:
        """Kind of a span that has just started; None if only its end will tell."""
        if span.name in self.roots:
            return Kind.CHAIN
        scope = _scope_of(span)
        if scope == OWN_SCOPE:
            return Kind.EVALUATOR
        attributes = span.attributes or {}
        # A search of a vector store is known by its instrumentation, or at its end.
        if self._mapping or not MARKS.isdisjoint(attributes):
            kind = self._kind(span.name, attributes, scope)
            if kind is not Kind.NONE:
                return kind
        return None if _is_known(scope) or (scope, span.name) in self._learned else Kind.NONE

    def kind(self, copy: TraceSpan) -> Kind:
        """Kind of a finished span."""
        if any(is_hit(event.name) for event in copy.events):
            return Kind.RETRIEVER
        return self._kind(copy.name, copy.attributes, copy.scope)

    def _kind(self, name: str, attributes: Mapping[str, object], scope: str) -> Kind:
        rule = rule_for(self._mapping, name, attributes) if self._mapping else None
        if rule is not None and rule.kind:
            return RULE_KINDS[rule.kind]
        return kind_of(attributes, scope)

    def learn(self, span: ReadableSpan) -> Kind:
        """Kind of a finished span that was not recognised at its start."""
        kind = self._kind(span.name, span.attributes or {}, _scope_of(span))
        if kind in _WORK and len(self._learned) < _MOST_NAMES:
            self._learned.add((_scope_of(span), span.name))
        return kind

    def is_run(self, copy: TraceSpan) -> bool:
        """True if a finished span without an enclosing run is itself a run."""
        if copy.name in self.roots:
            return True
        if self.kind(copy) not in _RUNS:
            return False
        is_llama_index = copy.scope == llama_index.SCOPE
        return not is_llama_index or not is_plumbing(Step(span=copy, kind=Kind.CHAIN))


@lru_cache(maxsize=_MOST_NAMES)
def _is_known(scope: str) -> bool:
    return scope.startswith(_SCOPES)


def _scope_of(span: ReadableSpan) -> str:
    """Name of the instrumentation that made a span."""
    scope = span.instrumentation_scope
    return "" if scope is None else scope.name


# --- what is kept of it ---------------------------------------------------------------------------

_OVERHEAD = 600
"""Bytes of a copy without its texts, about."""


_Ids = tuple[int, int, int | None]
"""Of a trace, a span in it, and the span around that."""


def _with_ids(ids: _Ids, copy: TraceSpan) -> TraceSpan:
    trace_id, span_id, parent_id = ids
    return copy._replace(
        trace_id=f"{trace_id:032x}",
        span_id=f"{span_id:016x}",
        parent_id=None if parent_id is None else f"{parent_id:016x}",
    )


def _copied(span: ReadableSpan, wanted: Collection[str]) -> tuple[TraceSpan, int]:
    """A copy of a finished span, yet without ids, and the bytes that it takes, about.

    For spans without language model work it has only the wanted attributes.
    """
    held = span.attributes or {}
    if convention_of(held, _scope_of(span)) is None:
        attributes: dict[str, object] = {name: held[name] for name in wanted if name in held}
    else:
        attributes = held.copy()  # type: ignore[attr-defined]  # a proxy has it: one step in C
    events = tuple(SpanEvent(event.name, dict(event.attributes or {})) for event in span.events)
    size = _OVERHEAD
    for value in attributes.values():
        size += getsizeof(value)
    for event in events:
        size += sum(map(getsizeof, event.attributes.values()), _OVERHEAD)
    copy = TraceSpan(
        "",
        "",
        None,
        span.name,
        span.start_time or 0,
        span.end_time or 0,
        span.status.status_code is StatusCode.ERROR,
        attributes,
        events,
        _scope_of(span),
        dropped_attributes=span.dropped_attributes,
    )
    return copy, size
