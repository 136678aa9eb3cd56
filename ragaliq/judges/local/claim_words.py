"""What a claim says, taken apart: words with weights, numbers, names, negation."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ragaliq.judges.language.phrases import CONTEXT
from ragaliq.judges.local.frequencies import WordFrequencies
from ragaliq.judges.local.negation import NEGATIONS, clauses, denied_words, denies
from ragaliq.judges.local.numbers import Number
from ragaliq.judges.local.words import FUNCTION_WORDS, read_words, stems_of

__all__ = ["ABSOLUTES", "ClaimWords", "names_in", "read_claim"]

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
    weights = {word: frequencies.weight(word) for word in stems if word not in _NO_CONTENT}
    if not weights:  # "He was there.": the small words are all there is to go by
        weights = dict.fromkeys(stems, 1.0)
    parts = list(clauses(text)) if denies(stems) else []
    denied = set().union(*map(denied_words, parts))
    return ClaimWords(
        stems=stems,
        weights=weights,
        numbers=[number for number in numbers if number.certain],
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
