"""Telling an evaluator's own queries from the application's."""

from __future__ import annotations

import sys

from llama_index.core.evaluation import BaseEvaluator

__all__ = ["is_in_evaluator"]

_FRAMES = 16


def is_in_evaluator() -> bool:
    """Whether the call in progress was made by one of LlamaIndex's evaluators.

    Faithfulness and relevancy there ask a query engine of their own, whose spans look like an
    application's, and nothing around them has a span. What can be seen is the call itself: an
    `aevaluate` that awaits a query is still on the stack. To look costs a
    microsecond or two, once a run.
    """
    frame = sys._getframe(1)
    for _ in range(_FRAMES):
        outer = frame.f_back
        if outer is None:
            return False
        frame = outer
        if frame.f_code.co_name == "aevaluate":
            return isinstance(frame.f_locals.get("self"), BaseEvaluator)
    return False
