"""The context, read once, so that each claim only looks its own words up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ragaliq.judges.local.chunks import ReadSentence, read_chunk
from ragaliq.judges.local.words import Words

__all__ = ["ContextIndex", "Sentence"]

_ENDS = ".!?:;。！？।؟…”\"')"
_STUB = 5  # letters two words must share to count as related


class Sentence(NamedTuple):
    """Where a sentence stands: `chunk` is the 0-based position of its chunk."""

    chunk: int
    start: int
    end: int


class ContextIndex:
    """Which words stand in which sentence of the context.

    Args:
        chunks: The texts of the context, in order.

    Attributes:
        chunks: The same.
        sentences: All sentences, chunk by chunk.
        postings: Word -> positions in `sentences`, ascending. Function words are left out;
            numbers stand under each of their readings.
        stubs: First letters -> the words that begin so.
        shingles: Runs of three words, of function words too.
        words: All words and numbers of each sentence.
        passages: The first chunk of the text each chunk belongs to: a chunk that goes on in the
            middle of the sentence before belongs to the one it continues.
    """

    def __init__(self, chunks: Sequence[str]) -> None:
        self.chunks = list(chunks)
        self.sentences: list[Sentence] = []
        self.postings: dict[str, list[int]] = {}
        self.shingles: set[tuple[str, str, str]] = set()
        self.words: list[Words] = []
        self.passages: list[int] = []
        for position, chunk in enumerate(self.chunks):
            self.passages.append(self._passage(position))
            for sentence in read_chunk(chunk):
                self._add(position, sentence)
        self.stubs: dict[str, list[str]] = {}
        for word in self.postings:
            if len(word) > _STUB - 1 and word[0] != "#":
                self.stubs.setdefault(word[:_STUB], []).append(word)

    def text(self, sentence: int) -> str:
        """A sentence, word for word."""
        chunk, start, end = self.sentences[sentence]
        return self.chunks[chunk][start:end]

    def _passage(self, position: int) -> int:
        if position == 0:
            return 0
        before, chunk = self.chunks[position - 1].rstrip(), self.chunks[position].lstrip()
        goes_on = before and chunk and chunk[0].islower() and before[-1] not in _ENDS
        return self.passages[-1] if goes_on else position

    def _add(self, chunk: int, sentence: ReadSentence) -> None:
        at = len(self.sentences)
        self.sentences.append(Sentence(chunk, *sentence.span))
        self.words.append(sentence.words)
        postings = self.postings
        for word in sentence.found_by:
            if word in postings:
                postings[word].append(at)
            else:
                postings[word] = [at]
        stems = sentence.words.stems
        self.shingles.update(zip(stems, stems[1:], stems[2:], strict=False))

    def related(self, word: str) -> list[str]:
        """Words of the context that look like other forms of `word`."""
        candidates = self.stubs.get(word[:_STUB], ()) if len(word) >= _STUB else ()
        return [other for other in candidates if _shared(word, other) * 3 >= len(word) * 2]


def _shared(one: str, other: str) -> int:
    """Letters two words begin with in common."""
    length = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        length += 1
    return length
