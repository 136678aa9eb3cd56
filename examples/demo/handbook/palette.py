"""How verdicts look. Never by colour alone: a sign and a word always accompany it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["FAIL", "PASS", "UNDECIDED", "VERDICTS", "VerdictLook", "look_of"]


@dataclass(frozen=True)
class VerdictLook:
    """Sign, word and colour of a verdict.

    Attributes:
        sign: One ASCII character, for terminals of any encoding and for readers without colour.
        word: What the verdict is called.
        color: Six hex digits; of medium luminance, so that it is readable on white and on black.
        weight: The heavier verdict is shown where claims overlap in the answer.
    """

    sign: str
    word: str
    color: str
    weight: int

    @property
    def style(self) -> str:
        """As rich writes it."""
        return f"bold {self.color}"


VERDICTS: Final = {
    "SUPPORTED": VerdictLook("+", "supported", "#008700", 0),
    "NOT_ENOUGH_INFO": VerdictLook("?", "not enough info", "#875fd7", 1),
    "CONTRADICTED": VerdictLook("x", "contradicted", "#d70000", 2),
}
UNDECIDED: Final = VerdictLook("-", "no verdict", "#767676", 0)
PASS: Final = VERDICTS["SUPPORTED"].style
FAIL: Final = VERDICTS["CONTRADICTED"].style


def look_of(verdict: str | None) -> VerdictLook:
    """The look of a verdict; claims without one have their own."""
    return VERDICTS.get(verdict or "", UNDECIDED)
