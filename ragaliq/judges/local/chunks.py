"""One chunk of context, read: its sentences and what each can be found by."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from ragaliq.judges.language.sentences import Span, split_sentences
from ragaliq.judges.local.numbers import MONTHS, Number, spans_of_time
from ragaliq.judges.local.words import FUNCTION_WORDS, Words, read_words, stem

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
        words: All words and numbers of each sentence.
        postings: What a claim finds sentences by -> their positions, ascending: content words,
            every reading of the numbers, and what dates imply.
        said: Every word in order, a line each, with an empty line after each sentence: a run of
            words is found in it faster than a set of all runs is made.
        found_by: The keys of `postings`, a line each, to look for words that begin alike.
    """

    spans: list[Span]
    words: list[Words]
    postings: Postings
    said: str
    found_by: str


def read_chunk(chunk: str) -> ReadChunk:
    """Read a chunk, or remember how it read."""
    return _kept(chunk) if len(chunk) <= _KEPT_LENGTH else _read(chunk)


def _read(chunk: str) -> ReadChunk:
    spans = [part for span in split_sentences(chunk) for part in _parts(chunk, span)]
    texts = [chunk[start:end] for start, end in spans]
    words = list(map(read_words, texts))
    postings = _postings(texts, words)
    said = "\n\n".join(["\n".join(stems) for stems, _ in words])
    return ReadChunk(spans, words, postings, f"\n{said}\n", "\n".join(["", *postings, ""]))


_kept = lru_cache(maxsize=_KEPT)(_read)


def _postings(texts: list[str], words: list[Words]) -> Postings:
    postings: Postings = {}
    for at, (stems, numbers) in enumerate(words):
        found = {*stems, *_readings(numbers)} if numbers else set(stems)
        if not _MONTHS.keys().isdisjoint(found):
            found.update([_MONTHS[word] for word in stems if word in _MONTHS])
        if numbers and "-" in texts[at]:
            months = _ISO_DATE.findall(texts[at])
            found.update([_MONTH_STEMS.get(f"#{int(month)}", "#0") for month in months])
        for word in found.difference(FUNCTION_WORDS):
            if word in postings:
                postings[word].append(at)
            else:
                postings[word] = [at]
    return postings


def _readings(numbers: list[Number]) -> list[str]:
    """What the numbers may mean, and the decade and century of the years among them."""
    readings = [value for number in numbers for value in number.values]
    for number in numbers:
        if number.year:
            readings += spans_of_time(number.values[0])
    return readings


def _parts(text: str, span: Span) -> list[Span]:
    """A sentence in parts short enough to be quoted."""
    parts = []
    start, end = span
    while end - start > _LONGEST:
        space = text.rfind(" ", start + _LONGEST // 2, start + _LONGEST)
        cut = space if space > 0 else start + _LONGEST
        parts.append(Span(start, cut))
        start = cut + (space > 0)
    return [*parts, Span(start, end)] if parts else [span]
