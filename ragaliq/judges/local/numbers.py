"""Normalisation of numbers, in words and digits, and of units.

`1,000`, `1 000` and `one thousand` agree, and so do `km` and `kilometres`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

END = "\0"
"""Stands as a token between two texts that are read in one go."""


class Number(NamedTuple):
    """A number found in a text.

    Attributes:
        stem: Its canonical form: `#1000`.
        certain: False if the word often is not a quantity ("one of them", "first of all").
        year: Whether it looks like a year.
        bound: The words before it that make it a bound ("up to") or an estimate ("about").
        of: The stems of up to two words after it, which it counts.
        ordinal: True for an ordinal alone, in words: "third".
    """

    stem: str
    certain: bool = True
    year: bool = False
    bound: str = ""
    of: tuple[str, ...] = ()
    ordinal: bool = False

    @property
    def value(self) -> float:
        """Numeric value; NaN for a version or a time."""
        try:
            return float(self.stem[1:])
        except ValueError:
            return math.nan


_SMALL_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_ORDINAL_WORDS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
_TENS_WORDS = "twenty thirty forty fifty sixty seventy eighty ninety"
_GERMAN_WORDS = "zwei drei vier fünf sechs sieben acht neun zehn"
_SMALL = {word: value for value, word in enumerate(_SMALL_WORDS.split())} | {
    word: value for value, word in enumerate(_GERMAN_WORDS.split(), start=2)
}
_ORDINALS = {word: value for value, word in enumerate(_ORDINAL_WORDS.split(), start=1)}
_TENS = {word: 10 * value for value, word in enumerate(_TENS_WORDS.split(), start=2)}
_SCALES = {
    "dozen": 12,
    "hundred": 100,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
}
_SHORT_SCALES = {"k": 10**3, "mn": 10**6, "mio": 10**6, "bn": 10**9}
_AFTER_AND = _SMALL.keys() | _TENS.keys()
NUMBER_WORDS = _SMALL.keys() | _TENS.keys() | _ORDINALS.keys()

_GROUPS = re.compile(r"[1-9]\d{0,2}([,. ])\d{3}(?:\1\d{3})*(?:(?!\1)[.,]\d+)?")
_DECIMAL = re.compile(r"\d+(?:[.,]\d+)?")
_DATE = re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}")
_LONGEST = 24  # digits; more is an identifier, kept as it is written


_canonical = "#{:.12g}".format  # the one spelling of a value: `#1000`, `#2.5`


def number_at(tokens: list[str], at: int) -> tuple[Sequence[Number], int]:
    """Read the number that begins at a token.

    Args:
        tokens: Lower-case words and digit groups.
        at: Position of a digit group or of one of `NUMBER_WORDS`.

    Returns:
        The numbers there (several for a dotted date), without their bounds, and the position after
        them.
    """
    token, following = tokens[at], tokens[at + 1] if at + 1 < len(tokens) else ""
    numbers: Sequence[Number]
    if not token[0].isdigit():
        number, after = _spelled_out(tokens, at)
        numbers = [number]
    elif scale := _SCALES.get(following) or _SHORT_SCALES.get(following):
        numbers, after = _read_digits(token, scale), at + 2
    else:
        numbers, after = _read_digits(token, 1), at + 1
        if following == "s" and numbers[0].year and token.endswith("0"):  # the 1970s
            numbers, after = [numbers[0]._replace(certain=False)], at + 2
    if at and tokens[at - 1] == "minus":
        numbers = [numbers[0]._replace(stem=f"#-{numbers[0].stem[1:]}"), *numbers[1:]]
    return numbers, after


@lru_cache(maxsize=8_192)
def _read_digits(token: str, scale: int) -> tuple[Number, ...]:
    """The numbers of a digit group: one, three for a dotted date."""
    if len(token) <= _LONGEST:
        if groups := _GROUPS.fullmatch(token):  # 1.200,50
            value = float(token.replace(groups[1], "").replace(",", "."))
            return (Number(_canonical(value * scale)),)
        if _DECIMAL.fullmatch(token):
            is_year = len(token) == 4 and token[0] in "12" and scale == 1 and token.isdecimal()
            return (Number(_canonical(float(token.replace(",", ".")) * scale), year=is_year),)
        if _DATE.fullmatch(token):
            parts = token.split(".")
            return tuple(Number(_canonical(int(part)), year=len(part) == 4) for part in parts)
    return (Number(f"#{token}"),)


def _spelled_out(tokens: list[str], at: int) -> tuple[Number, int]:
    """Read "two hundred and fifty", "twenty-fifth", "five million"."""
    total, current, last = 0.0, 0.0, ""
    position = at
    while position < len(tokens):
        token = tokens[position]
        if token in _SMALL or token in _ORDINALS:
            value = _SMALL.get(token) or _ORDINALS.get(token, 0)
            if last in ("small", "ordinal") or (last == "tens" and not 0 < value < 10):
                break
            current += value
            last = "small" if token in _SMALL else "ordinal"
        elif token in _TENS:
            if last in ("small", "ordinal", "tens"):
                break
            current += _TENS[token]
            last = "tens"
        elif token in _SCALES and last != "ordinal":
            if token in ("hundred", "dozen"):
                current = max(current, 1) * _SCALES[token]
            else:
                total += max(current, 1) * _SCALES[token]
                current = 0
            last = "scale"
        else:  # "two hundred and" goes on where a number follows
            following = tokens[position + 1] if position + 1 < len(tokens) else ""
            if not (token == "and" and last == "scale" and following in _AFTER_AND):
                break
        position += 1
    is_ordinal = position == at + 1 and last == "ordinal"
    certain = not (is_ordinal or (position == at + 1 and tokens[at] == "one"))
    return Number(_canonical(total + current), certain=certain, ordinal=is_ordinal), position


# Bounds and estimates: "up to 14 days" is the same amount as "at most 14 days".

_MOST = (
    "up to, at most, at the most, less than, fewer than, lower than, earlier than, under, below, "
    "within, no more than, not more than, no later than, not later than, maximum of, "
    "bis zu, höchstens, maximal, weniger als, nicht mehr als, unter, binnen, innerhalb von, "
    "jusqu à, au plus, au maximum, moins de, pas plus de, sous, menos de, no más de, hasta, "
    "al massimo, meno di, non più di, fino a, entro, no máximo, até, hoogstens, maximaal, "
    "minder dan, niet meer dan, не более, менее, до, أقل من, 최대, 最多, 至多, 不到, 最大"
)
_LEAST = (
    "at least, more than, greater than, higher than, later than, over, above, no less than, "
    "not less than, no fewer than, not fewer than, no earlier than, minimum of, "
    "mindestens, wenigstens, mehr als, nicht weniger als, über, au moins, plus de, "
    "pas moins de, más de, al menos, por lo menos, no menos de, almeno, più di, non meno di, "
    "pelo menos, mais de, minstens, meer dan, не менее, более, أكثر من, 최소, 至少, 超过, 最低"
)
_ABOUT = (
    "about, around, approximately, roughly, nearly, almost, close to, some, circa, ca, etwa, rund, "
    "ungefähr, fast, knapp, environ, presque, unos, unas, casi, cerca de, aproximadamente, "
    "quasi, ongeveer, bijna, около, حوالي, 약, 大约"
)
# Phrase -> which of the three it is one of.
_BOUNDS = {phrase: kind for kind in (_MOST, _LEAST, _ABOUT) for phrase in kind.split(", ")}
_MOST_WORDS = 3
_ENDS = frozenset(phrase.split()[-1] for phrase in _BOUNDS)
_NEAR = 0.1  # share by which an estimate may differ from the number


def bound_before(tokens: list[str], at: int) -> str:
    """Longest bound phrase that ends before a token; "" if there is none."""
    last = tokens[at - 1] if at else ""
    if last in _ENDS:
        for words in range(min(_MOST_WORDS, at), 0, -1):
            if (phrase := " ".join(tokens[at - words : at])) in _BOUNDS:
                return phrase
    end = "" if last.isascii() else last[-2:]  # of a script without blanks between the words
    return end if end in _BOUNDS else ""


class Fit(IntEnum):
    """Relation of a sentence's number to a claim's."""

    DIFFERS = 0
    ALLOWS = 1
    HOLDS = 2


def fit(claimed: Number, stated: Number) -> Fit:
    """Check whether a claimed number is true where another one is stated.

    "Up to 30" and "up to 14" differ. "Up to 14" allows 5 and 14, and 14 allows "up to 14". An
    estimate allows numbers within a tenth.
    """
    kinds = _BOUNDS.get(claimed.bound, ""), _BOUNDS.get(stated.bound, "")
    if claimed.stem == stated.stem:
        return Fit.DIFFERS if set(kinds) == {_MOST, _LEAST} else Fit.HOLDS
    if kinds[0] == kinds[1] != _ABOUT:  # also two plain numbers
        return Fit.DIFFERS
    factor = rescaled(claimed, stated)
    lowest, highest = (end * factor for end in _range(claimed))
    least, most = _range(stated._replace(bound="") if kinds[0] == _ABOUT else stated)
    if lowest <= least and most <= highest:
        return Fit.HOLDS
    return Fit.ALLOWS if least < highest and lowest < most else Fit.DIFFERS


# Seconds by the stem of the unit.
_SECONDS = {"minut": 60, "hour": 3_600, "day": 86_400, "week": 604_800, "month": 2_629_800}
_SECONDS |= {"year": 31_557_600, "decad": 315_576_000}


def rescaled(number: Number, other: Number) -> float:
    """Factor from a time's unit to the other's, 7 for weeks and days; 1 for unknown units."""
    sizes = [[_SECONDS[word] for word in each.of if word in _SECONDS] for each in (number, other)]
    return sizes[0][0] / sizes[1][0] if all(sizes) else 1.0


def comparable(number: Number, stated: Sequence[Number]) -> Sequence[Number]:
    """Numbers that count the same thing as another one; all if none is known to."""
    return [other for other in stated if not set(other.of).isdisjoint(number.of)] or stated


def _range(number: Number) -> tuple[float, float]:
    """The lowest and the highest value that a number with a bound allows."""
    value, kind = number.value, _BOUNDS.get(number.bound)
    if kind == _ABOUT:
        return value * (1 - _NEAR), value * (1 + _NEAR)
    return -math.inf if kind == _MOST else value, math.inf if kind == _LEAST else value


# Units: one spelling for each, and which of them measure the same.

UNITS_BY_KIND = {
    "length": (
        "kilometer kilometre kilometers kilometres km",
        "meter metre meters metres",
        "centimeter centimetre centimeters centimetres cm",
        "millimeter millimetre millimeters millimetres mm",
        "mile miles",
        "foot feet ft",
        "yard yards",
        "inch inches",
    ),
    "mass": (
        "kilogram kilograms kilogramme kg kilo kilos",
        "gram grams gramme g",
        "milligram milligrams mg",
        "tonne tonnes",
        "pound pounds lb lbs",
        "ounce ounces oz",
    ),
    "time": (
        "second seconds sekunde sekunden",
        "minute minutes min mins minuten",
        "hour hours h hr hrs stunde stunden heure heures hora horas",
        "day days tage tagen jour jours día días dia dias giorno giorni",
        "week weeks woche wochen semaine semaines semana semanas",
        "month months monat monate monaten mois mes meses mese mesi",
        "year years yr yrs jahr jahre jahren año años anno anni ano anos",
        "decade decades",
    ),
    "amount": (
        "percent percentage pct prozent",
        "point points prozentpunkt prozentpunkte",
        "dollar dollars usd",
        "euro euros eur",
        "yen jpy",
        "rupee rupees inr",
        "yuan cny rmb",
        "franc francs franken chf",
        "pound",
    ),
    "data": (
        "kilobyte kb",
        "megabyte megabytes mb",
        "gigabyte gigabytes gb",
        "terabyte tb",
    ),
    "temperature": ("celsius", "fahrenheit"),
}
SPELLINGS = {
    spelling: spellings.split()[0]
    for units in UNITS_BY_KIND.values()
    for spellings in units
    for spelling in spellings.split()
} | {"litre": "liter"}
"""Word as it is written -> the one spelling of its unit."""

UNITS: dict[str, set[str]] = {}
"""Unit -> what it measures; a pound has two answers."""
for _kind, _units in UNITS_BY_KIND.items():
    for _spellings in _units:
        UNITS.setdefault(_spellings.split()[0], set()).add(_kind)
