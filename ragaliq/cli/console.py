"""The terminal: results on standard output, everything else on standard error.

Text of applications is untrusted here too: control characters could rewrite what is on the screen,
and rich's markup could dress one thing up as another.
"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ragaliq.core.printable import printable

__all__ = ["errors", "output", "plain"]

output = Console(highlight=False, soft_wrap=True)
errors = Console(stderr=True, highlight=False, soft_wrap=True)


def plain(text: str, *, limit: int | None = None, style: str = "") -> Text:
    """Text as it may be printed: one line, no control characters, no markup.

    Args:
        text: Of any origin.
        limit: Characters to show; longer text ends in an ellipsis.
        style: A rich style.
    """
    return Text(printable(text, limit=limit), style=style)
