"""Exceptions of the application that our code passes on: its time limits."""

from __future__ import annotations

import signal
from functools import partial


def is_from_signal(error: BaseException) -> bool:
    """True if a signal handler of the application raised the error, such as a task's time limit.

    Python runs handlers between any two steps of the main thread, ours included. An error contained
    as a failure of ours would never reach the task that the time limit is for.
    """
    if (trace := error.__traceback__) is None:
        return False
    codes = {
        getattr(_function_of(signal.getsignal(number)), "__code__", None)
        for number in signal.valid_signals()
    }
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def _function_of(handler: object) -> object:
    while isinstance(handler, partial):
        handler = handler.func
    return getattr(handler, "__func__", handler)
