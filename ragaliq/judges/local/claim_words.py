"""What a claim says, taken apart: words with weights, numbers, names, negation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ragaliq.judges.language.phrases import CONTEXT
from ragaliq.judges.local.frequencies import WordFrequencies
from ragaliq.judges.local.numbers import Number
from ragaliq.judges.local.words import FUNCTION_WORDS, read_words, stems_of

__all__ = ["ABSOLUTES", "ClaimWords", "clauses", "denies", "names_in", "read_claim"]

# Stems, as `words.stem` leaves them.
_NEGATIONS = frozenset(
    "not no never none nobody nothing neither nor without nicht kein keine keinen keiner nie "
    "jamais nunca nem niet geen не нет никог ni لا ليس لم नहीं ない せん".split()
)
_NEGATIVE_SIGNS = frozenset("不没沒未않없못")  # Chinese and Korean: part of a word pair
ABSOLUTES = frozenset(
    "only all alway never every entir most best first largest exclusiv sol complet none everyon "
    "everyth least worst biggest highest greatest mor less than ever".split()
)
_BREAK = re.compile(r"[,;:()–—!?]|\b(?:but|although|while|and|aber|mais|pero|ma|mas)\b")
_EMPHASIS = re.compile(r"\bnot (?:only|just|merely|simply)\b", re.IGNORECASE)
_CLAUSE_WORDS = 2  # content words without which "not" is no part of what is claimed
# "According to the context, ...": said about the claim, not by it.
_ATTRIBUTION = re.compile(
    rf"^\W*(?:according to|based on|as (?:stated|mentioned|described) in|per) (?:\w+ )?{CONTEXT},?",
    re.IGNORECASE,
)
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
    """

    stems: list[str]
    weights: dict[str, float]
    numbers: list[Number]
    names: frozenset[str]
    negated: bool


def read_claim(text: str, frequencies: WordFrequencies) -> ClaimWords:
    """Take a claim apart."""
    text = _ATTRIBUTION.sub("", text)
    stems, numbers = read_words(text)
    weights = {word: frequencies.weight(word) for word in stems if word not in FUNCTION_WORDS}
    if not weights:  # "He was there.": the small words are all there is to go by
        weights = dict.fromkeys(stems, 1.0)
    return ClaimWords(
        stems=stems,
        weights=weights,
        numbers=[number for number in numbers if number.certain],
        names=names_in(text, frequencies),
        negated=denies(stems)
        and any(
            denies(clause) and len(set(clause) - FUNCTION_WORDS) >= _CLAUSE_WORDS
            for clause in clauses(text)
        ),
    )


def clauses(text: str) -> Iterator[list[str]]:
    """The words of each clause of a sentence; "not only" is left out, as it denies nothing."""
    return (read_words(part).stems for part in _BREAK.split(_EMPHASIS.sub(" ", text)))


def denies(stems: Iterable[str]) -> bool:
    """Whether a negation is among the words."""
    return any(
        word in _NEGATIONS or not (word.isascii() or _NEGATIVE_SIGNS.isdisjoint(word))
        for word in stems
    )


def names_in(text: str, frequencies: WordFrequencies) -> frozenset[str]:
    """Stems of words that look like names: capitals, at the start of a text only if known."""
    names: set[str] = set()
    first = True
    for match in _WORD.finditer(text):
        if match.group()[0].isupper():
            stems = stems_of(match.group())
            words = [word for word in stems if word not in FUNCTION_WORDS]
            if words and (not first or frequencies.is_name(words[0])):
                names.update(word for word in words if word[0] != "#")
            elif not first:
                names.update(_PARTICLES.intersection(stems))
        first = False
    return frozenset(names)
