"""The context, read once, so that each claim only looks its own words up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ragaliq.judges.local.chunks import read_chunk
from ragaliq.judges.local.numbers import Number
from ragaliq.judges.local.words import FUNCTION_WORDS, read_words

__all__ = ["ContextIndex"]

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
            for other in _lines(text, begins)
        }.difference(FUNCTION_WORDS)
        return {other for other in candidates if _shared(word, other) * 3 >= len(word) * 2}

    def _goes_on(self, position: int) -> bool:
        """Whether a chunk goes on in the middle of a sentence of the chunk before."""
        if position == 0:
            return False
        before, chunk = self.chunks[position - 1].rstrip(), self.chunks[position].lstrip()
        return bool(before and chunk and chunk[0].islower() and before[-1] not in _ENDS)


def _lines(text: str, begins: str) -> Iterator[str]:
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
