"""Index of the context, and matching of a claim's words with it."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from ragaliq.judges.language.sentences import detect_language, split_sentences
from ragaliq.judges.local.claim import ClaimWords
from ragaliq.judges.local.numbers import END, Fit, Number, comparable, fit
from ragaliq.judges.local.records import holds_data, statements
from ragaliq.judges.local.words import (
    FUNCTION_WORDS,
    Words,
    counted,
    is_content,
    join,
    read_words,
    unit_kinds,
)

# One chunk.

_LONGEST = 600  # characters of a sentence; longer ones are lists or tables, and no evidence
# A retriever returns the same chunks repeatedly, so the last ones are cached: 8 MB at most.
_KEPT = 256
_KEPT_LENGTH = 4_000  # characters


class ReadChunk(NamedTuple):
    """A chunk, read once for all claims and contexts.

    Attributes:
        texts: Its sentences and records, word for word; what is too long to be quoted is cut.
        readings: The words that each states; the text itself where that is a sentence.
        records: Positions of those that are records or rows of a table.
        lines: The words of each reading, a line each: to search them is faster than in lists.
        text: The words of all sentences as one text, in which runs of words are searched.
        words: The distinct words.
        language: The language whose rules split the sentences.
    """

    texts: list[str]
    readings: list[str]
    records: list[int]
    lines: list[str]
    text: str
    words: set[str]
    language: str


def _read(chunk: str) -> ReadChunk:
    language = detect_language(chunk)
    if holds_data(chunk):
        stated = list(statements(chunk, lambda text: _cut(text, language)))
        texts = [each.text[:_LONGEST] for each in stated]
        readings = [each.reading for each in stated]
        records = [at for at, each in enumerate(stated) if each.is_record]
    else:
        texts = readings = _cut(chunk, language)
        records = []
    words = read_words(join(readings), is_joined=True).stems
    text = "\n".join(["", *words, ""])
    lines = text.split(END)[:-1]
    return ReadChunk(texts, readings, records, lines, text, set(words), language)


def _cut(chunk: str, language: str) -> list[str]:
    texts: list[str] = []
    for first, end in split_sentences(chunk, language=language):
        start = first
        while end - start > _LONGEST:
            space = chunk.rfind(" ", start + _LONGEST // 2, start + _LONGEST)
            cut = space if space > 0 else start + _LONGEST
            texts.append(chunk[start:cut])
            start = cut + (space > 0)
        texts.append(chunk[start:end])
    return texts


_read_or_kept = lru_cache(maxsize=_KEPT)(_read)


# All chunks of a context.

_SEARCHED = 20_000  # characters that are searched; in more, only the sentences with a word
_STUB = 5  # letters two words must share at least to count as related


class ContextIndex:
    """Index from words to the sentences of the context.

    Args:
        chunks: The texts of the context, in order.

    Attributes:
        chunks: The same.
        texts: The sentences and records of all chunks, word for word.
        readings: The words that each states.
        chunk_of: The position of each sentence's chunk.
        first_of: The position of the first sentence of each sentence's chunk.
        records: Positions of the sentences that are records.
        is_german: Whether a chunk is German, so that capitals do not mark names.
    """

    def __init__(self, chunks: Sequence[str]) -> None:
        self.chunks = list(chunks)
        self._read = [
            _read_or_kept(chunk) if len(chunk) <= _KEPT_LENGTH else _read(chunk) for chunk in chunks
        ]
        self._stems: dict[int, list[str]] = {}
        self._words: dict[int, Words] = {}
        self._found: dict[str, list[int]] = {}
        self._forms: dict[str, frozenset[str]] = {}
        self._together: dict[frozenset[str], list[int]] = {}
        self._sorted: list[str] | None = None
        self.is_german = any(read.language == "de" for read in self._read)
        self.texts: list[str] = []
        self.readings: list[str] = []
        self.chunk_of: list[int] = []
        self.first_of: list[int] = []
        self._lines: list[str] = []
        self._runs: dict[str, bool] = {}
        self.records: set[int] = set()
        self._is_small = sum(len(read.text) for read in self._read) < _SEARCHED
        for position, read in enumerate(self._read):
            first, length = len(self.texts), len(read.texts)
            self.records.update(first + at for at in read.records)
            self.texts += read.texts
            self.readings += read.readings
            self._lines += read.lines
            self.chunk_of += [position] * length
            self.first_of += [first] * length

    def stems(self, at: int) -> list[str]:
        """All the words of a sentence, in order; none at -1, in an empty context."""
        found = self._stems.get(at)
        if found is None:
            found = self._stems[at] = self._lines[at].split() if at >= 0 else []
        return found

    def words(self, at: int) -> Words:
        """The words of a sentence with its numbers."""
        found = self._words.get(at)
        if found is None:
            found = self._words[at] = read_words(self.readings[at])
        return found

    def places(self, word: str) -> Sequence[int]:
        """Positions of the sentences with a word, ascending; empty for function words."""
        if word in FUNCTION_WORDS:
            return ()
        found = self._found.get(word)
        if found is None:
            found, first, line = [], 0, f"\n{word}\n"
            for read in self._read:
                if word in read.words:
                    found += [first + at for at, words in enumerate(read.lines) if line in words]
                first += len(read.lines)
            if found:  # at most the words of the context are kept
                self._found[word] = found
        return found

    def prepare(self, claims: Iterable[str]) -> None:
        """Find all words of many claims and their forms at once, which takes one look at each word.

        A search for each of them would take the claims' length times the context's.
        """
        words = (word for read in self._read for word in read.words)
        self._sorted = sorted({word for word in words if len(word) >= _STUB and word[0] != "#"})
        wanted = self.forms(read_words(join(claims), is_joined=True).stems) - FUNCTION_WORDS
        found: dict[str, list[int]] = {}
        for at, line in enumerate(self._lines):
            for word in wanted.intersection(line.split()):
                found.setdefault(word, []).append(at)
        self._found.update(found)

    def longest_run(self, stems: Sequence[str]) -> int:
        """Length of the longest chain of three-word runs that occur in sentences.

        Function words count too; 0 if no three words follow one another in a sentence.
        """
        longest = run = 0
        for first, second, third in zip(stems, stems[1:], stems[2:], strict=False):
            for read in self._read:
                # Looking up the words is far cheaper than searching the text.
                known = read.words
                if second in known and first in known and third in known:
                    line = f"\n{first}\n{second}\n{third}\n"
                    if line in read.text if self._is_small else self._has_line(line):
                        run += 1
                        longest = max(longest, run)
                        break
            else:
                run = 0
        return longest + 2 if longest else 0

    def _has_line(self, words: str) -> bool:
        """True if words, a line each, follow one another in a sentence of a large context."""
        telling = [word for word in words.split() if word not in FUNCTION_WORDS]
        if not telling:  # of these there are few, but they stand everywhere
            if words not in self._runs:
                self._runs[words] = any(words in read.text for read in self._read)
            return self._runs[words]
        places = min(map(self.places, telling), key=len)
        return any(words in self._lines[at] for at in places)

    def forms(self, words: Iterable[str]) -> set[str]:
        """The words and their other forms in the context."""
        return {form for word in words for form in (word, *self.related(word))}

    def related(self, word: str) -> frozenset[str]:
        """Words of the context that may be other forms of `word`: they share two thirds of it."""
        if len(word) < _STUB or word[0] == "#":
            return frozenset()
        begins = word[: max(_STUB, (2 * len(word) + 2) // 3)]
        found = self._forms.get(begins)
        if found is None:
            found = frozenset(self._beginning(begins)).difference(FUNCTION_WORDS)
            if found:  # at most the beginnings of the context's words are kept
                self._forms[begins] = found
        return found

    def _beginning(self, begins: str) -> Iterator[str]:
        """Words of the context with a beginning."""
        if self._sorted is not None:
            first = bisect_left(self._sorted, begins)
            last = bisect_left(self._sorted, f"{begins}\U0010ffff", first)
            yield from self._sorted[first:last]
            return
        line = f"\n{begins}"
        for read in self._read:
            at = read.text.find(line)
            while at >= 0:
                end = read.text.index("\n", at + 1)
                yield read.text[at + 1 : end]
                at = read.text.find(line, end)

    def places_of(self, words: frozenset[str]) -> Sequence[int]:
        """Positions of the sentences with any of some related words, ascending; kept."""
        if words not in self._together:
            self._together[words] = sorted({at for word in words for at in self.places(word)})
        return self._together[words]


# The best match of a claim in the context, and the claim's words that are missing there.

_WINDOW = 3  # sentences read together
_RELATED = 0.8  # credit for another form of the word
_NEAR = 0.95  # of the best sentence's share, for another one to count as well
_MOST_NEAR = 8
_MOST_STATED = 200  # numbers that a bound is compared with
_COMMON = 512  # sentences; a word in more of them does not tell them apart
Hits = dict[str, tuple[float, Sequence[int]]]
"""Content word -> credit and its sentences, for the words in the context."""

Gains = Sequence[tuple[float, Sequence[int]]]
"""Weight of each of these words, and its sentences."""


@dataclass(frozen=True)
class Match:
    """Match of a claim's words with the context. Shares are of the claim's weight, 0 to 1.

    Attributes:
        sentence: Position of the sentence that covers most; -1 in an empty context.
        near: The first sentences that cover about as much, including the best.
        window_cover: Share covered by the best three neighbouring sentences of a chunk.
        context_cover: Share covered by the whole context.
        chunk_ids: Chunks with a sentence about as good as the best.
        hits: The content words that are in the context, with their sentences.
        missing: Content words that are not in the context, the heaviest first.
        missing_numbers: Numbers of `far_numbers` that are not in the context, or of another thing.
        is_miscounted: Whether all of them are there, of another thing: "3 floors" for 3 rooms.
        missing_names: Names that are not in the context; empty for German, which capitalises nouns.
        far_numbers: Numbers that no `near` sentence has or, for a bound, fits.
    """

    sentence: int
    near: list[int]
    window_cover: float
    context_cover: float
    chunk_ids: list[int]
    hits: Hits
    missing: list[str]
    missing_numbers: list[Number]
    is_miscounted: bool
    missing_names: set[str]
    far_numbers: list[Number]

    @cached_property
    def found(self) -> frozenset[str]:
        """Words of the claim in the best sentence, in any form."""
        hits = self.hits.items()
        return frozenset(word for word, (_, where) in hits if _is_in(self.sentence, where))


def match_claim(claim: ClaimWords, context: ContextIndex) -> Match:
    """Look every content word of a claim up in the context."""
    hits: Hits = {}
    for word in claim.weights:
        if exact := context.places(word):
            hits[word] = 1.0, exact
        elif related := context.related(word):
            hits[word] = _RELATED, context.places_of(related)
    if claim.asked:
        _keep_near_answer(claim, hits)
    weights = claim.weights
    gains = [(weights[word] * credit, where) for word, (credit, where) in hits.items()]
    common_weight, sentences = common_words_weight, by_words = _shares(gains)
    # Its words tell what a claim is about, and not its numbers: Oslo, and not 290,000.
    numbers = sum([word[0] == "#" for word in hits])
    if 0 < numbers < len(hits):
        named = zip(hits, gains, strict=True)
        common_words_weight, by_words = _shares([gain for word, gain in named if word[0] != "#"])
    total = sum(weights.values()) or 1.0
    covered = sum([gain for gain, _ in gains])
    most = common_words_weight + max(by_words.values(), default=0.0)
    least = most * _NEAR
    near = sorted([at for at, share in by_words.items() if common_words_weight + share >= least])
    if not near and most:  # of common words alone
        near = list(range(min(len(context.texts), _MOST_NEAR)))
    if by_words is sentences:
        best, supporting = max(near, key=sentences.__getitem__, default=-1), near
    else:  # a chunk with the claim's words and without its number supports nothing
        best = max(near, key=lambda at: (by_words[at], sentences[at]), default=-1)
        least = _NEAR * (common_weight + max((sentences[at] for at in near), default=0.0))
        supporting = [at for at in near if at == best or common_weight + sentences[at] >= least]
    if best < 0 and context.texts:
        best = 0
    window = _best_window(context, gains, max(sentences.values(), default=0.0))
    missing = claim.weights.keys() - hits.keys()
    far_numbers, missing_numbers = list[Number](), list[Number]()
    if claim.numbers:
        other_records = _records_of_others(hits, context)
        far_numbers = _far_numbers(claim, context, near, apart_from=other_records)
        missing_numbers = _absent(far_numbers, claim, context, apart_from=other_records)
    return Match(
        sentence=best,
        near=near[:_MOST_NEAR],
        window_cover=(common_weight + window) / total,
        context_cover=covered / total,
        chunk_ids=sorted({context.chunk_of[at] for at in supporting}),
        hits=hits,
        missing=sorted(missing, key=lambda word: (-claim.weights[word], word)),
        missing_numbers=missing_numbers,
        is_miscounted=not _absent(missing_numbers, claim, context, of_thing=False),
        missing_names=set() if context.is_german else claim.names & missing,
        far_numbers=far_numbers,
    )


def _is_in(at: int, places: Sequence[int]) -> bool:
    """True if a position is among some that ascend."""
    found = bisect_left(places, at)
    return found < len(places) and places[found] == at


def _keep_near_answer(claim: ClaimWords, hits: Hits) -> None:
    """Leave the words of a question only where the most words of its answer stand."""
    answered = Counter[int]()
    for word, (_, where) in hits.items():
        if word not in claim.asked:
            answered.update(where)
    most = max(answered.values(), default=0)
    # In the claim's order, which makes the sums of the weights the same each time.
    for word in [word for word in hits if word in claim.asked]:
        credit, where = hits.pop(word)
        if near := [at for at in where if answered[at] == most]:
            hits[word] = credit, near


def _records_of_others(hits: Hits, context: ContextIndex) -> set[int]:
    """Records without any of the claim's words that tell records apart.

    Of the rows ("Oslo", 17) and ("Bergen", 23) the second says nothing of a claim about Oslo.
    """
    if not context.records:
        return set()
    # Other forms of one word have the same list.
    words = {id(where): where for word, (_, where) in hits.items() if word[0] != "#"}.values()
    found = [context.records.intersection(where) for where in words]
    telling = [where for where in found if where and where != context.records]
    return context.records.difference(*telling) if telling else set()


def _far_numbers(
    claim: ClaimWords, context: ContextIndex, near: Sequence[int], *, apart_from: Set[int]
) -> list[Number]:
    """Numbers of the claim that no `near` sentence has or, for a bound, fits."""
    absent = _absent(claim.numbers, claim, context, apart_from=apart_from, among=set(near))
    if any(number.bound for number in absent):
        theirs = (number for at in near[:_MOST_NEAR] for number in context.words(at).numbers)
        stated = list(itertools.islice(dict.fromkeys(theirs), _MOST_STATED))
        absent = [number for number in absent if not _holds(number, stated)]
    return absent


def _absent(
    numbers: Sequence[Number], claim: ClaimWords, context: ContextIndex, **options: Any
) -> list[Number]:
    """Numbers of the claim, each once, that no sentence has; see `_is_stated`."""
    # The answer for a number does not depend on its bound or on the words after it.
    stated: dict[tuple[str, bool], bool] = {}
    for number in numbers:
        key = number.stem, number.year
        if key not in stated:
            stated[key] = _is_stated(number, claim, context, **options)
    absent = [each for each in numbers if not stated[each.stem, each.year]]
    return list(dict.fromkeys(absent))


def _is_stated(
    number: Number,
    claim: ClaimWords,
    context: ContextIndex,
    *,
    apart_from: Set[int] = frozenset(),
    among: set[int] | None = None,
    of_thing: bool = True,
) -> bool:
    """True if a sentence has a number of the claim, of the same kind and of the same thing.

    300 metres differ from 300 per cent, and three floors from three rooms.

    Args:
        number: One of the claim's.
        claim: The claim.
        context: The context.
        apart_from: Positions of sentences that do not count.
        among: Positions of the sentences that count; all where None.
        of_thing: Whether it must count the same thing, and not only have the same unit.
    """
    places = [
        at
        for at in context.places(number.stem)
        if at not in apart_from and (among is None or at in among)
    ]
    if not places or number.stem not in claim.first_position:
        return bool(places)
    place = claim.first_position[number.stem]
    kinds = unit_kinds(claim.stems, place)
    things = counted(claim.stems, place) if of_thing else []
    having = [context.stems(at) for at in places[:_COMMON]]
    if number.year and things:
        return not all(_counts_another(stems, things[0]) for stems in having)
    if not kinds and not things:
        swaps = _swaps(claim, number.stem)
        return not swaps or not all(_has_swap(stems, swaps) for stems in having)
    if any(_counts(stems, number.stem, kinds, set(things)) for stems in having):
        return True
    if not things:
        return False
    named, forms = _named(claim, place), context.forms(things)
    return any(
        _counts(stems, number.stem, kinds, forms) or _has_pair(stems, named) for stems in having
    )


def _counts_another(stems: Sequence[str], thing: str) -> bool:
    """True if a number that is not a year counts a thing: "in 1998 it had 300 members"."""
    return any(
        word[0] == "#" and not _LOOKS_LIKE_YEAR.match(word) and thing in counted(stems, at)[:1]
        for at, word in enumerate(stems)
    )


def _swaps(claim: ClaimWords, number: str) -> list[tuple[tuple[str, str], ...]]:
    """Pairs of word and number that a text has if it exchanges a claim's number for another.

    "Room 12" and "floor 3" for the 3 of "Room 3 is on floor 12"; then the pair it should have.
    """
    own = [word for word, each in claim.named_numbers if each == number]
    return [
        ((word, other), (their, number), (word, number))
        for word in own
        for their, other in claim.named_numbers
        if other != number
    ]


def _has_swap(stems: Sequence[str], swaps: Sequence[tuple[tuple[str, str], ...]]) -> bool:
    pairs = set(itertools.pairwise(stems))
    return any(
        first in pairs and second in pairs and right not in pairs for first, second, right in swaps
    )


def _named(claim: ClaimWords, at: int) -> list[str]:
    """The name that ends in the number at a position, "Apollo 11", which counts nothing."""
    before = claim.stems[at - 1 : at]
    is_name = at == 1 or not claim.names.isdisjoint(before)
    return [*before, claim.stems[at]] if is_name and all(map(is_content, before)) else []


def _has_pair(stems: Sequence[str], pair: list[str]) -> bool:
    return len(pair) > 1 and any(pair == [*both] for both in itertools.pairwise(stems))


_LOOKS_LIKE_YEAR = re.compile(r"#[12]\d{3}$")
_FAR_REACH = 5  # words: "19 U.S. Supreme Court justices"


def _counts(stems: Sequence[str], number: str, kinds: set[str], things: set[str]) -> bool:
    """True if a sentence has a number of one of some kinds and things, as far as it names them.

    The number that shares most of its words with the things is the one that counts them: not the
    five of "three gold and five silver medals", where gold medals are counted.
    """
    for at in [at for at, word in enumerate(stems) if word == number]:
        theirs = unit_kinds(stems, at)
        if kinds and theirs:
            if kinds & theirs:
                return True
        elif not things or not counted(stems, at):
            return True
        elif shared := _share(stems, at, things):
            others = (other for other, word in enumerate(stems) if word[0] == "#")
            if shared >= max(_share(stems, other, things) for other in others):
                return True
    return False


def _share(stems: Sequence[str], at: int, things: set[str]) -> int:
    """Number of some things that the number at a position counts."""
    return len(things.intersection(counted(stems, at, reach=_FAR_REACH)))


def _holds(number: Number, stated: Sequence[Number]) -> bool:
    """True if a number with a bound fits one of others: "over 100" where 116 is stated."""
    return number.bound != "" and any(
        fit(number, other) is Fit.HOLDS for other in comparable(number, stated)
    )


def _shares(gains: Gains) -> tuple[float, dict[int, float]]:
    """Weight of the words that most sentences have, and of the others found in each sentence.

    Only sentences with a rare word of the claim are checked.
    """
    common_weight = 0.0
    sentences: dict[int, float] = defaultdict(float)
    for gain, where in gains:
        if len(where) > _COMMON:
            common_weight += gain
            continue
        for at in where:
            sentences[at] += gain
    return common_weight, sentences


def _best_window(context: ContextIndex, gains: Gains, best: float) -> float:
    """Weight of the rare words that the best neighbouring sentences of a chunk have together.

    Args:
        context: The context.
        gains: Weights of the claim's words that are in the context.
        best: The same weight for the best sentence alone.
    """
    gains = [gain for gain in gains if len(gain[1]) <= _COMMON]
    most = sum([gain for gain, _ in gains])
    is_one = len(context.texts) <= _WINDOW and len(context.chunks) == 1
    if is_one or best >= most:
        return most
    windows: dict[int, float] = defaultdict(float)  # by their first sentence
    for gain, where in gains:
        done = -1  # the last window that has the word already
        for at in where:
            # Not `max` of the three: it takes most of the time here.
            first = context.first_of[at]
            start = at - _WINDOW + 1 if at - _WINDOW >= first else first
            for window in range(start if start > done else done + 1, at + 1):
                windows[window] += gain
            done = at
    return max(windows.values(), default=0.0)
