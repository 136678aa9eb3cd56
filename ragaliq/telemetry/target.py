"""The span an evaluation speaks about."""

from __future__ import annotations

import logging

from opentelemetry import trace

from ragaliq.core.run import SpanTarget

__all__ = ["current_span_target", "span_target"]

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
