"""Finding the span of a LangChain run, whoever traces it.

OpenInference never makes its span current but can be asked for it by run id: at the start where its
handler comes before ours, at the end where it comes after. Other instrumentations make their span
current inside children. Without any, the ambient span, such as the web request's,
is what the evaluation speaks about.
"""

from __future__ import annotations

import sys
from typing import Any
from uuid import UUID

from opentelemetry import trace

from ragaliq import SpanTarget, span_target

__all__ = ["TargetFinder"]

_OPENINFERENCE = "openinference.instrumentation.langchain"


class TargetFinder:
    """Keeps the best span found so far for one root run."""

    __slots__ = ("_ambient", "_found", "_root_id", "_source")

    def __init__(self, root_id: UUID) -> None:
        self._root_id = root_id
        self._ambient = trace.INVALID_SPAN_CONTEXT
        self._source = "openinference"
        self._found: trace.SpanContext | None = None

    def at_start(self) -> None:
        """Look at the start of the run."""
        self._ambient = trace.get_current_span().get_span_context()
        self._found = _openinference_span(self._root_id)

    def at_child(self) -> None:
        """Look at the start of the first child."""
        if self._found is None:
            current = trace.get_current_span().get_span_context()
            if current.is_valid and current.span_id != self._ambient.span_id:
                self._source, self._found = "current", current

    def at_end(self) -> SpanTarget | None:
        """The run's span, else the ambient one, else None."""
        found = self._found
        # A span that is current in children is only a guess: OpenInference's own answer is better.
        if found is None or self._source != "openinference":
            asked = _openinference_span(self._root_id)
            if asked is not None:
                self._source, found = "openinference", asked
        if found is not None:
            return span_target(found, source=self._source)
        return span_target(self._ambient, source="ambient")


def _openinference_span(run_id: UUID) -> trace.SpanContext | None:
    module = sys.modules.get(_OPENINFERENCE)
    if module is None:
        return None
    # Its own `get_span` prints when instrumentation is off, so the tracer is asked directly.
    tracer: Any = getattr(module.LangChainInstrumentor(), "_tracer", None)
    span = tracer.get_span(run_id) if tracer is not None else None
    return span.get_span_context() if span is not None else None
