"""One chunk of context, read: its sentences and what each can be found by."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from ragaliq.judges.language.sentences import Span, split_sentences
from ragaliq.judges.local.numbers import MONTHS, spans_of_time
from ragaliq.judges.local.words import FUNCTION_WORDS, Words, read_words, stem

__all__ = ["ReadSentence", "read_chunk"]

_LONGEST = 600  # characters of a sentence; longer ones are lists or tables, and no evidence
_MONTHS = {stem(name): number for name, number in MONTHS.items()}
_MONTH_STEMS = {number: name for name, number in reversed(_MONTHS.items())}
_ISO_DATE = re.compile(r"\b\d{4}-(\d{2})-\d{2}\b")
# A retriever returns the same chunks again and again, so the last ones are kept: 10 MB at most.
_KEPT = 256
_KEPT_LENGTH = 4_000  # characters


class ReadSentence(NamedTuple):
    """A sentence of a chunk.

    Attributes:
        span: Where it stands in the chunk.
        words: All its words and numbers.
        found_by: Its content words, every reading of its numbers, and what its dates imply.
    """

    span: Span
    words: Words
    found_by: frozenset[str]


def read_chunk(chunk: str) -> tuple[ReadSentence, ...]:
    """The sentences of a chunk, in order; none is longer than can be quoted."""
    return _kept(chunk) if len(chunk) <= _KEPT_LENGTH else _read(chunk)


def _read(chunk: str) -> tuple[ReadSentence, ...]:
    return tuple(
        _sentence(chunk, part) for span in split_sentences(chunk) for part in _parts(chunk, span)
    )


_kept = lru_cache(maxsize=_KEPT)(_read)


def _sentence(chunk: str, span: Span) -> ReadSentence:
    text = chunk[span.start : span.end]
    words = read_words(text)
    stems, numbers = words
    found = set(stems)
    for number in numbers:
        found.update(number.values)
        if number.year:
            found.update(spans_of_time(number.values[0]))
    if not _MONTHS.keys().isdisjoint(found):
        found.update(_MONTHS[word] for word in stems if word in _MONTHS)
    if numbers:
        for month in _ISO_DATE.findall(text):
            found.add(_MONTH_STEMS.get(f"#{int(month)}", "#0"))
    return ReadSentence(span, words, frozenset(found - FUNCTION_WORDS))


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
