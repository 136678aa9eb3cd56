"""Text cut where ranges begin and end, so that a page can mark them without counting characters.

Done here and not in the page: JavaScript counts UTF-16 units, Python code points, and a range
behind an emoji would shift.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

__all__ = ["Segment", "cut"]

Segment = tuple[str, list[int]]
"""A piece of text, and the numbers of the ranges that cover all of it."""


def cut(text: str, ranges: Iterable[tuple[int, int, int]]) -> list[Segment]:
    """Cut `text` at the ends of ranges; the pieces joined are the text.

    Args:
        text: The whole.
        ranges: `(start, end, number)`; may overlap. One that does not lie within the text, or is
            empty, is passed over.
    """
    valid = [(start, end, number) for start, end, number in ranges if 0 <= start < end <= len(text)]
    places = sorted(
        {0, len(text), *(start for start, _, _ in valid), *(end for _, end, _ in valid)}
    )
    pieces: list[Segment] = []
    for start, end in pairwise(places):
        covering = sorted({number for a, b, number in valid if a <= start and end <= b})
        pieces.append((text[start:end], covering))
    return pieces
