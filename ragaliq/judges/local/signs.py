"""Positive signs that the context says otherwise, in a sentence that matches but for them.

A claim whose words are merely absent is not contradicted. It is when a sentence says nearly the
same with another number, another name, or with a negation on one side only.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ragaliq.judges.local.claim_words import ClaimWords, names_in
from ragaliq.judges.local.context import ContextIndex
from ragaliq.judges.local.frequencies import WordFrequencies
from ragaliq.judges.local.matching import Match
from ragaliq.judges.local.negation import (
    clauses,
    denied_words,
    denies,
    denies_all,
    says_no_otherwise,
)
from ragaliq.judges.local.numbers import Number
from ragaliq.judges.local.units import UNITS, other_unit
from ragaliq.judges.local.words import stem

__all__ = ["Sign", "find_sign"]

_NUMBER_COVER = 0.6  # share of the rest of the claim the sentence must cover
_NAME_COVER = 0.9
_NEGATION_COVER = 0.85
_UNITS = {stem(unit): unit for unit in UNITS}
_LEAST_WORDS = 2  # content words of the rest; with fewer, agreement is chance


class Sign(NamedTuple):
    """Why a claim counts as contradicted.

    Attributes:
        kind: `number`, `measure`, `name` or `negation`.
        claimed: What the claim has, as stems; empty for a negation.
        stated: What the sentence has instead.
    """

    kind: str
    claimed: tuple[str, ...] = ()
    stated: tuple[str, ...] = ()


def find_sign(
    claim: ClaimWords, match: Match, context: ContextIndex, frequencies: WordFrequencies
) -> Sign | None:
    """The first sign of a contradiction between a claim and the sentence that matches it best."""
    if match.sentence < 0:
        return None
    return (
        _other_number(claim, match, context)
        or _other_unit(claim, match, context)
        or _other_name(claim, match, context, frequencies)
        or _negation(claim, match, context)
    )


def _rest(claim: ClaimWords, match: Match, without: Sequence[str]) -> tuple[float, int]:
    """Share of the claim the sentence covers when some words are left out, and words it has."""
    rest = {word: weight for word, weight in claim.weights.items() if word not in without}
    found = [word for word in rest if word in match.found]
    total = sum(rest.values())
    return (sum(rest[word] for word in found) / total if total else 0.0), len(found)


def _other_number(claim: ClaimWords, match: Match, context: ContextIndex) -> Sign | None:
    if not match.missing_numbers:
        return None
    claimed = {value for number in claim.numbers for value in number.values}
    stated = [
        number for number in context.numbers(match.sentence) if claimed.isdisjoint(number.values)
    ]
    missing = match.missing_numbers
    same_kind = [number for number in stated if number.year == missing[0].year and number.certain]
    cover, words = _rest(claim, match, [number.values[0] for number in missing])
    if same_kind and cover >= _NUMBER_COVER and words >= _LEAST_WORDS:
        return Sign("number", _shown(missing), _shown(same_kind))
    return None


def _shown(numbers: Sequence[Number]) -> tuple[str, ...]:
    return tuple(number.values[0] for number in numbers)


def _other_name(
    claim: ClaimWords, match: Match, context: ContextIndex, frequencies: WordFrequencies
) -> Sign | None:
    if not match.missing_names:
        return None
    cover, words = _rest(claim, match, match.missing_names)
    if cover < _NAME_COVER or words < _LEAST_WORDS:
        return None
    theirs = context.stems(match.sentence)
    others = names_in(context.text(match.sentence), frequencies) - claim.weights.keys()
    stated_in = _framed(theirs, others)
    for frame, run in _framed(claim.stems, claim.names):
        claimed = claim.stems[run.start : run.stop]
        if not claim.weights.keys() & set(claimed) <= set(match.missing_names):
            continue  # "Rupert Murdoch" against "Murdoch" is the same name
        for other, place in stated_in:
            if _same_place(frame, other):
                return Sign("name", tuple(claimed), tuple(theirs[place.start : place.stop]))
    return None


Frame = tuple[str, str, str, str]


def _framed(stems: Sequence[str], names: Collection[str]) -> list[tuple[Frame, range]]:
    """Each name with the two words before and after it; empty beyond the ends."""
    padded = ["", "", *stems, "", ""]
    return [
        (
            (padded[run.start], padded[run.start + 1], padded[run.stop + 2], padded[run.stop + 3]),
            run,
        )
        for run in _runs(stems, names)
    ]


def _runs(stems: Sequence[str], names: Collection[str]) -> list[range]:
    """Where names stand: neighbouring ones are one name."""
    runs: list[range] = []
    for at, word in enumerate(stems):
        if word in names:
            begins = runs.pop().start if runs and runs[-1].stop == at else at
            runs.append(range(begins, at + 1))
    return runs


def _same_place(one: Frame, other: Frame) -> bool:
    """Whether two names stand in the same place: two words agree on a side, or one on each."""
    before = one[1] != "" and one[:2] == other[:2]
    after = one[2] != "" and one[2:] == other[2:]
    return before or after or one[1:3] == other[1:3]


def _other_unit(claim: ClaimWords, match: Match, context: ContextIndex) -> Sign | None:
    """The same number with another unit: five days against five weeks."""
    found = other_unit(claim.stems, context.stems(match.sentence), _UNITS)
    if found is None:
        return None
    claimed, stated = found
    cover, words = _rest(claim, match, claimed)
    if cover >= _NUMBER_COVER and words >= _LEAST_WORDS:
        return Sign("measure", claimed, stated)
    return None


def _negation(claim: ClaimWords, match: Match, context: ContextIndex) -> Sign | None:
    cover, words = _rest(claim, match, ())
    if cover < _NEGATION_COVER or not words:
        return None
    # Another sentence that matches as well may agree.
    differs = all(_opposed(claim, match, context, at) for at in match.near)
    return Sign("negation") if differs and match.near else None


def _opposed(claim: ClaimWords, match: Match, context: ContextIndex, sentence: int) -> bool:
    """Whether one side denies what the other says."""
    stems = context.stems(sentence)
    if claim.negated:  # any negation in the sentence may be the one the claim repeats
        told = len(match.found) >= _LEAST_WORDS or not claim.denied.isdisjoint(stems)
        return told and not denies(stems) and not says_no_otherwise(stems)
    if not denies(stems) or says_no_otherwise(set(claim.stems).difference(stems)):
        return False
    return any(_denied(clause, match.found) for clause in clauses(context.text(sentence)))


def _denied(clause: Sequence[str], found: frozenset[str]) -> bool:
    """Whether a clause denies the words it shares with the claim."""
    if not found.isdisjoint(denied_words(clause, any_negation=len(found) < _LEAST_WORDS)):
        return True
    return denies_all(clause) and len(found & set(clause)) >= _LEAST_WORDS
