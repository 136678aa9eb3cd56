"""Private interfaces of tracers: the span of a run by the run's id, where one of them keeps it.

Nothing else here touches one, and a tracer that keeps its spans elsewhere is as none;
`tests/langchain/test_private.py` asks whether each is still there.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from langchain_core.callbacks import CallbackManager
from opentelemetry import trace

__all__ = ["is_traced", "langfuse_span", "span_by_run_id"]

_OPENINFERENCE = "openinference.instrumentation.langchain"
_TRACELOOP = "opentelemetry.instrumentation.langchain"
_LANGFUSE = "langfuse.langchain"


def is_traced() -> bool:
    """Whether a tracer is loaded that `span_by_run_id` can ask."""
    return _OPENINFERENCE in sys.modules or _TRACELOOP in sys.modules


def span_by_run_id(run_id: UUID) -> tuple[str, trace.Span] | None:
    """The span of a run, and whose it is, by OpenInference or Traceloop."""
    try:
        return _span_by_run_id(run_id)
    except Exception:  # noqa: BLE001 - whatever is wrong with a tracer, the run is scored
        return None


def _span_by_run_id(run_id: UUID) -> tuple[str, trace.Span] | None:
    if _OPENINFERENCE in sys.modules:
        # Its own `get_span` prints when instrumentation is off, so the tracer is asked directly.
        instrumentor = sys.modules[_OPENINFERENCE].LangChainInstrumentor()
        get_span = getattr(getattr(instrumentor, "_tracer", None), "get_span", None)
        span = get_span(run_id) if get_span is not None else None
        if isinstance(span, trace.Span):
            return "openinference", span
    # It gives its handler to every new callback manager, and nowhere else.
    for handler in CallbackManager([]).handlers if _TRACELOOP in sys.modules else ():
        if type(handler).__module__.startswith(_TRACELOOP):
            span = _held(handler, "spans", run_id, "span")
            if span is not None:
                return "traceloop", span
    return None


def langfuse_span(callbacks: Any, run_id: UUID) -> trace.Span | None:
    """The span of a run by the Langfuse handler among a run's callbacks."""
    for handler in getattr(callbacks, "handlers", ()) if _LANGFUSE in sys.modules else ():
        if type(handler).__module__.startswith("langfuse."):
            # Its spans are objects of its own around OpenTelemetry's.
            span = _held(handler, "_runs", run_id, "_otel_span")
            return span or _held(handler, "runs", run_id, "_otel_span")
    return None


def _held(handler: Any, name: str, run_id: UUID, attribute: str) -> trace.Span | None:
    held = getattr(handler, name, None)
    span = getattr(held.get(run_id), attribute, None) if isinstance(held, Mapping) else None
    return span if isinstance(span, trace.Span) else None
