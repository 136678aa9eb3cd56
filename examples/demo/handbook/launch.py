"""Runs a demo and turns what went wrong into one sentence and an exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from handbook.errors import DemoError
from ragaliq import RagaliqError

__all__ = ["launch"]


def launch(run: Callable[[], None], *, about: str) -> int:
    """Run it.

    Args:
        run: The demo.
        about: Shown for `--help`; the demos take no other argument.

    Returns:
        The exit code: 0, or 1 with a message on standard error.
    """
    raw = argparse.RawDescriptionHelpFormatter
    argparse.ArgumentParser(description=about, formatter_class=raw).parse_args()
    for stream in (sys.stdout, sys.stderr):
        # Text of the application must not stop the demo where the terminal cannot show it.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        run()
    except (DemoError, RagaliqError) as problem:
        print(f"demo: {problem}", file=sys.stderr)
        return 1
    return 0
