"""What a claim says, taken apart: words with weights, numbers, names, denials."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ragaliq.judges.language.refusals import CONTEXT
from ragaliq.judges.local.numbers import Number
from ragaliq.judges.local.words import (
    DENIALS_OF_A_CLAUSE,
    DENIALS_OF_A_WORD,
    FUNCTION_WORDS,
    is_pair,
    read_words,
    stems_of,
)

__all__ = [
    "ABSOLUTES",
    "NEGATIONS",
    "OTHERWISE",
    "ClaimWords",
    "WordFrequencies",
    "clauses",
    "denied_words",
    "denies",
    "names_in",
    "read_claim",
]


# How much a word tells.

_FULL_LENGTH = 6  # letters from which an unseen word counts as fully rare
_PAIR_SHARE = 0.5  # of the highest weight, for a pair of characters
_SOFT_PAIR_SHARE = 0.15  # for a pair of Japanese syllable signs, which mostly is grammar


class WordFrequencies:
    """Weights of words, from document counts, and which of them are names.

    The weight of a word in `n` of `N` documents is `ln((N + 1) / (n + 0.5))` (Spärck Jones 1972,
    smoothed). A word never seen weighs the more the longer it is: in most languages the short
    words are the grammatical ones.

    Args:
        documents: How many texts were counted, at least 1.
        counts: Documents by word, at least 1 each.
        names: Words that are nearly always written with a capital.
    """

    def __init__(
        self, documents: int, counts: Mapping[str, int], names: Collection[str] = ()
    ) -> None:
        self.highest = math.log((documents + 1) / 1.5)
        self.names = frozenset(names)
        self.weights = {
            word: math.log((documents + 1) / (count + 0.5)) for word, count in counts.items()
        }

    def weight(self, word: str) -> float:
        """The weight of a stem, from 0 (grammatical) to `highest` (seen in one text at most)."""
        if word in FUNCTION_WORDS:
            return 0.0
        known = self.weights.get(word)
        if known is not None:
            return known
        if is_pair(word):
            soft = all("\u3040" <= character <= "\u309f" for character in word)
            return self.highest * (_SOFT_PAIR_SHARE if soft else _PAIR_SHARE)
        length = _FULL_LENGTH if word[0] == "#" else min(len(word), _FULL_LENGTH)
        return self.highest * length / _FULL_LENGTH


# Denials: the words that deny, and what they are about.

NEGATIONS = DENIALS_OF_A_WORD | DENIALS_OF_A_CLAUSE
_NEGATIVE_SIGNS = frozenset("不没沒未않없못")  # Chinese and Korean: part of a word pair
# "He failed to win" denies as "he did not win" does.
OTHERWISE = frozenset(
    "fail refus lack absent absenc unabl unlik hard rar seldom except exclud reject deni prohibit "
    "forbid forbidden ban avoid prevent declin cease stop los miss unless impossibl illegal free "
    "barel scarce few littl stopp".split()
)
_BREAK = re.compile(r"[,;:()–—!?]|\.(?=\s|$)|\b(?:but|although|while|and|aber|mais|pero|ma|mas)\b")
# They deny nothing: "not only", "no later than", "nothing but", "No. 5", "a sin".
_EMPHASIS = re.compile(
    r"\bnot (?:only|just|merely|simply)\b|\b(?:no|not) (?:more|less|fewer|later|earlier) than\b"
    r"|\bno doubt\b|\b(?:nothing|none) (?:but|(?:more|less|other) than)\b|\bnos?\.\s?(?=\d)"
    r"|\b(?:a|the|of|original|my|his|her|our|their|your) sins?\b",
    re.IGNORECASE,
)
_BETWEEN = 2  # function words between a negation and what it denies: "not in the shop"
_LONGEST = 3  # content words it can be about: "no heated outdoor pool"


def clauses(text: str) -> Iterator[list[str]]:
    """The words of each clause of a sentence; "not only" is left out, as it denies nothing."""
    return (read_words(part).stems for part in _BREAK.split(_EMPHASIS.sub(" ", text)))


def denies(stems: Iterable[str], negations: Collection[str] = NEGATIONS) -> bool:
    """Whether a negation is among the words."""
    return any(
        word in negations or not (word.isascii() or _NEGATIVE_SIGNS.isdisjoint(word))
        for word in stems
    )


def denied_words(clause: Sequence[str], negations: Collection[str]) -> set[str]:
    """Content words right after a negation."""
    denied: set[str] = set()
    for at, word in enumerate(clause):
        if word in negations:
            start = at + 1
            while (
                start <= at + _BETWEEN and start < len(clause) and clause[start] in FUNCTION_WORDS
            ):
                start += 1
            most = 1 if word == "non" else _LONGEST
            follows = clause[start : start + most]
            denied.update(itertools.takewhile(lambda word: word not in FUNCTION_WORDS, follows))
    return denied


# The claim itself.

# Stems, as `words.stem` leaves them.
ABSOLUTES = frozenset(
    "only all alway never every entir most best first largest exclusiv sol complet none everyon "
    "everyth least worst biggest highest greatest mor less than ever".split()
)
_CLAUSE_WORDS = 2  # content words without which "not" is no part of what is claimed
# "According to the context, ...": said about the claim, not by it.
_ATTRIBUTION = re.compile(
    rf"^\W*(?:according to|based on|as (?:stated|mentioned|described) in|per) (?:\w+ )?{CONTEXT},?",
    re.IGNORECASE,
)
# "More than 100" and "about 100" hold for other numbers too.
_BOUND = re.compile(
    r"\b(?:(?:more|less|fewer|greater|higher|lower|later|earlier) than|over|under|above|below|"
    r"at (?:least|most)|up to|about|around|approximately|roughly|nearly|almost|some|mehr als|"
    r"weniger als|über|unter|mindestens|höchstens|bis zu|etwa|rund|fast|plus de|moins de|environ|"
    r"au (?:moins|plus)|más de|menos de|al menos|unos|cerca de|più di|meno di|circa|mais de) "
    r"(?=[\d$€£¥₹]|[^\W\d_])",
    re.IGNORECASE,
)
_NEXT = 30  # characters in which the number follows
_NO_CONTENT = FUNCTION_WORDS | NEGATIONS
_PARTICLES = frozenset("le la les de da di van von der den del el al".split())
_WORD = re.compile(r"[^\W\d_][\w'’-]*")


@dataclass(frozen=True, slots=True)
class ClaimWords:
    """A claim, ready to be looked up in a context.

    Attributes:
        stems: All words in order.
        weights: Content words and how much each tells.
        numbers: Numbers that must be in the context.
        names: Words written as names.
        negated: Whether the claim denies something; "Not sure, but ..." does not.
        denied: The words it denies singly: "garden" in "It has no garden."
    """

    stems: list[str]
    weights: dict[str, float]
    numbers: list[Number]
    names: frozenset[str]
    negated: bool
    denied: frozenset[str]


def read_claim(text: str, frequencies: WordFrequencies) -> ClaimWords:
    """Take a claim apart."""
    text = _ATTRIBUTION.sub("", text)
    stems, numbers, _ = read_words(text)
    ranges = set()  # numbers that stand for a range
    for match in _BOUND.finditer(text) if numbers else ():
        words = read_words(text[match.end() : match.end() + _NEXT])
        if words.places and words.places[0] == 0:
            ranges.add(words.numbers[0])
    weights = {word: frequencies.weight(word) for word in stems if word not in _NO_CONTENT}
    if not weights:  # "He was there.": the small words are all there is to go by
        weights = dict.fromkeys(stems, 1.0)
    parts = list(clauses(text)) if denies(stems) else []
    denied = {word for clause in parts for word in denied_words(clause, DENIALS_OF_A_WORD)}
    return ClaimWords(
        stems=stems,
        weights=weights,
        numbers=[number for number in numbers if number.certain and number not in ranges],
        names=names_in(text, frequencies),
        negated=bool(denied)
        or any(
            denies(clause) and len(set(clause) - _NO_CONTENT) >= _CLAUSE_WORDS for clause in parts
        ),
        denied=frozenset(denied),
    )


def names_in(text: str, frequencies: WordFrequencies) -> frozenset[str]:
    """Stems of words that look like names: capitals, at the start of a text only if known."""
    names: set[str] = set()
    for position, match in enumerate(_WORD.finditer(text)):
        if not match.group()[0].isupper():
            continue
        stems = stems_of(match.group())
        words = [word for word in stems if word not in FUNCTION_WORDS]
        known = frequencies.names
        if words and (position or words[0] in known or words[0] not in frequencies.weights):
            names.update(word for word in words if word[0] != "#")
        elif position:
            names.update(_PARTICLES.intersection(stems))
    return frozenset(names)
