"""Numbers, in words and digits, and units, each brought to one form.

`1,000`, `1 000` and `one thousand` agree, and so do `km` and `kilometres`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

__all__ = [
    "END",
    "NUMBER_WORDS",
    "SPELLINGS",
    "UNITS",
    "Number",
    "number_at",
    "other_unit",
]


END = "\0"
"""Stands as a token between two texts that are read in one go."""


class Number(NamedTuple):
    """A number found in a text.

    Attributes:
        stem: What it means, canonical: `#1000`.
        certain: False where the word often is not a quantity ("one of them", "first of all").
        year: Whether it reads as a year.
    """

    stem: str
    certain: bool = True
    year: bool = False


_SMALL_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_ORDINAL_WORDS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
_TENS_WORDS = "twenty thirty forty fifty sixty seventy eighty ninety"
_SMALL = {word: value for value, word in enumerate(_SMALL_WORDS.split())}
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


def canonical(value: float) -> str:
    """The one spelling of a value: `#1000`, `#2.5`."""
    return f"#{value:.12g}"


def number_at(tokens: list[str], at: int) -> tuple[Sequence[Number], int]:
    """Read the number that begins at a token.

    Args:
        tokens: Lower-case words and digit groups.
        at: Where a digit group or one of `NUMBER_WORDS` stands.

    Returns:
        The numbers there (several for a dotted date) and the position after them.
    """
    token = tokens[at]
    if not token[0].isdigit():
        return _spelled_out(tokens, at)
    following = tokens[at + 1] if at + 1 < len(tokens) else ""
    if scale := _SCALES.get(following) or _SHORT_SCALES.get(following):
        return _read_digits(token, scale), at + 2
    numbers = _read_digits(token, 1)
    if following == "s" and numbers[0].year and token.endswith("0"):  # the 1970s
        return [numbers[0]._replace(certain=False)], at + 2
    return numbers, at + 1


@lru_cache(maxsize=8_192)
def _read_digits(token: str, scale: int) -> tuple[Number, ...]:
    """The numbers of a digit group: one, three for a dotted date."""
    if len(token) > _LONGEST:
        return (Number(f"#{token}"),)
    if groups := _GROUPS.fullmatch(token):  # 1.200,50
        value = float(token.replace(groups[1], "").replace(",", "."))
        return (Number(canonical(value * scale)),)
    if _DECIMAL.fullmatch(token):
        is_year = len(token) == 4 and token[0] in "12" and scale == 1 and token.isdecimal()
        return (Number(canonical(float(token.replace(",", ".")) * scale), year=is_year),)
    if _DATE.fullmatch(token):
        parts = token.split(".")
        return tuple(Number(canonical(int(part)), year=len(part) == 4) for part in parts)
    return (Number(f"#{token}"),)


def _spelled_out(tokens: list[str], at: int) -> tuple[list[Number], int]:
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
    certain = not (position == at + 1 and (tokens[at] == "one" or last == "ordinal"))
    return [Number(canonical(total + current), certain=certain)], position


# Units: one spelling for each, and which of them measure the same.

_UNITS = {
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
        "gram grams gramme",
        "milligram milligrams mg",
        "tonne tonnes",
        "pound pounds lb lbs",
        "ounce ounces oz",
    ),
    "time": (
        "second seconds sekunde sekunden",
        "minute minutes mins minuten",
        "hour hours hr hrs stunde stunden heure heures hora horas",
        "day days tage tagen jour jours día días dia dias giorno giorni",
        "week weeks woche wochen semaine semaines semana semanas",
        "month months monat monate monaten mois mes meses mese mesi",
        "year years yr yrs jahr jahre jahren año años anno anni ano anos",
        "decade decades",
    ),
    "money": (
        "dollar dollars usd",
        "euro euros eur",
        "yen jpy",
        "rupee rupees inr",
        "yuan cny rmb",
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
    for units in _UNITS.values()
    for spellings in units
    for spelling in spellings.split()
} | {"percentage": "percent", "pct": "percent", "prozent": "percent", "litre": "liter"}
"""Word as it is written -> the one spelling of its unit."""

UNITS = {spellings.split()[0]: kind for kind, units in _UNITS.items() for spellings in units}
"""Unit -> what it measures."""

_REACH = 2  # words between a number and its unit: "five business days"


class Measure(NamedTuple):
    """A number with its unit, as stems."""

    number: str
    unit: str


def other_unit(
    claim: Sequence[str], sentence: Sequence[str], units: dict[str, str]
) -> tuple[Measure, Measure] | None:
    """A number of the claim that the sentence has with another unit only, and what it has.

    Args:
        claim: Its words in order, as stems.
        sentence: The same.
        units: Stem of a unit -> its spelling in `SPELLINGS`.
    """
    stated: dict[tuple[str, str], list[Measure]] = {}
    for measure in _measures(sentence, units):
        stated.setdefault((measure.number, UNITS[units[measure.unit]]), []).append(measure)
    for measure in _measures(claim, units):
        others = stated.get((measure.number, UNITS[units[measure.unit]]), [])
        if others and measure not in others and measure.unit not in sentence:
            return measure, others[0]
    return None


def _measures(stems: Sequence[str], units: dict[str, str]) -> Iterator[Measure]:
    """The numbers of a text that have a unit."""
    for at, word in enumerate(stems):
        if word[0] != "#":
            continue
        for follows in stems[at + 1 : at + 2 + _REACH]:
            if follows[0] == "#":
                break
            if follows in units:
                yield Measure(word, follows)
                break
