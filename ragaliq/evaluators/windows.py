"""Splitting what is too long for one question to a judge, so that nothing is cut off silently."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["ContextPart", "split_context", "split_text"]

# Where a text may be cut, best first: between paragraphs, lines, sentences, words.
_BOUNDARIES = (
    re.compile(r"\n\s*\n"),
    re.compile(r"\n"),
    re.compile(r"[.!?]\s+|[。！？]\s*"),  # a point inside 3.14 or an address ends no sentence
    re.compile(r"\s"),
)
_LEAST_FILLED = 0.5


@dataclass(frozen=True, kw_only=True)
class ContextPart:
    """Some of the chunks, or pieces of chunks, that fit into one question.

    Attributes:
        texts: What the judge sees.
        positions: For each text, the position of its chunk in the whole context.
    """

    texts: tuple[str, ...]
    positions: tuple[int, ...]


def split_context(texts: Sequence[str], limit: int | None) -> list[ContextPart]:
    """Divide chunks into parts of at most `limit` characters, in order.

    A chunk that is longer than the limit is cut at paragraph, line, sentence or word boundaries.

    Args:
        texts: The chunks.
        limit: Characters a part may have; None for no limit.

    Returns:
        At least one part; every character of every chunk is in exactly one.
    """
    parts: list[ContextPart] = []
    held: list[tuple[int, str]] = []
    size = 0
    for position, text in enumerate(texts):
        for piece in split_text(text, limit):
            if held and limit is not None and size + len(piece) > limit:
                parts.append(_part(held))
                held, size = [], 0
            held.append((position, piece))
            size += len(piece)
    if held or not parts:
        parts.append(_part(held))
    return parts


def split_text(text: str, limit: int | None) -> list[str]:
    """Cut a text into pieces of at most `limit` characters that together are the text."""
    if limit is None or len(text) <= limit:
        return [text]
    return list(_pieces(text, limit))


def _pieces(text: str, limit: int) -> Iterator[str]:
    start = 0
    while len(text) - start > limit:
        end = _cut(text, start, start + limit)
        yield text[start:end]
        start = end
    yield text[start:]


def _cut(text: str, start: int, end: int) -> int:
    earliest = start + int((end - start) * _LEAST_FILLED)
    for boundary in _BOUNDARIES:
        cuts = [match.end() for match in boundary.finditer(text, earliest, end)]
        if cuts:
            return cuts[-1]
    return end


def _part(held: Sequence[tuple[int, str]]) -> ContextPart:
    return ContextPart(
        texts=tuple(text for _, text in held), positions=tuple(position for position, _ in held)
    )
