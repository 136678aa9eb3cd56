"""Finding the span of a LangChain run, under any tracer.

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

from langchain_ragaliq._private import span_by_run_id
from ragaliq import SpanTarget, span_target


class TargetFinder:
    """Keeps the best span found so far for one root run; made when it starts."""

    __slots__ = ("_ambient", "_found", "_root_id")

    def __init__(self, root_id: UUID) -> None:
        self._root_id = root_id
        self._ambient = trace.get_current_span()
        self._found = span_by_run_id(root_id)

    def at_child(self, config: Mapping[str, Any] | None) -> None:
        """Look at the start of the first child.

        Args:
            config: The configuration in force there, which names all handlers.
        """
        if self._found is None:
            callbacks = config.get("callbacks") if config else None
            self._found = span_by_run_id(self._root_id, callbacks)
        span = trace.get_current_span()
        if self._found is None and span is not self._ambient:
            current = span.get_span_context()
            if current.is_valid and current.span_id != self._ambient.get_span_context().span_id:
                self._found = "current", span

    def at_end(self) -> SpanTarget | None:
        """The run's span, else the ambient one, else None."""
        found = self._found
        # A span that is current in children is only a guess: an answer by run id is better.
        if found is None or found[0] == "current":
            found = span_by_run_id(self._root_id) or found
        source, span = found or ("ambient", self._ambient)
        if span is trace.INVALID_SPAN:
            return None
        return span_target(span.get_span_context(), source=source)
