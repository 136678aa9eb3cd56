"""Finding a quote in the text it is quoted from.

Judges resolve pronouns, normalise white space and trim, so a quote is looked for exactly first,
then with white space and case ignored, then as the best fuzzy match. Evidence that matches only
roughly must at least hold the quote's numbers.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from rapidfuzz import fuzz

from ragaliq.core.concurrency import Breather
from ragaliq.core.results import EvidenceSpan
from ragaliq.core.test_case import ChunkId

__all__ = ["CLAIM_CUTOFF", "EvidenceFinder", "SearchableText", "locate"]


CLAIM_CUTOFF = 75.0
"""Least similarity, 0 to 100, at which a reworded claim counts as found in the answer."""

EVIDENCE_CUTOFF = 90.0
"""Least similarity, 0 to 100, at which a quote counts as really occurring in a chunk."""

_LONGEST_NUMBER = 20
_ELLIPSIS = re.compile(r"\s*(?:\[\.\.\.\]|\.\.\.|…)\s*")
_QUOTATION_MARKS = '"“”«»'

_Place = tuple[int, int, int]
"""Position of a chunk, start and end in it."""


def locate(
    quote: str, text: SearchableText, *, cutoff: float, start: int = 0
) -> tuple[int, int] | None:
    """Where `quote` stands in `text`.

    Args:
        quote: What is looked for.
        text: Where.
        cutoff: Least similarity of a fuzzy match, 0 to 100.
        start: Preferred start: a match from here on wins over an earlier one.

    Returns:
        `(start, end)` in characters, or None.
    """
    quote = _bare(quote)
    if not quote:
        return None
    return text.find(quote, start) or text.find_similar(quote, cutoff)


class EvidenceFinder:
    """Finds quotes in the context of one case; a quote that was found before costs nothing.

    An answer of many claims, with invented quotes, takes seconds of searching. So a search lets
    others run now and then, and ends when it is cancelled.

    Args:
        context: The chunks.
    """

    def __init__(self, context: Sequence[str]) -> None:
        self._texts = [SearchableText(text) for text in context]
        self._found: dict[tuple[str, tuple[int, ...]], tuple[_Place, ...]] = {}
        self._breather = Breather()

    async def find(
        self, evidence: str, ids: Sequence[ChunkId], preferred: Sequence[int] = ()
    ) -> tuple[EvidenceSpan, ...]:
        """Where the parts of a quote stand in the context.

        Args:
            evidence: A quote; an ellipsis separates parts that may stand apart.
            ids: The chunks' ids, in their order.
            preferred: Positions of chunks to look in first.

        Returns:
            One span for each part when every part was found; otherwise nothing, because a quote of
            which a part is made up is not evidence.
        """
        key = evidence, tuple(preferred)
        if key not in self._found:
            self._found[key] = await self._places(evidence, preferred)
        return tuple(EvidenceSpan(ids[chunk], start, end) for chunk, start, end in self._found[key])

    async def _places(self, evidence: str, preferred: Sequence[int]) -> tuple[_Place, ...]:
        others = (i for i in range(len(self._texts)) if i not in preferred)
        order = [*(i for i in preferred if 0 <= i < len(self._texts)), *others]
        places = []
        for part in _ELLIPSIS.split(evidence):
            if not (quote := _bare(part)):
                continue
            place = None
            for attempt in self._attempts(quote, order):
                await self._breather.pause_if_due()
                if (place := attempt) is not None:
                    break
            if place is None:
                return ()
            places.append(place)
        return tuple(places)

    def _attempts(self, quote: str, order: Sequence[int]) -> Iterator[_Place | None]:
        """Look in one chunk after the other, exactly and then roughly."""
        for chunk in order:
            span = self._texts[chunk].find(quote)
            yield (chunk, *span) if span else None
        numbers = numbers_in(quote)
        for chunk in order:
            text = self._texts[chunk]
            span = text.find_similar(quote, EVIDENCE_CUTOFF) if numbers <= text.numbers else None
            yield (chunk, *span) if span and _holds(numbers, text, span) else None


def _bare(quote: str) -> str:
    return quote.strip().strip(_QUOTATION_MARKS)


def _holds(numbers: set[str], text: SearchableText, span: tuple[int, int]) -> bool:
    # One digit makes little difference to the similarity and all the difference to a quote. The
    # match may begin or end inside a number, so look a little further.
    near = text.text[max(0, span[0] - _LONGEST_NUMBER) : span[1] + _LONGEST_NUMBER]
    return numbers <= numbers_in(near)


# --- A text in which many quotes are looked for -----------------------------------------------

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
