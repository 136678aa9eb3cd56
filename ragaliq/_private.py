"""Private interfaces of other libraries, each with what is done where it is missing.

Nothing else in ragaliq touches one; `tests/core/test_private.py` asks whether each is still there.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from importlib import import_module


def suppress_instrumentation_key() -> str:
    """The key in OpenTelemetry's context that keeps instrumentations from tracing a call."""
    # Named at run time: `core` imports this module, and no OpenTelemetry.
    context = import_module("opentelemetry.context")
    key = getattr(context, "_SUPPRESS_INSTRUMENTATION_KEY", "suppress_instrumentation")
    return str(key)


_API = ("opentelemetry.trace", "opentelemetry.metrics", "opentelemetry._logs")


def is_unset(provider: object) -> bool:
    """True for what OpenTelemetry's API returns as provider until one is set."""
    # Public for traces only.
    return type(provider).__name__.lstrip("_").startswith("Proxy")


def is_stand_in(provider: object) -> bool:
    """True for a provider of OpenTelemetry's API itself, which exports nothing."""
    return type(provider).__module__.startswith(_API)


def working_folder() -> str:
    """`os.getcwd()`, which touches no disk; `blockbuster` counts it among the calls that do."""
    found = getattr(import_module(os.name), "getcwd", os.getcwd)()
    return str(found)


def is_loop_running() -> bool:
    """True where an event loop runs in this thread; the public function raises where none does."""
    running = getattr(asyncio, "_get_running_loop", None)
    if running is not None:
        return running() is not None
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def patched_by() -> str | None:
    """Name of the library that replaced threads by greenlets: gevent, eventlet or None."""
    gevent = sys.modules.get("gevent.monkey")
    if gevent is not None and gevent.is_module_patched("threading"):
        return "gevent"
    eventlet = sys.modules.get("eventlet.patcher")
    if eventlet is not None and eventlet.is_monkey_patched("thread"):
        return "eventlet"
    return None


def register_before_threads_end(hook: Callable[[], object]) -> bool:
    """Call `hook` when the main thread has ended and before executors are closed.

    Returns:
        False where Python has no such hook: `atexit` runs later.
    """
    register = getattr(threading, "_register_atexit", None)
    if register is None:
        return False
    register(hook)
    return True
