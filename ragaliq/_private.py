"""Private interfaces of other libraries, each with what is done where it is missing.

Nothing else in ragaliq touches one; `tests/architecture/test_private.py` asks whether each is still
there.
"""

from __future__ import annotations

import os
from importlib import import_module

__all__ = ["working_folder"]


def working_folder() -> str:
    """`os.getcwd()`, which touches no disk; `blockbuster` counts it among the calls that do."""
    found = getattr(import_module(os.name), "getcwd", os.getcwd)()
    return str(found)
