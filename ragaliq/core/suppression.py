"""Exclude runs from capture, above all ragaliq's own judge calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextlib import suppress as undo_if_possible
from contextvars import ContextVar

_SUPPRESSED: ContextVar[bool] = ContextVar("ragaliq_suppressed", default=False)


@contextmanager
def suppress() -> Iterator[None]:
    """Capture nothing that starts inside the block; works in synchronous and async code.

    Judges are asked inside such a block, so that one built on LangChain or LlamaIndex is never
    taken for the application.
    """
    before, token = _SUPPRESSED.get(), None
    try:
        token = _SUPPRESSED.set(True)
        yield
    finally:
        if token is None:  # a signal came while it was set
            _SUPPRESSED.set(before)
        else:
            # Web frameworks leave generators that span a request in another context than they
            # entered: then there is nothing to undo, since the value went with its context.
            with undo_if_possible(ValueError):
                _SUPPRESSED.reset(token)


# Every step of every run asks: the variable's own method saves each of them a call.
is_suppressed: Callable[[], bool] = _SUPPRESSED.get
"""Whether the current context is inside `suppress()`."""
