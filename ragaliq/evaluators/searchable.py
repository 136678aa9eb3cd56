"""A text in which many quotes are looked for: what all searches need is computed once."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from typing import NamedTuple

from rapidfuzz import fuzz

__all__ = ["SearchableText", "numbers_in"]

_SHORTEST_FUZZY = 12
_LONGEST_FUZZY = 20_000
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_WORD = re.compile(r"\S+")


def numbers_in(text: str) -> set[str]:
    """The numbers a text mentions, as they are written."""
    return set(_NUMBER.findall(text))


class _Squeezed(NamedTuple):
    """A text with one blank between words, and where each word stands there and in the original."""

    text: str
    starts: list[int]
    origins: list[int]


class SearchableText:
    """Finds quotes in a text, more and less exactly; spans are `(start, end)` in characters.

    Args:
        text: The text.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def find(self, quote: str, start: int = 0) -> tuple[int, int] | None:
        """The quote as it is, or with other white space and case; after `start` if it is there."""
        for begin in (start, 0) if start else (0,):
            position = self.text.find(quote, begin)
            if position >= 0:
                return position, position + len(quote)
        return self._find_spaced(quote, start)

    def find_similar(self, quote: str, cutoff: float) -> tuple[int, int] | None:
        """The passage most like the quote (rapidfuzz's partial ratio), from `cutoff` of 100 on."""
        # Short strings match almost anywhere; very long ones cost more than a highlight is worth.
        if len(quote) < _SHORTEST_FUZZY or len(self.text) > _LONGEST_FUZZY:
            return None
        if len(quote) > len(self.text):
            return None
        match = fuzz.partial_ratio_alignment(_lowered(quote), self._lower, score_cutoff=cutoff)
        if match is None or match.dest_end <= match.dest_start:
            return None
        return match.dest_start, match.dest_end

    @cached_property
    def numbers(self) -> set[str]:
        """The numbers the text mentions."""
        return numbers_in(self.text)

    @cached_property
    def _lower(self) -> str:
        return _lowered(self.text)

    @cached_property
    def _squeezed(self) -> _Squeezed:
        words, starts, origins, length = [], [], [], 0
        for match in _WORD.finditer(self._lower):
            words.append(match.group())
            starts.append(length)
            origins.append(match.start())
            length += len(words[-1]) + 1
        return _Squeezed(" ".join(words), starts, origins)

    def _find_spaced(self, quote: str, start: int) -> tuple[int, int] | None:
        words = _lowered(quote).split()
        if len(words) < 2:
            return None
        needle, (text, starts, origins) = " ".join(words), self._squeezed
        position = text.find(needle, self._squeezed_position(start)) if start else -1
        if position < 0:
            position = text.find(needle)
        if position < 0:
            return None

        def original(index: int) -> int:
            word = bisect_right(starts, index) - 1
            return origins[word] + index - starts[word]

        return original(position), original(position + len(needle) - 1) + 1

    def _squeezed_position(self, start: int) -> int:
        text, starts, origins = self._squeezed
        word = bisect_right(origins, start) - 1
        if word < 0:
            return 0
        end = starts[word + 1] if word + 1 < len(starts) else len(text)
        return min(starts[word] + start - origins[word], end)


def _lowered(text: str) -> str:
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    # Lower-casing can change the length of a text (İ becomes two characters): offsets would lie.
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)
