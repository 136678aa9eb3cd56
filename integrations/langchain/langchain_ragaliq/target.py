"""Finding the span of a LangChain run, whoever traces it.

OpenInference never makes its span current but can be asked for it by run id: at the start where its
handler comes before ours, at the end where it comes after. So can Traceloop's handler, from the
start or from the first child on, and Langfuse's, which in asynchronous chains makes its span
current in another thread. Other instrumentations, such as OpenTelemetry's own, make their
span current inside children. Without any, the ambient span, such as the web request's, is what the
evaluation speaks about.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from opentelemetry import trace

from langchain_ragaliq._private import is_traced, langfuse_span, span_by_run_id
from ragaliq import SpanTarget, span_target

__all__ = ["TargetFinder"]


class TargetFinder:
    """Keeps the best span found so far for one root run; made when it starts."""

    __slots__ = ("_ambient", "_can_ask", "_found", "_root_id", "_source")

    def __init__(self, root_id: UUID) -> None:
        self._root_id = root_id
        self._ambient = trace.get_current_span()
        self._source = "ambient"
        self._found: trace.Span | None = None
        # Looked up once: who is to trace a run has been loaded before it.
        self._can_ask = is_traced()
        if self._can_ask:
            self._ask()

    def at_child(self, config: Mapping[str, Any] | None) -> None:
        """Look at the start of the first child.

        Args:
            config: The configuration in force there, which names all handlers.
        """
        if self._found is not None or (self._can_ask and self._ask()):
            return
        found = langfuse_span(config.get("callbacks"), self._root_id) if config else None
        if found is not None:
            self._source, self._found = "langfuse", found
            return
        span = trace.get_current_span()
        if span is not self._ambient:
            current = span.get_span_context()
            if current.is_valid and current.span_id != self._ambient.get_span_context().span_id:
                self._source, self._found = "current", span

    def at_end(self) -> SpanTarget | None:
        """The run's span, else the ambient one, else None."""
        # A span that is current in children is only a guess: an answer by run id is better.
        if self._can_ask and (self._found is None or self._source == "current"):
            self._ask()
        span = self._found or self._ambient
        if span is trace.INVALID_SPAN:
            return None
        return span_target(span.get_span_context(), source=self._source)

    def _ask(self) -> bool:
        found = span_by_run_id(self._root_id)
        if found is not None:
            self._source, self._found = found
        return found is not None
