"""Finding a claim in the answer it was made from, and a quote in the text it is quoted from.

Judges resolve pronouns and reword claims, so that a claim is looked for exactly, then with white
space and case ignored, then as the best fuzzy match: a highlight may be rough. Evidence may not:
"are not entitled" is 90 % like "are entitled". A quote counts only where its words stand in the
context one after another, whatever the white space, case, punctuation and markup between them.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from rapidfuzz import fuzz

from ragaliq.core.concurrency import Breather
from ragaliq.core.results import EvidenceSpan
from ragaliq.core.test_case import ChunkId

__all__ = ["CLAIM_CUTOFF", "EvidenceFinder", "SearchableText", "locate"]

CLAIM_CUTOFF = 75.0
"""Least similarity, 0 to 100, at which a reworded claim counts as found in the answer."""

_LONGEST_EVIDENCE = 20_000
"""Characters of a quote that is looked for; nobody quotes more to prove a claim."""

_MOST_PARTS = 40
_ELLIPSIS = re.compile(r"\[(?:\.{3}|…)\]|\.{3,}+|…")
_QUOTATION_MARKS = '"“”«»'
# What turns a sentence into its opposite where an ellipsis skips it.
_DENIALS = frozenset(
    "not no never neither nor none without cannot except unless nicht kein keine keinen nie ohne "
    "außer pas jamais ni sans non nunca ningún sin não nem sem mai senza niet geen nooit nie bez "
    "не ни нет без".split()
)
_SENTENCE_END = re.compile(r"[.!?。！？](?=\s|$)|\n")

_Place = tuple[int, int, int]
"""Position of a chunk, start and end in it."""


def locate(
    quote: str, text: SearchableText, *, cutoff: float, start: int = 0
) -> tuple[int, int] | None:
    """Where `quote`, or something like it, stands in `text`.

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

    A search lets others run now and then, and ends when it is cancelled.

    Args:
        context: The chunks.
    """

    def __init__(self, context: Sequence[str]) -> None:
        self._texts = [QuotableText(text) for text in context]
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
        if len(evidence) > _LONGEST_EVIDENCE:
            return ()
        quotes = [quote for part in _ELLIPSIS.split(evidence) if (quote := _bare(part))]
        if len(quotes) > _MOST_PARTS:
            return ()
        first = [i for i in dict.fromkeys(preferred) if 0 <= i < len(self._texts)]
        order = [*first, *(i for i in range(len(self._texts)) if i not in set(first))]
        places: list[_Place] = []
        for quote in quotes:
            place = await self._place(quote, order, places[-1] if places else None)
            # With single words from here and there anything can be said.
            if place is None or (len(quotes) > 1 and len(_words(quote)) < 2):
                return ()
            places.append(place)
        return tuple(places)

    async def _place(
        self, quote: str, order: Sequence[int], before: _Place | None
    ) -> _Place | None:
        """The first place of a part: after the part before it where that is in the same chunk."""
        if before is not None:
            order = [before[0], *(i for i in order if i != before[0])]
        for chunk in order:
            await self._breather.pause_if_due()
            text = self._texts[chunk]
            start = before[2] if before is not None and before[0] == chunk else 0
            if (span := text.find(quote, start)) is None:
                continue
            if start and text.denies(start, span[0]):
                return None
            return chunk, *span
        return None


class QuotableText:
    """A text in which quotes are looked for word by word; spans are `(start, end)` in characters.

    Args:
        text: The text.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def find(self, quote: str, start: int = 0) -> tuple[int, int] | None:
        """Where the quote's words stand one after another, from `start` on; None if nowhere."""
        words = _words(quote)
        if not words:
            return None
        index = self._index
        from_word = bisect_left(index.starts, start)
        begin = index.offsets[from_word] - 1 if from_word < len(index.offsets) else len(index.text)
        at = index.text.find(f" {' '.join(word.text for word in words)} ", begin)
        if at < 0:
            return None
        first = bisect_left(index.offsets, at + 1)
        begin, end = index.starts[first], index.ends[first + len(words) - 1]
        # Take in what the quote has around its words, such as the point at its end.
        before, after = quote[: words[0].start], quote[words[-1].end :]
        begin -= len(before) if before and self._text.endswith(before, start, begin) else 0
        end += len(after) if after and self._text.startswith(after, end) else 0
        return begin, end

    def denies(self, start: int, end: int) -> bool:
        """Whether what is skipped within a sentence denies it."""
        skipped = self._text[start:end]
        if _SENTENCE_END.search(skipped):
            return False
        return any(word.text in _DENIALS or word.text.endswith("n't") for word in _words(skipped))

    @cached_property
    def _index(self) -> _Index:
        words = _words(self._text)
        offsets, length = [], 1
        for word in words:
            offsets.append(length)
            length += len(word.text) + 1
        return _Index(
            f" {' '.join(word.text for word in words)} ",
            offsets,
            [word.start for word in words],
            [word.end for word in words],
        )


class _Index(NamedTuple):
    """A text's words with one blank between them, and where each stands there and in the text."""

    text: str
    offsets: list[int]
    starts: list[int]
    ends: list[int]


class _Word(NamedTuple):
    text: str
    start: int
    end: int


# Numbers with their sign, unless that is a hyphen; words with their apostrophes; characters of
# languages that put no blanks between words one by one; signs that say something.
_WORD = re.compile(
    r"(?:(?<![\w.,:)])[-−])?\d+(?:[.,:]\d+)*+"
    r"|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
    r"|[^\W\d_\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]++"
    r"(?:['’][^\W\d_]++)*+"
    r"|[%‰°±≤≥≠€$£¥₹₽]|[<>]=?(?=\s?\d)"
)
_ALIKE = str.maketrans("’−", "'-")


def _words(text: str) -> list[_Word]:
    """The words of a text, lower-cased; punctuation, white space and markup are left out."""
    return [
        _Word(match.group().casefold().translate(_ALIKE), match.start(), match.end())
        for match in _WORD.finditer(text)
    ]


def _bare(quote: str) -> str:
    return quote.strip().strip(_QUOTATION_MARKS)


# --- A text in which many quotes are looked for -----------------------------------------------

_SHORTEST_FUZZY = 12
_LONGEST_FUZZY = 20_000
_LONGEST_CLAIM = 2_000
_UNBROKEN = re.compile(r"\S+")


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
        if len(quote) > min(len(self.text), _LONGEST_CLAIM):
            return None
        match = fuzz.partial_ratio_alignment(_lowered(quote), self._lower, score_cutoff=cutoff)
        if match is None or match.dest_end <= match.dest_start:
            return None
        return match.dest_start, match.dest_end

    @cached_property
    def _lower(self) -> str:
        return _lowered(self.text)

    @cached_property
    def _squeezed(self) -> _Squeezed:
        words, starts, origins, length = [], [], [], 0
        for match in _UNBROKEN.finditer(self._lower):
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
