"""Texts as words: search for known texts in a text, and removal of some.

White space, punctuation, markup, case and escapes are ignored. Each character of a script without
spaces between words counts as a word.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import accumulate, pairwise
from operator import itemgetter

# Thai, Lao, Burmese, Khmer, kana, Han; the last two ranges are Han's compatibility forms.
_UNSPACED = (
    "\u0e01-\u0edf\u1000-\u109f\u1780-\u17ff"
    "\u3041-\u30fa\u30fc-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_WORD = re.compile(r"[^\W_]+")
_WORD_OR_SIGN = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_SIGN = re.compile(rf"[{_UNSPACED}]")
# Translation table for ASCII texts: ten times as fast as the regular expression.
_ASCII = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})|\\[nrt\"\\/]")
_PLAIN = {"n": "\n", "r": "\r", "t": "\t"}
_CLOSERS = frozenset(".!?。！？")
_ASKS = frozenset("?？؟")
# Around a text that is a whole line, or stands after a label or in quotes.
OPENS, ENDS = frozenset([*":：\n\"'>-|", ""]), frozenset([*"\n\"'<|", ""])

# Labels, which say only what a text is or comes from: addresses, tags, names of fields, numbers of
# a list, scores.
_LABEL = re.compile(
    r"https?://\S+|</?[\w:.-]+(?:\s+(?:id|index|n|source|href|url|src)=[^\s<>]+)*\s*/?>"
    r"|[\"']?[^\W\d][\w -]{0,40}[\"']?\s*[:=]"
    r"|[\[(]\d{1,3}[\])]|^[ \t]*\d{1,3}[.)]\s|^[ \t]*\d{1,6}[\t|→]|\b[01]?\.\d+\b",
    re.MULTILINE,
)
_ORDINAL = re.compile(r"^[ \t]*(?:\d{1,3}[.)]|•)[ \t]*\Z", re.MULTILINE)  # of an item in a list
_SEQUENCE = 4  # most words of the sequence that an index files a text under
NEAR = 80  # letters around words that are looked at
_FEW = 16  # texts that are faster compared one by one


class Owner(IntEnum):
    """Origin of a word in a prompt."""

    NOBODY = 0
    DOCUMENT = 1
    MODEL = 2
    QUESTION = 3


def normalize(text: str) -> str:
    """Normalise a text: its words in lower case, with single spaces."""
    return _words_of(_blanked(readable(text)))


def _words_of(text: str) -> str:
    if text.isascii():
        return " ".join(text.translate(_ASCII).split())
    return " ".join([word.casefold() for word in _WORD_OR_SIGN.findall(text)])


def _blanked(text: str) -> str:
    """Replace escapes by spaces, so that positions stay the same."""
    return _ESCAPED.sub(lambda match: " " * len(match[0]), text) if "\\" in text else text


def is_telling(words: str) -> bool:
    """True if the occurrence of a normalized text elsewhere means that it was copied."""
    count = words.count(" ") + 1
    return count >= 3 and (len(words) >= 10 or (count >= 6 and not words.isascii()))


def says_something(text: str) -> bool:
    """True if a text says more than its origin."""
    return bool(without_labels(text))


def without_labels(text: str) -> str:
    """Normalise a text without labels of origin and structure."""
    return normalize(_LABEL.sub(" ", text))


def readable(text: str) -> str:
    """A text without the escapes of JSON and HTML, as a model reads it."""
    if "\\" in text and (text.lstrip()[:1] in {"{", "["} or '\\"' in text or "\\u" in text):
        text = _ESCAPED.sub(
            lambda match: (
                chr(int(match[1], 16)) if match[1] else _PLAIN.get(match[0][1], match[0][1])
            ),
            text,
        )
        # Two escapes may be one letter.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return html.unescape(text) if "&" in text else text


class MarkedText:
    """Text whose words have owners.

    Attributes:
        text: As a model reads it.
        words: Normalized.
        owners: The `Owner` of each word.
    """

    __slots__ = ("_padded", "_spans", "_starts", "owners", "text", "words")

    def __init__(self, text: str) -> None:
        self.text = readable(text)
        self.words = _words_of(_blanked(self.text))
        self._padded = f" {self.words} "
        split = self.words.split()
        self._starts = list(accumulate((len(word) + 1 for word in split), initial=0))
        self._spans: list[tuple[int, int]] | None = None
        self.owners = bytearray(len(split))

    def places(self, words: str) -> Iterator[slice]:
        """Places of normalized words, as slices of `owners`."""
        return (self.place(at, words) for at in _places(self._padded, words))

    def place(self, at: int, words: str) -> slice:
        """The place of words that begin at a letter of `words`."""
        first = bisect_left(self._starts, at)
        return slice(first, first + words.count(" ") + 1)

    def _letters(self) -> list[tuple[int, int]]:
        """First and last letter of each word in the text."""
        if self._spans is None:
            source = _blanked(self.text)
            word = _WORD if source.isascii() else _WORD_OR_SIGN
            self._spans = [match.span() for match in word.finditer(source)]
        return self._spans

    def stands_alone(self, place: slice) -> bool:
        """True if words are a whole line, a value after a label, or a quoted text."""
        spans = self._letters()[place]
        first, last = spans[0][0], self._closed(spans[-1][1])
        before = _ORDINAL.sub("", self.text[max(0, first - NEAR) : first]).rstrip(" \t*")[-1:]
        after = self.text[last : last + NEAR].lstrip(" \t*")[:1]
        return before in OPENS and after in ENDS

    def before(self, place: slice, count: int) -> list[str]:
        """The words before a place, at most so many."""
        first = self._starts[max(0, place.start - count)]
        return self.words[first : self._starts[place.start]].split()

    def asks(self, place: slice) -> bool:
        """True if a question mark follows words."""
        return self.text[self._letters()[place][-1][1] :].lstrip()[:1] in _ASKS

    def is_free(self, place: slice) -> bool:
        """True if the words of a place have no owner yet."""
        return not any(self.owners[place])

    def mark(self, place: slice, owner: Owner) -> None:
        """Give the words of a place to an owner."""
        self.owners[place] = bytes([owner]) * (place.stop - place.start)

    def has_free(self, place: slice) -> bool:
        """True if a word of a place has no owner yet."""
        return Owner.NOBODY in self.owners[place]

    def mark_free(self, place: slice, owner: Owner) -> str:
        """Give the words of a place without an owner to one; returns them, normalized."""
        free = [at for at in range(place.start, place.stop) if self.owners[at] == Owner.NOBODY]
        for at in free:
            self.owners[at] = owner
        # Not all words are split each time: a text may have very many places.
        starts = self._starts
        return " ".join(self.words[starts[at] : starts[at + 1] - 1] for at in free)

    def between(self, start: int, end: int) -> slice:
        """The place of the words between two letters of `text`."""
        first, last = (bisect_left(self._letters(), at, key=itemgetter(0)) for at in (start, end))
        return slice(first, last)

    def without(self, *owners: Owner) -> str:
        """The text without the words of these owners."""
        kept, begin = [], 0
        for start, end in self._pieces(frozenset(owners)):
            kept.append(self.text[begin:start])
            begin = end
        return "".join([*kept, self.text[begin:]]).strip()

    def unowned(self) -> list[str]:
        """Pieces of the text without an owner."""
        taken = frozenset(Owner) - {Owner.NOBODY}
        ends = [(0, 0), *self._pieces(taken), (len(self.text), len(self.text))]
        return [self.text[a[1] : b[0]] for a, b in pairwise(ends)]

    def _pieces(self, owners: frozenset[Owner]) -> Iterator[tuple[int, int]]:
        """Places of uninterrupted words of these owners, in characters, with what closes them."""
        start = end = -1
        for (first, last), owner in zip(self._letters(), self.owners, strict=True):
            if owner not in owners:
                if start >= 0:
                    yield start, self._closed(end)
                    start = -1
                continue
            start, end = first if start < 0 else start, last
        if start >= 0:
            yield start, self._closed(end)

    def _closed(self, end: int) -> int:
        while self.text[end : end + 1] in _CLOSERS:
            end += 1
        return end


class PhraseIndex:
    """Index of word sequences: finds which known texts occur inside a given text, and where.

    Each text is filed under its sequence of up to four words that the fewest other texts have.

    Args:
        texts: Normalized.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        distinct = dict.fromkeys(filter(None, texts))
        self._few = list(distinct) if len(distinct) <= _FEW else None
        if self._few is not None:
            return
        sequences = {text: _sequences(text.split()) for text in distinct}
        counts = Counter(each for held in sequences.values() for each in set(held))
        # With the distance of the sequence from the beginning of its text.
        self._filed: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        for text, held in sequences.items():
            rarest = min(held, key=lambda each: (counts[each], each))
            self._filed[rarest].append((text, f" {text} ".find(f" {rarest} ")))
        self._sizes = {each.count(" ") + 1 for each in self._filed}

    def find(self, words: str) -> dict[str, list[int]]:
        """The known texts that occur in a normalized text, the longest first.

        Each with the places where it begins, in letters.
        """
        padded = f" {words} "
        found: defaultdict[str, list[int]] = defaultdict(list)
        for known in self._few or ():
            found[known] = list(_places(padded, known))
        if self._few is None:
            split, at = words.split(), 0
            for number, word in enumerate(split):
                for size in self._sizes:
                    sequence = " ".join(split[number : number + size])
                    for known, distance in self._filed.get(sequence, ()):
                        if at >= distance and padded.startswith(f" {known} ", at - distance):
                            found[known].append(at - distance)
                at += len(word) + 1
        longest_first = sorted(found, key=lambda known: (-len(known), known))
        return {known: sorted(set(found[known])) for known in longest_first if found[known]}

    def inside(self, words: str) -> list[str]:
        """The known texts that occur in a normalized text, the longest first."""
        return [*self.find(words)]


def _places(padded: str, words: str) -> Iterator[int]:
    """Positions of words in a text, both padded with a space at either end."""
    at = padded.find(f" {words} ")
    while at >= 0:
        yield at
        at = padded.find(f" {words} ", at + 1)


def _sequences(split: Sequence[str], size: int = _SEQUENCE) -> list[str]:
    """Sequences of `size` words in a text; the whole text if it has fewer."""
    size = min(size, len(split))
    return [" ".join(split[at : at + size]) for at in range(len(split) - size + 1)]
