"""The terminal: results on standard output, everything else on standard error.

Text of applications is untrusted here too: control characters could rewrite what is on the screen,
and rich's markup could dress one thing up as another.
"""

from __future__ import annotations

import unicodedata

from rich.console import Console
from rich.text import Text

__all__ = ["errors", "output", "plain"]

output = Console(highlight=False, soft_wrap=True)
errors = Console(stderr=True, highlight=False, soft_wrap=True)

_KEPT = {"\n": " ", "\t": " "}


def plain(text: str, *, limit: int | None = None, style: str = "") -> Text:
    """Text as it may be printed: one line, no control characters, no markup.

    Args:
        text: Of any origin.
        limit: Characters to show; longer text ends in an ellipsis.
        style: A rich style.
    """
    if limit is not None and len(text) > limit:
        text = text[: limit - 1] + "…"
    return Text("".join(_shown(character) for character in text), style=style)


def _shown(character: str) -> str:
    if character in _KEPT:
        return _KEPT[character]
    # Cc and Cf hold escape sequences and the marks that turn text around, Cs lone surrogates.
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(character)[0] == "C" else character
