"""The context, read once, and how the words of a claim lie in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ragaliq.judges.language.sentences import Span, detect_language, split_sentences
from ragaliq.judges.local.claim import ClaimWords
from ragaliq.judges.local.numbers import MONTHS, Number, spans_of_time
from ragaliq.judges.local.words import END, FUNCTION_WORDS, read_all, stem

__all__ = ["ContextIndex", "Match", "match_claim"]


# One chunk.

_LONGEST = 600  # characters of a sentence; longer ones are lists or tables, and no evidence
_MONTHS = {stem(name): number for name, number in MONTHS.items()}
_MONTH_STEMS = {number: name for name, number in reversed(_MONTHS.items())}
_ISO_DATE = re.compile(r"-(?<=\b\d{4}-)(\d{2})-\d{2}\b")  # to look for the rare sign first is fast
# A retriever returns the same chunks again and again, so the last ones are kept: 8 MB at most.
_KEPT = 256
_KEPT_LENGTH = 4_000  # characters


class ReadChunk(NamedTuple):
    """A chunk, read once for all claims and contexts.

    Attributes:
        spans: Where its sentences stand, in order; none is longer than can be quoted.
        found_by: What each sentence is found by, a line each: its words in order and, after an
            empty line, every reading of its numbers and what its dates imply.
        text: The same of all sentences: runs of words are found in it without a set of all runs.
        words: The same, each once.
    """

    spans: list[Span]
    found_by: list[str]
    text: str
    words: set[str]


def read_chunk(chunk: str) -> ReadChunk:
    """Read a chunk, or remember how it read."""
    return _kept(chunk) if len(chunk) <= _KEPT_LENGTH else _read(chunk)


def _read(chunk: str) -> ReadChunk:
    spans: list[Span] = []
    for first, end in split_sentences(chunk, language=detect_language(chunk)):
        start = first
        while end - start > _LONGEST:
            space = chunk.rfind(" ", start + _LONGEST // 2, start + _LONGEST)
            cut = space if space > 0 else start + _LONGEST
            spans.append(Span(start, cut))
            start = cut + (space > 0)
        spans.append(Span(start, end))
    stems, numbers, places = read_all([chunk[start:end] for start, end in spans])
    words = set(stems)
    found_by = _lines(stems).split(END)[:-1]
    implied: list[tuple[int, Sequence[str]]] = []
    sentence, counted = 0, 0
    for number, place in zip(numbers, places, strict=True):
        others = number.values[1:]
        if number.year:
            others += spans_of_time(number.values[0])
        if others:
            sentence += stems[counted:place].count(END)
            counted = place
            implied.append((sentence, others))
    for month in _MONTHS.keys() & words:
        for at, line in enumerate(found_by):
            if f"\n{month}\n" in line:
                implied.append((at, [_MONTHS[month]]))
    for at, (start, end) in enumerate(spans if "-" in chunk else ()):
        if (months := _ISO_DATE.findall(chunk, start, end)) and "\n#" in found_by[at]:
            names = [_MONTH_STEMS.get(f"#{int(month)}", "#0") for month in months]
            implied.append((at, names))
    for at, found in implied:
        found_by[at] += _lines(found)
        words.update(found)
    return ReadChunk(spans, found_by, END.join(found_by), words)


def _lines(words: Iterable[str]) -> str:
    return "\n".join(["", *words, ""])


_kept = lru_cache(maxsize=_KEPT)(_read)


# All chunks of a context.

_ENDS = ".!?:;。！？।؟…”\"')"
_STUB = 5  # letters two words must share at least to count as related


class ContextIndex:
    """Which words stand in which sentence of the context.

    Args:
        chunks: The texts of the context, in order.

    Attributes:
        chunks: The same.
        chunk_of: The position of each sentence's chunk.
        passage_of: The same for the first chunk of its text: a chunk that goes on in the middle of
            a sentence belongs to the one before.
    """

    def __init__(self, chunks: Sequence[str]) -> None:
        self.chunks = list(chunks)
        self.chunk_of: list[int] = []
        self.passage_of: list[int] = []
        self._read = list(map(read_chunk, self.chunks))
        self._firsts: list[int] = []  # positions of each chunk's first sentence
        self._found: dict[str, list[int]] = {}
        passage, before = 0, ""
        for position, (chunk, read) in enumerate(zip(self.chunks, self._read, strict=True)):
            begins = chunk.lstrip()[:1]
            if not (before and begins.islower() and before not in _ENDS):
                passage = position
            before = chunk.rstrip()[-1:]
            self._firsts.append(len(self.chunk_of))
            self.chunk_of += [position] * len(read.spans)
            self.passage_of += [passage] * len(read.spans)

    def text(self, sentence: int) -> str:
        """A sentence, word for word."""
        chunk = self.chunk_of[sentence]
        start, end = self._read[chunk].spans[sentence - self._firsts[chunk]]
        return self.chunks[chunk][start:end]

    def stems(self, sentence: int) -> list[str]:
        """All words of a sentence, in order."""
        chunk = self.chunk_of[sentence]
        found_by = self._read[chunk].found_by[sentence - self._firsts[chunk]]
        return [word for word in found_by.partition("\n\n")[0].split("\n") if word]

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
        for _, _, text, words in self._read:
            # To look the words up is far cheaper than to search the text.
            if second in words and first in words and third in words and run in text:
                return True
        return False

    def related(self, word: str) -> set[str]:
        """Words of the context that look like other forms of `word`: two thirds of it, or more."""
        if len(word) < _STUB or word[0] == "#":
            return set()
        begins = "\n" + word[: max(_STUB, (2 * len(word) + 2) // 3)]
        found: set[str] = set()
        for read in self._read:
            at = read.text.find(begins)
            while at >= 0:
                end = read.text.index("\n", at + 1)
                found.add(read.text[at + 1 : end])
                at = read.text.find(begins, end)
        return found - FUNCTION_WORDS


# Where the context agrees with a claim best, and what of the claim is not there.

_WINDOW = 3  # sentences read together
_RELATED = 0.8  # credit for another form of the word
_NEAR = 0.95  # of the best sentence's share, for another one to count as well
_MOST_NEAR = 8
_COMMON = 512  # sentences; a word in more of them does not tell them apart
Places = dict[str, tuple[float, Sequence[int]]]
"""Content word -> credit and the sentences it stands in, for the words that are there."""


@dataclass(frozen=True, slots=True)
class Match:
    """How a claim's words lie in the context. Shares are of the claim's weight, 0 to 1.

    Attributes:
        sentence: Position of the sentence that covers most; -1 in an empty context.
        near: The first sentences that cover about as much, the best among them.
        sentence_cover: Its share.
        window_cover: Share covered by the best three neighbouring sentences of a passage.
        chunk_cover: Share covered by the best passage: a chunk and what continues it.
        context_cover: Share covered by the whole context.
        chunk_ids: Chunks with a sentence about as good as the best.
        found: Words of the claim that stand in the best sentence, in any form.
        missing: Content words that stand nowhere in the context, the most telling first.
        missing_numbers: Numbers that stand nowhere.
        missing_names: Names that stand nowhere.
        far_numbers: Numbers that stand in none of the `near` sentences.
        far_names: Names that stand in none of them.
    """

    sentence: int
    near: list[int]
    sentence_cover: float
    window_cover: float
    chunk_cover: float
    context_cover: float
    chunk_ids: list[int]
    found: frozenset[str]
    missing: list[str]
    missing_numbers: list[Number]
    missing_names: list[str]
    far_numbers: list[Number]
    far_names: list[str]


def match_claim(claim: ClaimWords, context: ContextIndex) -> Match:
    """Look every content word of a claim up in the context."""
    readings = {number.values[0]: number.values for number in claim.numbers}
    places: Places = {}
    for word in claim.weights:
        exact = next(filter(None, map(context.places, readings.get(word, (word,)))), None)
        if exact:
            places[word] = 1.0, exact
        elif related := context.related(word):
            sentences_with = {at for other in related for at in context.places(other)}
            places[word] = _RELATED, sorted(sentences_with)
    sentences, windows, passages = _covers(claim, context, places)
    total = sum(claim.weights.values()) or 1.0
    most = max(sentences, default=0.0)
    best = sentences.index(most) if sentences else -1
    near = [at for at, share in enumerate(sentences) if share >= most * _NEAR] if most else []
    here = set(near)
    missing = [word for word in claim.weights if word not in places]
    return Match(
        sentence=best,
        near=near[:_MOST_NEAR],
        sentence_cover=most / total,
        window_cover=max(windows, default=0.0) / total,
        chunk_cover=max(passages, default=0.0) / total,
        context_cover=sum(claim.weights[word] * credit for word, (credit, _) in places.items())
        / total,
        chunk_ids=sorted({context.chunk_of[at] for at in near}),
        found=frozenset(word for word, (_, where) in places.items() if best in where),
        missing=sorted(missing, key=lambda word: (-claim.weights[word], word)),
        missing_numbers=[
            number for number in claim.numbers if not any(map(context.places, number.values))
        ],
        missing_names=sorted(claim.names.intersection(missing)),
        far_numbers=[
            number
            for number in claim.numbers
            if all(map(here.isdisjoint, map(context.places, number.values)))
        ],
        far_names=sorted(
            name
            for name in claim.names & claim.weights.keys()
            if name not in places or here.isdisjoint(places[name][1])
        ),
    )


def _covers(
    claim: ClaimWords, context: ContextIndex, places: Places
) -> tuple[list[float], list[float], list[float]]:
    """Weight found in each sentence, each window (by its first sentence), each passage."""
    sentences = [0.0] * len(context.chunk_of)
    windows = [0.0] * len(context.chunk_of)
    chunks = [0.0] * len(context.chunks)
    passage_of = context.passage_of
    everywhere = 0.0
    for word, (credit, where) in places.items():
        gain = claim.weights[word] * credit
        if len(where) > _COMMON:
            everywhere += gain
            continue
        window_done, chunk_done = -1, -1
        for at in where:
            sentences[at] += gain
            chunk = passage_of[at]
            first = at - _WINDOW + 1
            for start in range(first if first > window_done else window_done + 1, at + 1):
                if passage_of[start] == chunk:
                    windows[start] += gain
            window_done = at
            if chunk != chunk_done:
                chunks[chunk] += gain
                chunk_done = chunk
    if everywhere:
        sentences, windows, chunks = (
            [share + everywhere for share in shares] for shares in (sentences, windows, chunks)
        )
    return sentences, windows, chunks
