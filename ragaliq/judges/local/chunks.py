"""One chunk of context, read: its sentences and what each can be found by."""

from __future__ import annotations

import re
from bisect import bisect, insort
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from ragaliq.judges.language.sentences import Span, split_sentences
from ragaliq.judges.local.numbers import MONTHS, Number, spans_of_time
from ragaliq.judges.local.words import END, Words, read_all, read_words, stem

__all__ = ["ReadChunk", "read_chunk"]

_LONGEST = 600  # characters of a sentence; longer ones are lists or tables, and no evidence
_MONTHS = {stem(name): number for name, number in MONTHS.items()}
_MONTH_STEMS = {number: name for name, number in reversed(_MONTHS.items())}
_ISO_DATE = re.compile(r"\b\d{4}-(\d{2})-\d{2}\b")
# A retriever returns the same chunks again and again, so the last ones are kept: 10 MB at most.
_KEPT = 256
_KEPT_LENGTH = 4_000  # characters
Postings = dict[str, list[int]]


class ReadChunk(NamedTuple):
    """A chunk, read once for all claims and contexts.

    Attributes:
        spans: Where its sentences stand, in order; none is longer than can be quoted.
        postings: What sentences are found by -> their positions, ascending: words, every reading
            of the numbers, and what dates imply.
        said: Every word in order, a line each, with a line for the end of each sentence: runs of
            words are found in it without a set of all runs.
        found_by: The keys of `postings`, a line each, to look for words that begin alike.
    """

    spans: list[Span]
    postings: Postings
    said: str
    found_by: str

    def stems(self, sentence: int) -> list[str]:
        """All words of a sentence, in order."""
        words = self.said.split(END)[sentence].strip("\n")
        return words.split("\n") if words else []


def read_chunk(chunk: str) -> ReadChunk:
    """Read a chunk, or remember how it read."""
    return _kept(chunk) if len(chunk) <= _KEPT_LENGTH else _read(chunk)


def _read(chunk: str) -> ReadChunk:
    spans: list[Span] = []
    for span in split_sentences(chunk):
        spans += [span] if span.end - span.start <= _LONGEST else _parts(chunk, span)
    texts = [chunk[start:end] for start, end in spans]
    words = read_all(texts)
    postings = _postings(words, texts)
    return ReadChunk(spans, postings, _lines(words.stems), _lines(postings))


_kept = lru_cache(maxsize=_KEPT)(_read)


def _postings(words: Words, texts: list[str]) -> Postings:
    postings: Postings = {}
    ends: list[int] = []
    at = 0
    for place, word in enumerate(words.stems):
        if word == END:
            ends.append(place)
            at += 1
            continue
        places = postings.get(word)
        if places is None:
            postings[word] = [at]
        elif places[-1] != at:
            places.append(at)
    for number, place in zip(words.numbers, words.places, strict=True):
        if number.year or len(number.values) > 1:
            _add(postings, _readings(number), bisect(ends, place))
    for month in _MONTHS.keys() & postings.keys():
        for at in postings[month]:
            _add(postings, [_MONTHS[month]], at)
    for at, text in enumerate(texts):
        if "-" in text:
            _add(postings, _iso_months(text), at)
    return postings


def _add(postings: Postings, words: Iterable[str], at: int) -> None:
    """Add what a sentence is found by besides its words."""
    for word in words:
        places = postings.setdefault(word, [])
        if not places or places[-1] < at:
            places.append(at)
        elif at not in places:
            insort(places, at)


def _readings(number: Number) -> tuple[str, ...]:
    """What a number may mean besides what it stands for in the words."""
    others = number.values[1:]
    return (*others, *spans_of_time(number.values[0])) if number.year else others


def _iso_months(text: str) -> list[str]:
    """The names of the months of dates such as 2021-03-12, if any number is said at all."""
    months = _ISO_DATE.findall(text)
    if not months or not read_words(text).numbers:
        return []
    return [_MONTH_STEMS.get(f"#{int(month)}", "#0") for month in months]


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
