"""The context, read once, so that each claim only looks its own words up."""

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
from ragaliq.judges.local.numbers import MONTHS, Number, spans_of_time
from ragaliq.judges.local.words import END, FUNCTION_WORDS, Words, read_all, read_words, stem

__all__ = ["ContextIndex"]


# One chunk.

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


# All chunks of a context.

_ENDS = ".!?:;。！？।؟…”\"')"
_STUB = 5  # letters two words must share to count as related


class ContextIndex:
    """Which words stand in which sentence of the context.

    Args:
        chunks: The texts of the context, in order.

    Attributes:
        chunks: The same.
        chunk_of: The position of each sentence's chunk.
        passages: The first chunk of the text each chunk belongs to: a chunk that goes on in the
            middle of the sentence before belongs to the one it continues.
        passage_of: The same for each sentence.
    """

    def __init__(self, chunks: Sequence[str]) -> None:
        self.chunks = list(chunks)
        self.chunk_of: list[int] = []
        self.passages: list[int] = []
        self.passage_of: list[int] = []
        self._read = list(map(read_chunk, self.chunks))
        self._firsts: list[int] = []  # positions of each chunk's first sentence
        self._found: dict[str, list[int]] = {}
        self._stems: dict[int, list[str]] = {}
        for position, read in enumerate(self._read):
            self.passages.append(self.passages[-1] if self._goes_on(position) else position)
            self._firsts.append(len(self.chunk_of))
            self.chunk_of += [position] * len(read.spans)
            self.passage_of += self.passages[-1:] * len(read.spans)

    def text(self, sentence: int) -> str:
        """A sentence, word for word."""
        chunk = self.chunk_of[sentence]
        start, end = self._read[chunk].spans[sentence - self._firsts[chunk]]
        return self.chunks[chunk][start:end]

    def stems(self, sentence: int) -> list[str]:
        """All words of a sentence, in order."""
        found = self._stems.get(sentence)
        if found is None:
            chunk = self.chunk_of[sentence]
            found = self._stems[sentence] = self._read[chunk].stems(sentence - self._firsts[chunk])
        return found

    def numbers(self, sentence: int) -> list[Number]:
        """The numbers in a sentence."""
        return read_words(self.text(sentence)).numbers

    def places(self, word: str) -> Sequence[int]:
        """Positions of the sentences with a word, ascending; none for function words.

        Numbers are found under each of their readings.
        """
        if word in FUNCTION_WORDS:
            return ()
        found = self._found.get(word)
        if found is None:
            line = f"\n{word}\n"
            found = [
                first + at
                for read, first in zip(self._read, self._firsts, strict=True)
                if word in read.words
                for at, words in enumerate(read.found_by)
                if line in words
            ]
            if found:  # at most the words of the context are kept
                self._found[word] = found
        return found

    def says(self, first: str, second: str, third: str) -> bool:
        """Whether three words, function words too, follow one another in a sentence."""
        run = f"\n{first}\n{second}\n{third}\n"
        for _, _, words, said, _ in self._read:
            # To look the words up is far cheaper than to search the text.
            if second in words and first in words and third in words and run in said:
                return True
        return False

    def related(self, word: str) -> set[str]:
        """Words of the context that look like other forms of `word`."""
        if len(word) < _STUB or word[0] == "#":
            return set()
        begins = "\n" + word[:_STUB]
        candidates = {
            other
            for read in self._read
            for text in (read.said, read.months)
            if begins in text
            for other in _lines_that_begin(text, begins)
        }.difference(FUNCTION_WORDS)
        return {other for other in candidates if _shared(word, other) * 3 >= len(word) * 2}

    def _goes_on(self, position: int) -> bool:
        """Whether a chunk goes on in the middle of a sentence of the chunk before."""
        if position == 0:
            return False
        before, chunk = self.chunks[position - 1].rstrip(), self.chunks[position].lstrip()
        return bool(before and chunk and chunk[0].islower() and before[-1] not in _ENDS)


def _lines_that_begin(text: str, begins: str) -> Iterator[str]:
    """The lines that begin in some way."""
    at = text.find(begins)
    while at >= 0:
        end = text.index("\n", at + 1)
        yield text[at + 1 : end]
        at = text.find(begins, end)


def _shared(one: str, other: str) -> int:
    """Letters two words begin with in common."""
    length = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        length += 1
    return length
