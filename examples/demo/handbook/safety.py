"""Making text of the application safe to show in a terminal.

Answers and documents are untrusted: escape sequences could move the cursor, retitle the window or
hide what was said, and square brackets would be taken for rich's markup. Text goes into
`rich.text.Text`, which knows no markup; what a terminal would act on is replaced here.
"""

from __future__ import annotations

import unicodedata

from rich.text import Text

__all__ = ["clean", "safe_text"]

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_KEPT = frozenset("\n\t\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}")
# Control, format (also what reverses the reading direction), surrogate, private use, separators.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def clean(text: str) -> str:
    """The text with every unsafe character replaced by one other, so that offsets still fit."""
    return "".join(REPLACEMENT if _is_unsafe(character) else character for character in text)


def safe_text(text: str, style: str = "") -> Text:
    """Untrusted text, ready to print."""
    return Text(clean(text), style=style)


def _is_unsafe(character: str) -> bool:
    return character not in _KEPT and unicodedata.category(character) in _UNSAFE
