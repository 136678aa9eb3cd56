"""Parsed claim: words with weights, numbers, names, negations."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ragaliq.judges.language.refusals import NAMES_OF_CONTEXT
from ragaliq.judges.local.numbers import Number
from ragaliq.judges.local.records import reading_of
from ragaliq.judges.local.words import (
    FUNCTION_WORDS,
    NEGATIONS,
    NO_CONTENT,
    is_content,
    is_pair,
    read_words,
    stem,
    stems_of,
)

# Weights of words.

_FULL_LENGTH = 6  # letters from which an unseen word counts as fully rare
_PAIR_SHARE = 0.5  # of the highest weight, for a pair of characters
_SOFT_PAIR_SHARE = 0.15  # for a pair of Japanese syllable signs, which mostly is grammar


@dataclass(frozen=True)
class WordFrequencies:
    """Weights of words, from document counts.

    The weight of a word in `n` of `N` documents is `ln((N + 1) / (n + 0.5))` (Spärck Jones 1972,
    smoothed). A word never seen weighs the more the longer it is: in most languages the short
    words are the grammatical ones.

    Attributes:
        documents: Number of counted texts, at least 1.
        counts: Documents by word, at least 1 each.
    """

    documents: int
    counts: Mapping[str, int]
    _known: dict[str, float] = field(default_factory=dict, compare=False)

    def weight(self, word: str) -> float:
        """Weight of a stem; at most that of a stem seen in one text."""
        if word in self._known:
            return self._known[word]
        count = self.counts.get(word)
        weight = math.log((self.documents + 1) / ((count or 1) + 0.5))
        if count:
            self._known[word] = weight  # at most the counted words
            return weight
        if is_pair(word):
            soft = all("\u3040" <= character <= "\u309f" for character in word)
            return weight * (_SOFT_PAIR_SHARE if soft else _PAIR_SHARE)
        length = _FULL_LENGTH if word[0] == "#" else min(len(word), _FULL_LENGTH)
        return weight * length / _FULL_LENGTH


# Denials.

_NEGATIVE_SIGNS = frozenset("不没沒未않없못")  # Chinese and Korean: part of a word pair
_BREAK = re.compile(r"[,;:()–—!?]|\.(?=\s|$)|\b(?:but|although|while|and|aber|mais|pero|ma|mas)\b")
# Phrases that are not negations: "not only", "no later than", "nothing but", "No. 5", "a sin".
_EMPHASIS = re.compile(
    r"\bnot (?:only|just|merely|simply)\b|\b(?:no|not) (?:more|less|fewer|later|earlier) than\b"
    r"|\bnicht (?:mehr|weniger) als\b|\bpas (?:plus|moins) de (?=\d)|\bno (?:más|menos) de\b"
    r"|\bnon (?:più|meno) di\b|\bniet meer dan\b|\bне (?:более|менее)\b"
    r"|\bno doubt\b|\b(?:nothing|none) (?:but|(?:more|less|other) than)\b|\bnos?\.\s?(?=\d)"
    r"|\b(?:a|the|of|original|my|his|her|our|their|your) sins?\b",
    re.IGNORECASE,
)


def clauses(text: str) -> Iterator[list[str]]:
    """Split a sentence into the words of its clauses, without phrases such as "not only"."""
    parts = (read_words(part).stems for part in _BREAK.split(_EMPHASIS.sub(" ", text)))
    return filter(None, parts)


def denies(stems: Sequence[str]) -> bool:
    """True if a negation is among the words."""
    if not NEGATIONS.isdisjoint(stems):
        return True
    letters = "".join(stems)
    return not (letters.isascii() or _NEGATIVE_SIGNS.isdisjoint(letters))


# The claim itself.

_CLAUSE_WORDS = 2  # content words of one clause among others, with fewer, "not" is not a claim
# "According to the context, ..." is about the claim, not part of it.
_ATTRIBUTION = re.compile(
    r"^\W*(?:according to|based on|as (?:stated|mentioned|described) in|per) "
    rf"(?:\w+ )?{NAMES_OF_CONTEXT},?",
    re.IGNORECASE,
)
# "What is the capital of Norway? Oslo": the question tells where to look, the answer what for.
_ANSWERED = re.compile(
    r"(?P<question>[^?？]{2,300}[?？])\s*(?P<answer>[^?？\s][^?？]{0,200})", re.DOTALL
)
_MOST_NAMED = 20  # numbers of a claim that are compared with each other
_ASKED_SHARE = 0.5  # weight of all words of the question, as a share of the answer's
_AMOUNT_ASKED = re.compile(
    r"\bhow (?:many|much|long|far|old|often|big|tall|high|large|deep)\b"
    r"|\bwie ?(?:viele?|lange?|oft|alt)\b|\b(?:combien|cuánt[oa]s?|quant[ieoa]s?|hoeveel)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_IS = frozenset("is are was were ist sind war waren".split())
_SHORT = 6  # content words of a claim that says little but its predicate


@dataclass(frozen=True)
class ClaimWords:
    """A parsed claim, ready to be looked up in a context.

    Attributes:
        stems: All words in order.
        weights: Content words with their weights.
        numbers: Numbers that must be in the context.
        names: Capitalised content words except the first word.
        negated: Whether the claim is negated; "Not sure, but ..." is not.
        asked: Content words of the question that the claim answers; empty for a sentence.
        predicate: Content words of a short claim after "is": `red` in "The lamp is red."; empty
            after an article or a small word, as in "Gin is a drink.", which few texts say.
        ordinals: Numbers such as the "third" of "on the third floor".
    """

    stems: list[str]
    weights: dict[str, float]
    numbers: list[Number]
    names: set[str]
    negated: bool
    asked: frozenset[str] = frozenset()
    predicate: Sequence[str] = ()
    ordinals: Sequence[Number] = ()

    @cached_property
    def first_position(self) -> dict[str, int]:
        """Position of each word's first occurrence."""
        return {word: at for at, word in reversed(list(enumerate(self.stems)))}

    @cached_property
    def named_numbers(self) -> list[tuple[str, str]]:
        """The first pairs of a content word and a number after it: "room 12"."""
        pairs = itertools.pairwise(self.stems)
        named = (pair for pair in pairs if pair[1][0] == "#" and is_content(pair[0]))
        return list(itertools.islice(named, _MOST_NAMED))


def read_claim(text: str, frequencies: WordFrequencies) -> ClaimWords:
    """Parse a claim."""
    text, answered = _ATTRIBUTION.sub("", reading_of(text)), None
    if "?" in text or "？" in text:
        text = _AMOUNT_ASKED.sub("", text)
        answered = _ANSWERED.fullmatch(text)
    stems, numbers = read_words(text)
    bounds = {stem(word) for number in numbers for word in number.bound.split()}
    weights = {
        word: frequencies.weight(word)
        for word in stems
        if word not in NO_CONTENT and word not in bounds
    }
    if not weights:  # "He was there.": the small words are all there is to go by
        weights = dict.fromkeys(stems, 1.0)
    parts = list(clauses(text)) if denies(stems) else []
    least = _CLAUSE_WORDS if len(parts) > 1 else 1
    negated = any(denies(part) and len(set(part) - NO_CONTENT) >= least for part in parts)
    asked = frozenset[str]()
    if answered is not None:
        said = read_words(answered["answer"]).stems
        negated = negated or (denies(said) and NO_CONTENT.issuperset(said))
        asked = _weigh_question(weights, said)
    return ClaimWords(
        stems=stems,
        weights=weights,
        numbers=[number for number in numbers if number.certain],
        names=names_in(text, start=1),
        negated=negated,
        asked=asked,
        predicate=() if answered or numbers else _predicate(stems, weights),
        ordinals=[number for number in numbers if number.ordinal],
    )


def _predicate(stems: Sequence[str], weights: Mapping[str, float]) -> Sequence[str]:
    """Content words after "is", in a claim of a few content words and no number."""
    if len(weights) > _SHORT or _IS.isdisjoint(stems):
        return ()
    at = next(at for at, word in enumerate(stems) if word in _IS) + 1
    if stems[at : at + 1] and stems[at] in NO_CONTENT:
        return ()
    return [word for word in stems[at:] if word in weights]


def _weigh_question(weights: dict[str, float], said: Sequence[str]) -> frozenset[str]:
    """Give the words of a question half the weight of those that answer it; return the former.

    None where the answer has no words of its own: "Yes" states what was asked.
    """
    asked = [word for word in weights if word not in said]
    own = sum(weights.values()) - sum(weights[word] for word in asked)
    if not own or not asked:
        return frozenset()
    share = min(1.0, _ASKED_SHARE * own / sum(weights[word] for word in asked))
    for word in asked:
        weights[word] *= share
    return frozenset(asked)


def names_in(text: str, *, start: int = 0) -> set[str]:
    """Stems of capitalised content words, from the word at position `start`."""
    return {
        found
        for word in _WORD.findall(text)[start:]
        if word[0].isupper()
        for found in stems_of(word)
        if found not in FUNCTION_WORDS and found[0] != "#"
    }
