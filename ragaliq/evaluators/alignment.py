"""Alignment of a claim with its answer, and of a quote with the text it is quoted from.

Judges resolve pronouns and reword claims, so a claim is searched exactly, then word by word, then
as the best fuzzy match: a highlight may be rough. Evidence may not: "are not entitled" is 90 %
similar to "are entitled". A quote counts only if its words occur in the context in sequence,
ignoring white space, case, punctuation and markup between them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, product
from typing import NamedTuple

from rapidfuzz import fuzz

from ragaliq.core.concurrency import off_loop_if_long, pause_if_due
from ragaliq.core.printable import UNSEEN, visible
from ragaliq.core.results import EvidenceSpan, SupportSource
from ragaliq.core.test_case import ChunkId

# Least similarity (rapidfuzz's partial ratio), 0 to 100, at which a reworded claim counts as found
# in the answer.
_CLAIM_CUTOFF = 75.0

# Most characters of a quote that is searched word by word; nobody quotes more to prove a claim.
_LONGEST_QUOTE = 20_000
_MOST_PARTS = 40
_ELLIPSIS = re.compile(r"\[(?:\.{3}|…)\]|\.{3,}+|…")
_QUOTATION_MARKS = '"“”«»'
# Words that reverse a sentence's meaning if an ellipsis skips them.
_DENIALS = frozenset(
    "not no never neither nor none without cannot except unless nicht kein keine keinen nie ohne "
    "außer pas jamais ni sans non nunca ningún sin não nem sem mai senza niet geen nooit nie bez "
    "не ни нет без".split()
)
_SENTENCE_END = re.compile(r"[.!?。！？](?=\s|$)|\n")

# Short strings match almost anywhere; very long ones cost more than a highlight is worth.
_SHORTEST_FUZZY, _LONGEST_FUZZY, _LONGEST_CLAIM = 12, 20_000, 2_000


class EvidenceSource:
    """Texts that claims may rest on; finds quotes in them.

    A search yields to other tasks now and then, and ends when it is cancelled.

    Args:
        texts: The texts as a judge sees them.
        kind: The `support_source` of claims that rest on them.
        ids: The id of each text in results; by default its position.
        starts: First character of each text in the whole that has its id; a judge may see a part.
        answers: For texts of a user, the assistant's earlier statements: the user may repeat them.
    """

    def __init__(
        self,
        texts: Sequence[str],
        *,
        kind: SupportSource = "turn",
        ids: Sequence[ChunkId] | None = None,
        starts: Sequence[int] | None = None,
        answers: Sequence[str] = (),
    ) -> None:
        self.texts, self.kind, self.answers = texts, kind, answers
        self.ids = range(len(texts)) if ids is None else ids
        self._starts = [0] * len(texts) if starts is None else starts
        self._searched = [SearchedText(text) for text in texts]
        self._found: dict[tuple[str, tuple[int, ...]], tuple[EvidenceSpan, ...]] = {}
        self._paused = 0.0

    async def find(self, evidence: str, preferred: Sequence[int] = ()) -> tuple[EvidenceSpan, ...]:
        """Find the parts of a quote in the texts; a quote is searched once.

        Args:
            evidence: A quote; an ellipsis separates parts that need not be adjacent.
            preferred: Positions of texts to search first.

        Returns:
            One place for each part if every part was found; otherwise none, because a quote with an
            invented part is not evidence.
        """
        everywhere = range(len(self._searched))
        places = tuple(dict.fromkeys([*(at for at in preferred if at in everywhere), *everywhere]))
        if (evidence, places) not in self._found:
            self._found[evidence, places] = await self._find(evidence, places)
        return self._found[evidence, places]

    async def _find(self, evidence: str, order: Sequence[int]) -> tuple[EvidenceSpan, ...]:
        if len(evidence) > _LONGEST_QUOTE:
            return ()
        parts = [part.strip().strip(_QUOTATION_MARKS) for part in _ELLIPSIS.split(evidence)]
        parts = [part for part in parts if part]
        if len(parts) > _MOST_PARTS:
            return ()
        spans: list[EvidenceSpan] = []
        before: tuple[int, int] | None = None  # the text in which the last part was found, its end
        for part in parts:
            # Single words from anywhere can be combined into any statement.
            if len(parts) > 1 and len(list(_words(part))) < 2:
                return ()
            places = dict.fromkeys([before[0], *order] if before else order)
            # Most quotes are exact: then no text needs to be split into words.
            for find, at in product((SearchedText.find_exactly, SearchedText.find_words), places):
                self._paused = await pause_if_due(self._paused)
                # In the same text, search only after the previous part.
                start = before[1] if before and before[0] == at else 0
                searched = self._searched[at]
                span = await off_loop_if_long(len(searched.text), find, searched, part, start)
                if span is not None:
                    break
            else:
                return ()
            if start and _denies(self.texts[at][start : span[0]]):
                return ()
            before = at, span[1]
            begin = self._starts[at]
            spans.append(EvidenceSpan(self.ids[at], max(0, begin + span[0]), begin + span[1]))
        return tuple(spans)


def _denies(skipped: str) -> bool:
    """True if an ellipsis skips a negation within a sentence."""
    if _SENTENCE_END.search(skipped):
        return False
    return any(word.text in _DENIALS or word.text.endswith("n't") for word in _words(skipped))


@dataclass(frozen=True)
class SearchedText:
    """Text in which quotes are searched; spans are `(start, end)` in characters."""

    text: str

    def locate(self, claim: str, *, start: int = 0) -> tuple[int, int] | None:
        """Find a claim, or the passage most similar to it.

        Args:
            claim: The claim.
            start: Preferred start: a match from here on wins over an earlier one.
        """
        claim = claim.strip().strip(_QUOTATION_MARKS)
        if not claim:
            return None
        starts = dict.fromkeys((start, 0))
        for begin in starts:
            position = self.text.find(claim, begin)
            if position >= 0:
                return position, position + len(claim)
        for begin in starts if len(claim) <= _LONGEST_QUOTE else ():
            if span := self.find_words(claim, begin):
                return span
        match, size = None, len(self.text)
        if size <= _LONGEST_FUZZY and _SHORTEST_FUZZY <= len(claim) <= min(size, _LONGEST_CLAIM):
            match = fuzz.partial_ratio_alignment(
                _lowered(claim), self._lower, score_cutoff=_CLAIM_CUTOFF
            )
        if match is None or match.dest_end <= match.dest_start:
            return None
        return match.dest_start, match.dest_end

    def find_exactly(self, quote: str, start: int = 0) -> tuple[int, int] | None:
        """First exact occurrence of the quote from `start` on; None if there is none.

        White space must bound it: otherwise its first or last word may be part of a longer one.
        """
        at = self.text.find(quote, start)
        end = at + len(quote)
        before, after = self.text[at - 1 : at], self.text[end : end + 1]
        if at < 0 or not f" {before}{after}".isspace() or not _WORD.search(quote):
            return None
        return at, end

    def find_words(self, quote: str, start: int = 0) -> tuple[int, int] | None:
        """First occurrence of the quote's words in sequence from `start` on, or None."""
        words = list(_words(quote))
        if not words:
            return None
        starts, ends, joined, offsets = self._index
        from_word = bisect_left(starts, start)
        at = joined.find(_joined(word.text for word in words), offsets[from_word] - 1)
        if at < 0:
            return None
        first = bisect_left(offsets, at + 1)
        begin, end = starts[first], ends[first + len(words) - 1]
        # Include what surrounds the quote's words, such as the point at its end.
        before, after = quote[: words[0].start], quote[words[-1].end :]
        begin -= len(before) if before and self.text.endswith(before, start, begin) else 0
        end += len(after) if after and self.text.startswith(after, end) else 0
        return begin, end

    @cached_property
    def _index(self) -> _WordIndex:
        # Plain lists of numbers: a million tuples would keep the garbage collector busy.
        starts, ends, texts = list[int](), list[int](), list[str]()
        for word in _words(self.text):
            starts.append(word.start)
            ends.append(word.end)
            texts.append(word.text)
        offsets = accumulate((len(text) + 1 for text in texts), initial=1)
        return _WordIndex(starts, ends, _joined(texts), list(offsets))

    @cached_property
    def _lower(self) -> str:
        return _lowered(self.text)


class _WordIndex(NamedTuple):
    """Words of a text.

    Attributes:
        starts: Position of each word.
        ends: Position after it.
        joined: All words with blanks between them.
        offsets: Position of each word there, and the end.
    """

    starts: list[int]
    ends: list[int]
    joined: str
    offsets: list[int]


class _Word(NamedTuple):
    text: str
    start: int
    end: int


# Numbers with their sign, unless it is a hyphen; words with their apostrophes and with hidden
# characters, such as the soft hyphens of PDF files; single characters of scripts written without
# blanks; meaningful signs.
_WORD = re.compile(
    r"(?:(?<![\w.,:)])[-−])?\d+(?:[.,:]\d+)*+"
    r"|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
    r"|[^\W\d_\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]++"
    rf"(?:(?:['’]|[{UNSEEN}]++)[^\W\d_]++)*+"
    r"|[%‰°±≤≥≠€$£¥₹₽]|[<>]=?(?=\s?\d)"
)
_ALIKE = str.maketrans("’−", "'-")


def _words(text: str) -> Iterator[_Word]:
    """Split a text into lower-case words without punctuation, white space and markup."""
    hides = visible(text) != text
    for match in _WORD.finditer(text):
        word = visible(match.group()) if hides else match.group()
        yield _Word(word.casefold().translate(_ALIKE), match.start(), match.end())


def _joined(words: Iterable[str]) -> str:
    return f" {' '.join(words)} "


def _lowered(text: str) -> str:
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    # Lower-casing can change the length of a text (İ becomes two characters), which shifts offsets.
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)
