"""The one error the demos report as a sentence instead of a traceback."""

from __future__ import annotations

__all__ = ["DemoError"]


class DemoError(Exception):
    """Something is wrong that the person who runs the demo can read and act on."""
