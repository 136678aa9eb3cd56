"""Private interfaces of other libraries, each with what is done where it is missing.

Nothing else in ragaliq touches one; `tests/architecture/test_private.py` asks whether each is still
there.
"""

from __future__ import annotations

import os
from importlib import import_module

__all__ = ["suppress_instrumentation_key", "working_folder"]


def suppress_instrumentation_key() -> str:
    """The key in OpenTelemetry's context that keeps instrumentations from tracing a call."""
    # Named at run time: `core` imports this module, and no OpenTelemetry.
    context = import_module("opentelemetry.context")
    key = getattr(context, "_SUPPRESS_INSTRUMENTATION_KEY", "suppress_instrumentation")
    return str(key)


def working_folder() -> str:
    """`os.getcwd()`, which touches no disk; `blockbuster` counts it among the calls that do."""
    found = getattr(import_module(os.name), "getcwd", os.getcwd)()
    return str(found)
