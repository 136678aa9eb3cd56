"""Spans of language model work: recognised, copied when they end, and kept by the run they are of.

Several instrumentations say what a span is only when it ends: OpenInference's for LangChain and
LlamaIndex, and OpenLLMetry's, set every attribute last. At the start their names have to do.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Hashable, Mapping
from enum import Enum
from sys import getsizeof
from typing import NamedTuple

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext, SpanKind, StatusCode

from ragaliq.live.run import Framework, OpenRun
from ragaliq.traces import SpanEvent, TraceSpan
from ragaliq.traces.conventions import (
    LANGCHAIN_SCOPES,
    LLAMA_INDEX_SCOPE,
    MARKS,
    OWN_SCOPE,
    Kind,
    Step,
    kind_of,
)
from ragaliq.traces.tree import is_plumbing

__all__ = ["Copied", "Kept", "Part", "Recognition", "Unit", "copied", "framework_of", "trace_span"]

# --- what a span is -------------------------------------------------------------------------------

_SCOPES = (
    "openinference.",
    "opentelemetry.instrumentation.genai.",
    "opentelemetry.instrumentation.langchain",
    "opentelemetry.instrumentation.llamaindex",
    "traceloop.",
    # OpenLLMetry's of vector stores, whose spans have nothing else to tell them from a database's.
    "opentelemetry.instrumentation.chromadb",
    "opentelemetry.instrumentation.lancedb",
    "opentelemetry.instrumentation.marqo",
    "opentelemetry.instrumentation.milvus",
    "opentelemetry.instrumentation.pinecone",
    "opentelemetry.instrumentation.qdrant",
    "opentelemetry.instrumentation.weaviate",
)
_RUNS = {Kind.CHAIN, Kind.AGENT}
_STEPS = {Kind.RETRIEVER, Kind.RERANKER, Kind.LLM, Kind.TOOL, Kind.PROMPT}
_MOST_NAMES = 1000


class Part(Enum):
    """What a span may be where no span of a run is above it."""

    RUN = "a run's first"
    STEP = "a step that the application takes itself, without a chain"
    UNKNOWN = "one of these; its end will tell"
    EVALUATION = "somebody's evaluation, whose models are not the application's"
    NONE = "nothing that concerns a run"


class Recognition:
    """Knows spans by their instrumentation, their first attributes and their names.

    Args:
        roots: Names of spans that are a run's first, whatever else is known of them.
    """

    def __init__(self, roots: Collection[str]) -> None:
        self.roots = frozenset(roots)
        self._scopes: dict[str, bool] = {}
        # Spans that said only at their end what they are, known from the second one on.
        self._learned: set[tuple[str, str]] = set()

    def at_start(self, span: ReadableSpan) -> Part:
        """What a span that has just started may be."""
        if span.name in self.roots:
            return Part.RUN
        scope = scope_of(span)
        if scope == OWN_SCOPE:
            return Part.EVALUATION
        attributes = span.attributes
        if attributes and not MARKS.isdisjoint(attributes):
            return _part_of(attributes)
        is_known = self._is_known(scope) or (scope, span.name) in self._learned
        return Part.UNKNOWN if is_known else Part.NONE

    def learn(self, span: ReadableSpan) -> None:
        """Look at a span that has ended and was not recognised."""
        attributes = span.attributes
        if not attributes or MARKS.isdisjoint(attributes):
            return
        if _part_of(attributes) in {Part.RUN, Part.STEP} and len(self._learned) < _MOST_NAMES:
            self._learned.add((scope_of(span), span.name))

    def is_run(self, copy: Copied) -> bool:
        """Whether a finished span with no run above it is a run of its own."""
        if copy.name in self.roots:
            return True
        attributes = copy.attributes
        if MARKS.isdisjoint(attributes) or _part_of(attributes) is not Part.RUN:
            return False
        if copy.scope != LLAMA_INDEX_SCOPE:
            return True
        return not is_plumbing(Step(span=trace_span(copy), kind=Kind.CHAIN))

    def _is_known(self, scope: str) -> bool:
        known = self._scopes.get(scope)
        if known is None:
            known = scope.startswith(_SCOPES)
            if len(self._scopes) < _MOST_NAMES:
                self._scopes[scope] = known
        return known


def scope_of(span: ReadableSpan) -> str:
    """The name of the instrumentation that made a span."""
    scope = span.instrumentation_scope
    return "" if scope is None else scope.name


def framework_of(span: ReadableSpan) -> Framework:
    """The framework that a span's instrumentation is for, where ragaliq attaches to it as well."""
    scope = scope_of(span)
    if scope in LANGCHAIN_SCOPES:
        return "langchain"
    return "llama_index" if scope == LLAMA_INDEX_SCOPE else ""


def _part_of(attributes: Mapping[str, object]) -> Part:
    kind = kind_of(attributes)
    if kind in _RUNS:
        return Part.RUN
    if kind is Kind.EVALUATOR:
        return Part.EVALUATION
    return Part.STEP if kind in _STEPS else Part.NONE


# --- what is kept of it ---------------------------------------------------------------------------

_OVERHEAD = 600
"""Bytes of a copy without its texts, about."""
_KINDS = {kind: kind.name.lower() for kind in SpanKind}


class Copied(NamedTuple):
    """A finished span as plain data, without a reference to anything of the SDK's.

    Formatting ids and building a `TraceSpan` takes longer than the copy, so the request path leaves
    it: ids are numbers here. `size` is the bytes it takes, about.
    """

    trace_id: int
    span_id: int
    parent_id: int | None
    name: str
    kind: str
    start_ns: int
    end_ns: int
    is_error: bool
    attributes: Mapping[str, object]
    events: tuple[SpanEvent, ...]
    scope: str
    dropped: int
    size: int


def copied(span: ReadableSpan, context: SpanContext, wanted: Collection[str]) -> Copied:
    """Copy a finished span.

    Args:
        span: The span.
        context: Its own.
        wanted: Attributes that are looked for on spans of any kind.
    """
    held = span.attributes or {}
    if MARKS.isdisjoint(held):
        attributes: dict[str, object] = {name: held[name] for name in wanted if name in held}
    else:
        attributes = held.copy()  # type: ignore[attr-defined]  # a proxy has it: one step in C
    parent = span.parent
    events = tuple(
        SpanEvent(name=e.name, time_ns=e.timestamp or 0, attributes=dict(e.attributes or {}))
        for e in span.events
    )
    size = _OVERHEAD
    for value in attributes.values():
        size += getsizeof(value)
    for event in events:
        size += sum(map(getsizeof, event.attributes.values()), _OVERHEAD)
    return Copied(
        context.trace_id,
        context.span_id,
        None if parent is None else parent.span_id,
        span.name,
        _KINDS[span.kind],
        span.start_time or 0,
        span.end_time or 0,
        span.status.status_code is StatusCode.ERROR,
        attributes,
        events,
        scope_of(span),
        span.dropped_attributes,
        size,
    )


def trace_span(copy: Copied) -> TraceSpan:
    """The same as traces are read from."""
    return TraceSpan(
        trace_id=f"{copy.trace_id:032x}",
        span_id=f"{copy.span_id:016x}",
        parent_id=None if copy.parent_id is None else f"{copy.parent_id:016x}",
        name=copy.name,
        kind=copy.kind,
        start_ns=copy.start_ns,
        end_ns=copy.end_ns,
        is_error=copy.is_error,
        attributes=copy.attributes,
        events=copy.events,
        scope=copy.scope,
        dropped_attributes=copy.dropped,
    )


class Kept:
    """What all units keep together.

    Attributes:
        lock: Held while any of this changes. Re-entrant: a stream that is dropped half-read ends
            its spans from the garbage collector, which may run on this thread while it is held.
        size: Bytes of all copies, about.
        loose: By trace, the unit whose steps wait for the end of the request around them.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.size = 0
        self.loose: dict[int, Unit] = {}


class Unit:
    """A run in progress, or the steps that an application takes in one trace without a chain.

    As the registry of runs has it: `key`, `started`, `closed`, `steps`, `size`, `discard`.

    Args:
        kept: What all units keep together.
        ticket: What it was begun with; None for one that is only followed in order to leave out
            the spans below it.
        context: Of its first span.
        started: Seconds on the monotonic clock.
        start_ns: When its first span began.

    Attributes:
        top: Id of its first span; as a key, also `key`.
        trace_id: The trace it is in.
        is_sampled: Whether the application's tracer keeps its spans.
        steps: The spans that belong to it.
        open: Those of language model work that have not ended.
        spans: Copies of those that have.
        size: Bytes the copies take.
        due: Seconds on the monotonic clock when it is to be read; None while it goes on.
        closed: Whether it is followed no more.
    """

    __slots__ = (
        "closed",
        "due",
        "is_sampled",
        "kept",
        "key",
        "open",
        "size",
        "spans",
        "start_ns",
        "started",
        "steps",
        "ticket",
        "top",
        "trace_id",
    )

    def __init__(
        self,
        kept: Kept,
        ticket: OpenRun | None,
        context: SpanContext,
        *,
        started: float,
        start_ns: int,
    ) -> None:
        self.kept = kept
        self.ticket = ticket
        self.top = context.span_id
        self.key: Hashable = self.top
        self.trace_id = context.trace_id
        self.is_sampled = context.trace_flags.sampled
        self.started = started
        self.start_ns = start_ns
        self.steps: set[int] = {self.top}
        self.open: set[int] = {self.top}
        self.spans: list[Copied] = []
        self.size = 0
        self.due: float | None = None
        self.closed = False

    @property
    def is_loose(self) -> bool:
        """Whether it waits for the end of the request around it."""
        return self.kept.loose.get(self.trace_id) is self

    def keep(self, copy: Copied) -> None:
        """Keep the copy of one of its spans."""
        with self.kept.lock:
            if not self.closed:
                self.open.discard(copy.span_id)
                self.spans.append(copy)
                self.size += copy.size
                self.kept.size += copy.size

    def take_over(self, other: Unit) -> None:
        """Have the spans of another, which is closed, as well."""
        with self.kept.lock:
            self.steps |= other.steps
            self.open |= other.open
            self.spans += other.spans
            self.size += other.size
            self.kept.size += other.size
            self.start_ns = min(self.start_ns, other.start_ns)

    def release(self) -> None:
        """Take out of what all keep what is its own; once, when it has been closed."""
        with self.kept.lock:
            self.kept.size -= self.size
            if self.is_loose:
                del self.kept.loose[self.trace_id]

    def discard(self, reason: str) -> None:
        """It was given up."""
        self.release()
        if self.ticket is not None:
            self.ticket.discard(reason)
