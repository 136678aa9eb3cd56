"""Denials: the words that deny, and what they are about."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from ragaliq.judges.local.words import (
    DENIALS_OF_A_CLAUSE,
    DENIALS_OF_A_WORD,
    FUNCTION_WORDS,
    read_words,
)

__all__ = ["NEGATIONS", "clauses", "denied_words", "denies", "denies_all", "says_no_otherwise"]

NEGATIONS = DENIALS_OF_A_WORD | DENIALS_OF_A_CLAUSE
_NEGATIVE_SIGNS = frozenset("不没沒未않없못")  # Chinese and Korean: part of a word pair
# "He failed to win" denies as "he did not win" does.
_OTHERWISE = frozenset(
    "fail refus lack absent absenc unabl unlik hard rar seldom except exclud reject deni prohibit "
    "forbid forbidden ban avoid prevent declin cease stop los miss unless impossibl illegal free "
    "barel scarce few littl stopp".split()
)
_BREAK = re.compile(r"[,;:()–—!?]|\b(?:but|although|while|and|aber|mais|pero|ma|mas)\b")
# They deny nothing: "not only", "no later than", "nothing but".
_EMPHASIS = re.compile(
    r"\bnot (?:only|just|merely|simply)\b|\b(?:no|not) (?:more|less|fewer|later|earlier) than\b"
    r"|\bno doubt\b|\bnothing (?:but|(?:more|less|other) than)\b",
    re.IGNORECASE,
)
_BETWEEN = 2  # function words between a negation and what it denies: "not in the shop"
_LONGEST = 3  # content words it can be about: "no heated outdoor pool"


def clauses(text: str) -> Iterator[list[str]]:
    """The words of each clause of a sentence; "not only" is left out, as it denies nothing."""
    return (read_words(part).stems for part in _BREAK.split(_EMPHASIS.sub(" ", text)))


def denies(stems: Iterable[str]) -> bool:
    """Whether a negation is among the words."""
    return any(
        word in NEGATIONS or not (word.isascii() or _NEGATIVE_SIGNS.isdisjoint(word))
        for word in stems
    )


def denies_all(clause: Iterable[str]) -> bool:
    """Whether a negation is among the words that denies the whole clause: "not", "never"."""
    return any(
        word in DENIALS_OF_A_CLAUSE or not (word.isascii() or _NEGATIVE_SIGNS.isdisjoint(word))
        for word in clause
    )


def denied_words(clause: Sequence[str], *, any_negation: bool = False) -> set[str]:
    """Content words right after a negation.

    Args:
        clause: Words of a clause, in order.
        any_negation: Also after "not" and the like, which deny the clause, not one word.
    """
    negations = NEGATIONS if any_negation else DENIALS_OF_A_WORD
    denied: set[str] = set()
    for at, word in enumerate(clause):
        if word in negations:
            denied.update(_follows(clause, at + 1))
    return denied


def _follows(clause: Sequence[str], start: int) -> Sequence[str]:
    for _ in range(_BETWEEN):
        if start < len(clause) and clause[start] in FUNCTION_WORDS:
            start += 1
    end = start
    while end < min(len(clause), start + _LONGEST) and clause[end] not in FUNCTION_WORDS:
        end += 1
    return clause[start:end]


def says_no_otherwise(stems: Collection[str]) -> bool:
    """Whether a word denies without being a negation: "fails", "lacks", "except"."""
    return not _OTHERWISE.isdisjoint(stems)
