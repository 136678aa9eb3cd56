"""Text of any origin made safe for files and terminals."""

from __future__ import annotations

import re
from unicodedata import category

_SURROGATE = re.compile("[\ud800-\udfff]")


def encodable(text: str) -> str:
    """Remove lone surrogates, which JSON can spell but no encoding can carry."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


UNSEEN = "\u00ad\u200b\u2060\ufeff\U000e0000-\U000e007f"
"""Characters without width, for a pattern: soft hyphens, zero-width spaces, tag characters."""

_FLAG = "\U0001f3f4[\U000e0061-\U000e007a]{5}\U000e007f"  # of England, Scotland or Wales
_HIDDEN = re.compile(f"({_FLAG})|[{UNSEEN}]")


def visible(text: str) -> str:
    """Remove characters that no reader sees and a model may read, as in a hidden instruction.

    Joiners stay: Persian, Indic scripts and emoji need them.
    """
    return text if text.isascii() else _HIDDEN.sub(r"\1", text)


def printable(text: str, *, limit: int | None = None) -> str:
    """Put text on one line, without control characters that could rewrite the screen.

    Args:
        text: Of any origin.
        limit: Characters to show; longer text ends in an ellipsis.
    """
    if limit is not None and len(text) > limit:
        text = text[: limit - 1] + "…"
    if text.isprintable():
        return text
    for blank in "\n\r\t":
        text = text.replace(blank, " ")
    # Cc and Cf hold escape sequences and the marks that reverse text direction, Cs lone surrogates.
    return "".join("\N{REPLACEMENT CHARACTER}" if category(c)[0] == "C" else c for c in text)
