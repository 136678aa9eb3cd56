"""The span an evaluation speaks about."""

from __future__ import annotations

import logging
import secrets

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from ragaliq.core.run import SpanTarget

__all__ = [
    "current_span_target",
    "span_target",
    "target_context",
    "target_span_context",
    "unsampled_context",
]

logger = logging.getLogger(__name__)


def span_target(context: trace.SpanContext, *, source: str) -> SpanTarget | None:
    """The target for a span context, or None where it is not valid.

    Args:
        context: The span's context.
        source: How it was found, such as `openinference` or `ambient`.
    """
    if not context.is_valid:
        return None
    return SpanTarget(
        trace_id=f"{context.trace_id:032x}",
        span_id=f"{context.span_id:016x}",
        trace_flags=int(context.trace_flags),
        source=source,
    )


def current_span_target(*, source: str = "ambient") -> SpanTarget | None:
    """The current span as a target, or None outside any span; never raises."""
    try:
        return span_target(trace.get_current_span().get_span_context(), source=source)
    except Exception as error:  # noqa: BLE001 - another library's span may do anything
        logger.debug("the current span could not be read: %s", type(error).__name__)
        return None


def target_span_context(target: SpanTarget) -> SpanContext:
    """The target as OpenTelemetry's API names a span elsewhere."""
    return SpanContext(
        trace_id=int(target.trace_id, 16),
        span_id=int(target.span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(target.trace_flags),
    )


def target_context(target: SpanTarget | None) -> Context:
    """A context in which the target is the current span; an empty one without a target."""
    if target is None:
        return Context()
    return trace.set_span_in_context(NonRecordingSpan(target_span_context(target)), Context())


def unsampled_context() -> Context:
    """A context in a trace that nobody records."""
    unsampled = SpanContext(
        trace_id=secrets.randbits(128) or 1, span_id=secrets.randbits(64) or 1, is_remote=True
    )
    return trace.set_span_in_context(NonRecordingSpan(unsampled), Context())
