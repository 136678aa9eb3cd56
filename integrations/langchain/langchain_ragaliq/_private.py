"""Private interfaces of other libraries: names, texts and context variables, and a run's span.

Nothing else here touches one, and one that is gone is as none; `tests/langchain/test_private.py`
asks whether each is still there, `tests/langchain/test_target.py` for the spans of tracers.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from langchain_core.callbacks import CallbackManager
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables import config as runnable_config
from langchain_core.runnables.base import RunnableBindingBase
from opentelemetry import trace

CONFIG: ContextVar[RunnableConfig | None] = getattr(
    runnable_config, "var_child_runnable_config", ContextVar("ragaliq_no_config", default=None)
)
"""Configuration of the runnable that the current task or thread runs in."""

_OPENINFERENCE = "openinference.instrumentation.langchain"
_TRACELOOP = "opentelemetry.instrumentation.langchain"
_LANGFUSE = "langfuse.langchain"
# LangGraph's classes by name: it is not imported for them.
_GRAPH, _INTERRUPT, _CONTROL_FLOW = "PregelProtocol", "GraphInterrupt", "GraphBubbleUp"

LANGGRAPH = "langgraph."
"""Beginning of the modules of LangGraph's classes."""
SEQUENCE_STEP = "seq:step:"
"""Beginning of the tag of a step of a sequence."""
EVALUATORS = "EvalChain"
"""End of the names of LangChain's own evaluators; their answers are grades."""
EACH = "RunnableEach"
"""Beginning of the name of `chain.map()`: every item is a run of its own."""
METADATA = ("ls_", "langgraph_", "checkpoint_", "lc_", "__")
"""Beginnings of the metadata that frameworks add to a run's; the rest is the application's."""
SOURCE, SUMMARY = "lc_source", "summarization"
"""Mark of a message that LangChain's middleware wrote, and its value for a summary."""
# "Successfully transferred" is also what a bank's tool says, of money.
MACHINERY = re.compile(
    r"Returning structured response|Updated todo list to |\[cleared\]"
    r"|Successfully (?:transferred|handed off) (?:back )?to [\w -]+\.?$"
)
"""Texts of agents' own machinery in a tool's place."""


def is_interrupt(error: BaseException) -> bool:
    """True if LangGraph interrupted a run to resume it later, such as for a human's approval."""
    return any(cls.__name__ == _INTERRUPT for cls in type(error).__mro__)


def is_control_flow(error: BaseException) -> bool:
    """True if LangGraph gets out of a node by it: an interrupt, or a command to another graph."""
    return any(cls.__name__ == _CONTROL_FLOW for cls in type(error).__mro__)


def is_graph(chain: Any) -> bool:
    """True if a chain is a LangGraph graph, with or without configuration bound to it."""
    while isinstance(chain, RunnableBindingBase):
        chain = chain.bound
    return any(cls.__name__ == _GRAPH for cls in type(chain).__mro__)


def span_by_run_id(run_id: UUID, callbacks: Any = None) -> tuple[str, trace.Span] | None:
    """Span of a run, and its tracer: OpenInference's, Traceloop's or Langfuse's.

    Args:
        run_id: The run.
        callbacks: Callbacks of the run; Langfuse's handler is among them.
    """
    modules = sys.modules
    if _OPENINFERENCE in modules or _TRACELOOP in modules or _LANGFUSE in modules:
        try:
            return _asked(run_id, callbacks)
        except Exception:  # noqa: BLE001 - whatever is wrong with a tracer, the run is scored
            return None
    return None


def _asked(run_id: UUID, callbacks: Any) -> tuple[str, trace.Span] | None:
    found: list[tuple[str, Any]] = []
    if _OPENINFERENCE in sys.modules:
        # Its own `get_span` prints when instrumentation is off, so the tracer is asked directly.
        tracer = getattr(sys.modules[_OPENINFERENCE].LangChainInstrumentor(), "_tracer", None)
        if tracer is not None:
            found.append(("openinference", tracer.get_span(run_id)))
    # Traceloop gives its handler to every new callback manager, and nowhere else.
    handlers = CallbackManager([]).handlers if _TRACELOOP in sys.modules else []
    for handler in (*handlers, *getattr(callbacks, "handlers", ())):
        module = type(handler).__module__
        if module.startswith(_TRACELOOP):
            found.append(("traceloop", _held(handler, "spans", run_id, "span")))
        elif module.startswith("langfuse."):  # its spans are objects around OpenTelemetry's
            names = ("_runs", "runs")
            found += [("langfuse", _held(handler, name, run_id, "_otel_span")) for name in names]
    return next((each for each in found if isinstance(each[1], trace.Span)), None)


def _held(handler: Any, name: str, run_id: UUID, attribute: str) -> Any:
    held = getattr(handler, name, None)
    return getattr(held.get(run_id), attribute, None) if isinstance(held, Mapping) else None
