"""Private interfaces of other libraries: LlamaIndex's ids, names, context variables and callers.

Nothing else here touches one, and one that is gone is as none; `tests/llama_index/test_private.py`
asks whether each is still there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import ContextVar
from types import FrameType
from typing import Any

from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.instrumentation import dispatcher
from llama_index.core.instrumentation import span as spans
from llama_index.core.memory import BaseMemory

from ragaliq import SpanTarget, span_target

ID_END = len("-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
"""Length of the end of a span's id, which is like `Class.method-uuid`."""
GENERATION = "Generation."
"""Beginning of the ids of a synthesizer that is given nodes and shows its model none of them."""
RERANK = "_postprocess_nodes"
"""Method of rerankers that has a span."""
WRITE = "write_response_to_history"
"""Method of a chat engine's stream that has a span."""
SPAN_ID: ContextVar[str | None] = getattr(
    spans, "active_span_id", ContextVar("ragaliq_no_span", default=None)
)
"""Id of LlamaIndex's current span."""
TAGS: ContextVar[dict[str, Any] | None] = getattr(
    dispatcher, "active_instrument_tags", ContextVar("ragaliq_no_tags", default=None)
)
"""Tags of `instrument_tags` around the current call."""
OPENINFERENCE = "openinference"

_INSTRUMENTATION = "openinference.instrumentation.llama_index"
_WAITING = "WaitingForEvent"  # of the workflows, raised to get out of a step
_FRAMES = 16
_frame_at: Callable[[int], FrameType | None] = getattr(sys, "_getframe", lambda _: None)
_CALLERS = frozenset({"aevaluate", "_add_nodes_to_index"})


def is_waiting(error: BaseException) -> bool:
    """True if a step of a workflow waits for an event, such as a human's answer."""
    return type(error).__name__ == _WAITING


def memory_of(engine: BaseChatEngine) -> BaseMemory | None:
    """Memory of a chat engine: all of LlamaIndex's have it under this name, and no public one."""
    own = getattr(engine, "_memory", None)
    return own if isinstance(own, BaseMemory) else None


def openinference_target() -> SpanTarget | None:
    """Span of the current call by OpenInference, if it is traced.

    At a root's start it exists when OpenInference was attached before us, at its end when after.
    """
    # Looked up, not imported: an application without it must not pay for it.
    instrumentation = sys.modules.get(_INSTRUMENTATION)
    if instrumentation is None:
        return None
    # Asked while it traces nothing, it would load its handlers' module in the request.
    if not instrumentation.LlamaIndexInstrumentor().is_instrumented_by_opentelemetry:
        return None
    span = instrumentation.get_current_span()
    return None if span is None else span_target(span.get_span_context(), source=OPENINFERENCE)


def is_called_by(kind: type | tuple[type, ...]) -> bool:
    """True if a method of such an object made the current call.

    Faithfulness and relevancy in LlamaIndex ask a query engine of their own, whose spans look like
    an application's, and nothing around them has a span; so do indices that summarise what they
    hold. What can be seen is the call itself: an `aevaluate` that awaits a query is still on the
    stack. To look costs a microsecond or two.
    """
    frame = _frame_at(2)  # above the caller of this function
    for _ in range(_FRAMES):
        if frame is None:
            return False
        if frame.f_code.co_name in _CALLERS:
            return isinstance(frame.f_locals.get("self"), kind)
        frame = frame.f_back
    return False
