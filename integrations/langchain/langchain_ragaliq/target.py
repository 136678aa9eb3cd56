"""Finding the span of a LangChain run, whoever traces it.

OpenInference never makes its span current but can be asked for it by run id: at the start where its
handler comes before ours, at the end where it comes after. So can Traceloop's handler, from the
start or from the first child on, and Langfuse's, which in asynchronous chains makes its span
current in another thread. Other instrumentations, such as OpenTelemetry's own, make their
span current inside children. Without any, the ambient span, such as the web request's, is what the
evaluation speaks about.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from langchain_core.callbacks import CallbackManager
from opentelemetry import trace

from ragaliq import SpanTarget, span_target

__all__ = ["TargetFinder"]

_OPENINFERENCE = "openinference.instrumentation.langchain"
_TRACELOOP = "opentelemetry.instrumentation.langchain"
_LANGFUSE = "langfuse.langchain"


class TargetFinder:
    """Keeps the best span found so far for one root run."""

    __slots__ = ("_ambient", "_can_ask", "_found", "_root_id", "_source")

    def __init__(self, root_id: UUID) -> None:
        self._root_id = root_id
        self._ambient: trace.Span = trace.INVALID_SPAN
        self._can_ask = False
        self._source = "ambient"
        self._found: trace.SpanContext | None = None

    def at_start(self) -> None:
        """Look at the start of the run."""
        self._ambient = trace.get_current_span()
        # Looked up once: who is to trace a run has been loaded before it.
        self._can_ask = _OPENINFERENCE in sys.modules or _TRACELOOP in sys.modules
        if self._can_ask:
            self._ask()

    def at_child(self, config: Mapping[str, Any] | None) -> None:
        """Look at the start of the first child.

        Args:
            config: The configuration in force there, which names all handlers.
        """
        if self._found is not None or (self._can_ask and self._ask()):
            return
        if config and _LANGFUSE in sys.modules:
            found = _langfuse_span(config.get("callbacks"), self._root_id)
            if found is not None:
                self._source, self._found = "langfuse", found.get_span_context()
                return
        span = trace.get_current_span()
        if span is self._ambient:
            return
        current = span.get_span_context()
        if current.is_valid and current.span_id != self._ambient.get_span_context().span_id:
            self._source, self._found = "current", current

    def at_end(self) -> SpanTarget | None:
        """The run's span, else the ambient one, else None."""
        # A span that is current in children is only a guess: an answer by run id is better.
        if self._can_ask and (self._found is None or self._source == "current"):
            self._ask()
        if self._found is not None:
            return span_target(self._found, source=self._source)
        if self._ambient is trace.INVALID_SPAN:
            return None
        return span_target(self._ambient.get_span_context(), source="ambient")

    def _ask(self) -> bool:
        """Ask those who know a run's span by its id."""
        for source, span_of in (
            ("openinference", _openinference_span),
            ("traceloop", _traceloop_span),
        ):
            span = span_of(self._root_id)
            if span is not None:
                self._source, self._found = source, span.get_span_context()
                return True
        return False


def _openinference_span(run_id: UUID) -> trace.Span | None:
    module = sys.modules.get(_OPENINFERENCE)
    if module is None:
        return None
    # Its own `get_span` prints when instrumentation is off, so the tracer is asked directly.
    tracer: Any = getattr(module.LangChainInstrumentor(), "_tracer", None)
    return tracer.get_span(run_id) if tracer is not None else None


def _traceloop_span(run_id: UUID) -> trace.Span | None:
    if _TRACELOOP not in sys.modules:
        return None
    # It gives its handler to every new callback manager, and nowhere else.
    for handler in CallbackManager([]).handlers:
        if type(handler).__module__.startswith(_TRACELOOP):
            known: Any = getattr(handler, "spans", {}).get(run_id)
            return getattr(known, "span", None)
    return None


def _langfuse_span(callbacks: Any, run_id: UUID) -> trace.Span | None:
    # Its spans are objects of its own around OpenTelemetry's, by run id; private, so asked gently.
    for handler in getattr(callbacks, "handlers", ()):
        if type(handler).__module__.startswith("langfuse."):
            runs: Any = getattr(handler, "_runs", None) or getattr(handler, "runs", None)
            known: Any = runs.get(run_id) if isinstance(runs, Mapping) else None
            span = getattr(known, "_otel_span", None)
            if isinstance(span, trace.Span):
                return span
    return None
