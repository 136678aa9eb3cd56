"""OpenInference's span of a LlamaIndex call, which an evaluation had better speak about."""

from __future__ import annotations

import sys

from ragaliq import SpanTarget, span_target

__all__ = ["OPENINFERENCE", "openinference_target"]

OPENINFERENCE = "openinference"
_INSTRUMENTATION = "openinference.instrumentation.llama_index"


def openinference_target() -> SpanTarget | None:
    """OpenInference's span of the call in progress, if it is being traced.

    At a root's start it exists when OpenInference was attached before us, at its end when after.
    """
    # Looked up, not imported: an application without it must not pay for it.
    instrumentation = sys.modules.get(_INSTRUMENTATION)
    if instrumentation is None:
        return None
    span = instrumentation.get_current_span()
    return None if span is None else span_target(span.get_span_context(), source=OPENINFERENCE)
