"""One chunk of context, read: its sentences and what each can be found by."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from ragaliq.judges.language.sentences import (
    Span,
    detect_language,
    is_surely_english,
    split_sentences,
)
from ragaliq.judges.local.numbers import MONTHS, spans_of_time
from ragaliq.judges.local.words import END, Words, read_all, read_words, stem

__all__ = ["ReadChunk", "read_chunk"]

_LONGEST = 600  # characters of a sentence; longer ones are lists or tables, and no evidence
_MONTHS = {stem(name): number for name, number in MONTHS.items()}
_MONTH_WORDS = frozenset(_MONTHS)
_MONTH_STEMS = {number: name for name, number in reversed(_MONTHS.items())}
_NOT_PLAIN = re.compile("[^\0-\x7f\u00a0\u2010-\u203a]")  # more than ASCII and punctuation
_ISO_DATE = re.compile(r"-(?<=\b\d{4}-)(\d{2})-\d{2}\b")  # to look for the rare sign first is fast
# A retriever returns the same chunks again and again, so the last ones are kept: 8 MB at most.
_KEPT = 256
_KEPT_LENGTH = 4_000  # characters


class ReadChunk(NamedTuple):
    """A chunk, read once for all claims and contexts.

    Attributes:
        spans: Where its sentences stand, in order; none is longer than can be quoted.
        found_by: What each sentence is found by, a line each: its words, every reading of its
            numbers, and what its dates imply.
        words: The same for all sentences together.
        said: Every word in order, a line each, with a line for the end of each sentence: runs of
            words are found in it without a set of all runs.
        months: What dates such as 2021-03-12 imply, a line each: the words not in `said`.
    """

    spans: list[Span]
    found_by: list[str]
    words: set[str]
    said: str
    months: str

    def stems(self, sentence: int) -> list[str]:
        """All words of a sentence, in order."""
        words = self.said.split(END)[sentence].strip("\n")
        return words.split("\n") if words else []


def read_chunk(chunk: str) -> ReadChunk:
    """Read a chunk, or remember how it read."""
    return _kept(chunk) if len(chunk) <= _KEPT_LENGTH else _read(chunk)


def _read(chunk: str) -> ReadChunk:
    spans, words, found = _sentences_and_words(chunk)
    said = _lines(words.stems)
    found_by = said.split(END)[:-1]
    months = list(_names_of_months(chunk, spans)) if "-" in chunk else []
    for at, others in [*_other_readings(words), *_numbers_of_months(found, found_by), *months]:
        found_by[at] += _lines(others)
        found.update(others)
    implied = _lines(name for _, names in months for name in names)
    return ReadChunk(spans, found_by, found, said, implied)


def _sentences_and_words(chunk: str) -> tuple[list[Span], Words, set[str]]:
    """The sentences, all their words in order, and each word once."""
    if not chunk.isascii() and _NOT_PLAIN.search(chunk):
        return _read_as(detect_language(chunk), chunk)
    # Mostly English, and its words are needed anyway: to ask for the language first takes long.
    read = _read_as("en", chunk)
    surely = is_surely_english(chunk, read[1].stems, vocabulary=read[2])
    language = "en" if surely else detect_language(chunk)
    return read if language == "en" else _read_as(language, chunk)


def _read_as(language: str, chunk: str) -> tuple[list[Span], Words, set[str]]:
    spans: list[Span] = []
    for span in split_sentences(chunk, language=language):
        start, end = span
        if end - start <= _LONGEST:
            spans.append(span)
        else:
            spans += _parts(chunk, span)
    words = read_all([chunk[start:end] for start, end in spans])
    return spans, words, set(words.stems)


_kept = lru_cache(maxsize=_KEPT)(_read)


# What a sentence is found by besides its words: its position, and as what it is found.


def _other_readings(words: Words) -> Iterator[tuple[int, Sequence[str]]]:
    """What numbers may mean besides what they stand for in the words."""
    sentence, counted = 0, 0
    for number, place in zip(words.numbers, words.places, strict=True):
        others = number.values[1:]
        if number.year:
            others += spans_of_time(number.values[0])
        if others:
            sentence += words.stems[counted:place].count(END)
            counted = place
            yield sentence, others


def _numbers_of_months(
    words: set[str], sentences: list[str]
) -> Iterator[tuple[int, Sequence[str]]]:
    for month in () if _MONTH_WORDS.isdisjoint(words) else _MONTH_WORDS & words:
        for at, sentence in enumerate(sentences):
            if f"\n{month}\n" in sentence:
                yield at, [_MONTHS[month]]


def _names_of_months(chunk: str, spans: list[Span]) -> Iterator[tuple[int, Sequence[str]]]:
    """The months of dates such as 2021-03-12, in sentences where any number is said at all."""
    for at, (start, end) in enumerate(spans):
        months = _ISO_DATE.findall(chunk, start, end)
        if months and read_words(chunk[start:end]).numbers:
            yield at, [_MONTH_STEMS.get(f"#{int(month)}", "#0") for month in months]


def _lines(words: Iterable[str]) -> str:
    return "\n".join(["", *words, ""])


def _parts(text: str, span: Span) -> list[Span]:
    """A sentence in parts short enough to be quoted."""
    parts = []
    start, end = span
    while end - start > _LONGEST:
        space = text.rfind(" ", start + _LONGEST // 2, start + _LONGEST)
        cut = space if space > 0 else start + _LONGEST
        parts.append(Span(start, cut))
        start = cut + (space > 0)
    return [*parts, Span(start, end)]
