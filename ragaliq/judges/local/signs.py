"""Signs of a contradiction: differences between a claim and a matching sentence."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ragaliq.judges.local.claim import ClaimWords, clauses, denies
from ragaliq.judges.local.context import ContextIndex, Match
from ragaliq.judges.local.numbers import Fit, Number, comparable, fit, rescaled
from ragaliq.judges.local.words import UNIT_KINDS, Words, stem

# A sentence that matches except for a number, a unit, a word or a negation. A claim whose words are
# only absent is not contradicted.

_COVER = 0.7  # share of the rest of the claim the sentence must cover
_FAR_COVER = 0.9  # the same where the context has the number in another sentence
_NEGATION_COVER = 0.85
_LEAST_WORDS = 2  # content words of the rest; with fewer, agreement is chance


class Sign(NamedTuple):
    """Reason why a claim counts as contradicted.

    Attributes:
        kind: `number`, `bound`, `measure`, `ordinal`, `word` or `negation`.
        claimed: The claim's words, as stems; empty for a negation.
        stated: The sentence's words instead.
    """

    kind: str
    claimed: tuple[str, ...] = ()
    stated: tuple[str, ...] = ()


def find_sign(claim: ClaimWords, match: Match, context: ContextIndex) -> Sign | None:
    """First sign of a contradiction between a claim and its best matching sentence.

    Another number, also where the context has the claim's in another sentence ("nine working days"
    and "the shop opens at nine"); the same number with another bound or unit, five days against
    five weeks; another ordinal of the same thing; a word that excludes the claim's, Monday against
    Sunday; a denial on one side only.
    """
    if not match.near:
        return None
    best, sign = context.stems(match.sentence), None
    if match.far_numbers or any(number.bound for number in claim.numbers):
        theirs = context.words(match.sentence)
        sign = _other_number(claim, match, theirs) or _other_bound(claim, match, theirs.numbers)
    if not sign and not UNIT_KINDS.keys().isdisjoint(claim.stems):
        sign = _other_unit(claim, match, best)
    if not sign and claim.ordinals:
        sign = _other_ordinal(claim, match, context.words(match.sentence).numbers)
    if not (sign or claim.negated or denies(best)):
        sign = _other_word(claim, match, best) or _other_small_word(claim, match, best)
    if not sign and _differ_in_negation(claim, match, context):
        sign = Sign("negation")
    return sign


def _agrees(
    claim: ClaimWords,
    match: Match,
    share: float,
    *,
    without: Sequence[str] = (),
    words: int = _LEAST_WORDS,
) -> bool:
    """True if the sentence covers enough of the claim without some words, in share and number."""
    apart = set(without)
    rest = {word: weight for word, weight in claim.weights.items() if word not in apart}
    found = [word for word in rest if word in match.found]
    covered, total = sum(rest[word] for word in found), sum(rest.values())
    return len(found) >= words and total > 0.0 and covered / total >= share


# Numbers.

_ROUNDED = 0.05  # share of a number by which it may be rounded
_TO = frozenset("to and or bis und oder à et a y al e o tot en до".split())


def _other_number(claim: ClaimWords, match: Match, theirs: Words) -> Sign | None:
    absent = match.missing_numbers or match.far_numbers
    if not absent:
        return None
    others = [
        number
        for number in theirs.numbers
        if number.stem not in claim.stems
        and number.certain
        and number.year == absent[0].year
        and _may_compare(absent[0], number)
    ]
    stated = comparable(absent[0], others)
    without = tuple(number.stem for number in absent)
    share = _COVER if match.missing_numbers else _FAR_COVER
    if not stated or not _agrees(claim, match, share, without=without):
        return None
    # The same number of something else, "3 floors" where rooms are counted, is not the claim's.
    different = [number for number in theirs.numbers if number.stem not in claim.stems]
    pairs = itertools.product(match.far_numbers, different)
    is_rounded = any(_rounds(claimed, other) for claimed, other in pairs)
    is_allowed = any(fit(*pair) is Fit.ALLOWS for pair in itertools.product(absent, stated))
    if is_rounded or is_allowed or _is_in_range(absent[0], theirs):
        return None
    return Sign("number", without, tuple(number.stem for number in stated))


def _may_compare(one: Number, other: Number) -> bool:
    """True if two numbers measure the same, as far as their units are known."""
    kinds = [
        set[str]().union(*(UNIT_KINDS.get(word, ()) for word in number.of))
        for number in (one, other)
    ]
    return not all(kinds) or not kinds[0].isdisjoint(kinds[1])


def _rounds(claimed: Number, stated: Number) -> bool:
    """True if one number may be the other rounded, or in another unit.

    1.2 billion and 1.18 billion; two years and 24 months.
    """
    value = claimed.value * rescaled(claimed, stated)
    is_close = math.isclose(value, stated.value, rel_tol=_ROUNDED)
    return is_close and not claimed.year


def _is_in_range(number: Number, sentence: Words) -> bool:
    """True if a sentence has a range, "2 to 5" or "2-5", that contains a third number."""
    at = [place for place, word in enumerate(sentence.stems) if word[0] == "#"]
    return any(
        (high == low + 1 or (high == low + 2 and sentence.stems[low + 1] in _TO))
        and least.year == most.year  # "2 May 1990" is a date
        and least.value < number.value < most.value
        for (low, high), (least, most) in zip(
            itertools.pairwise(at), itertools.pairwise(sentence.numbers), strict=True
        )
    )


def _other_bound(claim: ClaimWords, match: Match, theirs: Sequence[Number]) -> Sign | None:
    for number in claim.numbers:
        same = [other for other in theirs if other.stem == number.stem]
        differs = same and all(fit(number, other) is Fit.DIFFERS for other in same)
        if differs and _agrees(claim, match, _COVER):
            claimed, stated = ((each.bound, each.stem, *each.of) for each in (number, same[0]))
            return Sign("bound", claimed, stated)
    return None


_REACH = 2  # words between a number and its unit: "five business days"


class Measure(NamedTuple):
    """A number with its unit, as stems, and the time it is for: `month` in "12 euros a month"."""

    number: str
    unit: str
    rate: str = ""


def _other_unit(claim: ClaimWords, match: Match, sentence: Sequence[str]) -> Sign | None:
    """Find a number of the claim that the sentence only has with another unit or time."""
    for measure in dict.fromkeys(_measures(claim.stems)):
        same = [other for other in _measures(sentence) if other.number == measure.number]
        stated = [other for other in same if _differ(measure, other)]
        if not stated or len(stated) < len(same):
            continue
        is_rate = measure.unit == stated[0].unit
        own = (measure.rate,) if is_rate else (measure.unit, measure.number)
        if own[0] not in sentence and _agrees(claim, match, _COVER, without=own):
            claimed, theirs = (each if is_rate else each[:2] for each in (measure, stated[0]))
            return Sign("measure", claimed, theirs)
    return None


def _differ(one: Measure, other: Measure) -> bool:
    if one.unit != other.unit:
        return bool(UNIT_KINDS[one.unit] & UNIT_KINDS[other.unit])
    return bool(one.rate and other.rate) and one.rate != other.rate


def _measures(stems: Sequence[str]) -> Iterator[Measure]:
    """The numbers of a text that have a unit."""
    for at, word in enumerate(stems):
        if word[0] != "#":
            continue
        after = list(itertools.takewhile(lambda each: each[0] != "#", stems[at + 1 : at + 6]))
        places = [place for place, each in enumerate(after) if each in UNIT_KINDS]
        if not places or places[0] > _REACH:
            continue
        unit = after[places[0]]
        rates = [after[place] for place in places[1:] if "time" in UNIT_KINDS[after[place]]]
        is_rate = rates and "time" not in UNIT_KINDS[unit]
        yield Measure(word, unit, rates[0] if is_rate else "")


def _other_ordinal(claim: ClaimWords, match: Match, theirs: Sequence[Number]) -> Sign | None:
    """Find an ordinal of the claim for which the sentence has another: "on the second floor"."""
    there = {number.stem for number in theirs}
    for number in claim.ordinals:
        same = (other for other in theirs if other.ordinal and other.of[:1] == number.of[:1])
        stated = next(same, None) if number.of and number.stem not in there else None
        if stated and _agrees(claim, match, _COVER, without=(number.stem,)):
            return Sign("ordinal", (number.stem,), (stated.stem,))
    return None


# Words.

_COLOURS = (
    "black schwarz noir negro | white weiß blanc blanche blanco | red rot rouge rojo | "
    "blue blau bleu bleue azul | green grün vert verte verde | yellow gelb jaune amarillo | "
    "orange | brown braun | grey gray grau gris | purple violet lila violett | pink rosa"
)
_MATERIALS = (
    "wood wooden timber holz bois madera | glass glas verre vidrio | leather leder cuir cuero | "
    "steel stahl acier acero | aluminium aluminum | plastic kunststoff plastik plastique "
    "plástico | cotton baumwolle coton algodón | wool wolle laine lana | silk seide soie seda | "
    "linen leinen | polyester | concrete beton béton hormigón | rubber gummi caoutchouc | "
    "copper kupfer cuivre cobre | ceramic keramik céramique cerámica"
)

# Words that exclude each other; "|" separates the sides. A word stands on one side of one group.
EXCLUSIVE = (
    (
        "monday montag lundi lunes | tuesday dienstag mardi martes | "
        "wednesday mittwoch mercredi miércoles | thursday donnerstag jeudi jueves | "
        "friday freitag vendredi viernes | saturday samstag sonnabend samedi sábado | "
        "sunday sonntag dimanche domingo"
    ),
    (
        "january januar janvier enero | february februar février febrero | march märz marzo | "
        "april avril abril | #may mai mayo | june juni juin junio | july juli juillet julio | "
        "august août agosto | september septembre septiembre | october oktober octobre octubre | "
        "november novembre noviembre | december dezember décembre diciembre"
    ),
    "spring frühling frühjahr | summer sommer | autumn herbst | winter",
    "north northern norden | south southern süden | east eastern osten | west western westen",
    "morning | afternoon | evening",
    _COLOURS,
    "gold golden | silver silber plata | bronze",
    (
        "rise increase grow climb steigen stieg wachsen wuchs | "
        "fall decrease decline drop sink shrink sinken sank"
    ),
    "higher upper | lower",
    "larger bigger greater | smaller",
    "longer | shorter",
    "heavier | lighter",
    "faster | slower",
    "highest | lowest",
    "largest biggest | smallest",
    "minimum | maximum",
    "safe sicher | dangerous unsafe gefährlich",
    "mandatory compulsory obligatory vorgeschrieben verpflichtend | optional voluntary freiwillig",
    "open geöffnet | closed geschlossen",
    "inside indoor | outside outdoor",
    "internal | external",
    "public | private",
    "legal | illegal",
    "possible | impossible",
    "import | export",
    "profit | loss",
    "male | female",
    "husband | wife",
    "father | mother",
    "brother | sister",
    "left | right",
)
# Of these, one word is a sign only where all others are the same: not in "your money back".
OPPOSITES = (
    _MATERIALS,
    "front vorne | back rear hinten",
    "top oben | bottom unten",
    "clockwise | anticlockwise counterclockwise",
    "enabled | disabled",
    "full voll | empty leer",
    "hot heiß | cold kalt",
    "automatic automatisch | manual manuell",
    "weekday werktag | weekend wochenende",
    "online | offline",
    "single | double",
    "positive | negative",
    "included | excluded",
)
_SIDES = {
    word if word[0] == "#" else stem(word): (group, side)
    for group, sides in enumerate((*EXCLUSIVE, *OPPOSITES))
    for side, words in enumerate(sides.split("|"))
    for word in words.split()
}

_PROPERTIES = {
    word: frozenset(map(stem, words.split()))
    for sides in (_COLOURS, _MATERIALS)
    for words in sides.split("|")
    for word in map(stem, words.split())
}
"""Colour or material -> the words for it."""


def lacks_property(claim: ClaimWords, match: Match, context: ContextIndex) -> bool:
    """True if a colour, a material or the whole predicate of a claim is not in the context."""
    if claim.predicate and match.hits.keys().isdisjoint(claim.predicate):
        return True
    return any(
        word not in match.hits and not any(map(context.places, _PROPERTIES[word]))
        for word in _PROPERTIES.keys() & claim.weights
    )


def _other_word(claim: ClaimWords, match: Match, sentence: Sequence[str]) -> Sign | None:
    """Find a word of a group for which the sentence has exactly one other side instead."""
    ours = _grouped(claim.stems)
    theirs = _grouped(sentence) if ours else []
    for word in ours:
        stated = [other for other in theirs if _SIDES[other][0] == _SIDES[word][0]]
        sides = {_SIDES[other] for other in stated}
        # With two sides, "from Monday to Friday", it is unclear which one the claim is about.
        if len(sides) != 1 or _SIDES[word] in sides or stated[0] in ours:
            continue
        # "The lamp is blue" and "The lamp is red": one word is enough where all else is equal.
        is_equal = set(claim.stems) ^ set(sentence) == {word, stated[0]}
        least = 1 if is_equal else _LEAST_WORDS
        if not is_equal and _SIDES[word][0] >= len(EXCLUSIVE):
            continue
        if _agrees(claim, match, _COVER, without=(word,), words=least):
            return Sign("word", (word.lstrip("#"),), (stated[0].lstrip("#"),))
    return None


def _grouped(stems: Sequence[str]) -> list[str]:
    """Distinct words that are in a group; "may" only as a month, next to a number."""
    if "may" in stems:
        stems = [
            "#may" if word == "may" and "#" in "".join(stems[max(at - 1, 0) : at + 2]) else word
            for at, word in enumerate(stems)
        ]
    return list(dict.fromkeys(filter(_SIDES.__contains__, stems)))


# Small words that decide, when and of how many: those of a claim, and those that they are not.
_BEFORE = "before until till prior bis vor avant antes hasta"
_AFTER = "after since from ab seit nach après depuis después desde"
_ALL = "all every each alle jede jeder jedes"
SMALL_WORDS = (
    (_BEFORE, _AFTER),
    (_AFTER, _BEFORE),
    (_ALL, "some most many few several einige manche viele"),
    ("above", "below"),
    ("below", "above"),
    ("if when wenn falls", "unless"),
    ("unless", "if when"),
)
# Word of a claim -> those that it is not, where the same word follows.
_CONFLICTS = {
    stem(word): frozenset(map(stem, others.split()))
    for words, others in SMALL_WORDS
    for word in words.split()
}
_ARTICLES = frozenset("of the a an der die das dem den le la les el los las zum".split())


def _other_small_word(claim: ClaimWords, match: Match, sentence: Sequence[str]) -> Sign | None:
    """A small word that decides: "after noon" against "before noon", "all rooms" against "most"."""
    ours = _CONFLICTS.keys() & claim.stems
    ours = {word for word in ours if not _CONFLICTS[word].isdisjoint(sentence)}
    for word, follows in dict.fromkeys(_followed(claim.stems)) if ours else ():
        if word not in ours:
            continue
        theirs = [other for other, same in _followed(sentence) if same == follows]
        stated = [other for other in theirs if other in _CONFLICTS[word]]
        if stated and word not in theirs and _agrees(claim, match, _COVER, without=(word,)):
            return Sign("word", (word, follows), (stated[0], follows))
    return None


def _followed(stems: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each word with the next one, articles skipped."""
    later = ""
    for word in reversed(stems):
        if later:
            yield word, later
        if word not in _ARTICLES:
            later = word


# Denials.


def _differ_in_negation(claim: ClaimWords, match: Match, context: ContextIndex) -> bool:
    """True if only one side is negated and no equally good sentence agrees with the claim."""
    if any(denies(context.stems(at)) == claim.negated for at in match.near):
        return False
    amounts = [word for each in match.missing_numbers for word in (each.stem, *each.of)]
    if not _agrees(claim, match, _NEGATION_COVER, without=amounts, words=1):
        return False
    for at in match.near:
        if not claim.negated:
            parts = list(clauses(context.readings[at]))
            # Ignore words that the sentence also has in a clause without negation: "(winter does
            # not occur in the tropics)" after a clause about winter.
            shared = match.found.difference(*(part for part in parts if not denies(part)))
            # In several clauses a negation covers only what follows it: "a hotel has no sauna but a
            # pool".
            denied = [
                part
                if len(parts) == 1
                else itertools.dropwhile(lambda word: not denies([word]), part)
                for part in parts
                if denies(part)
            ]
            if all(map(shared.isdisjoint, denied)):
                return False
    return True
