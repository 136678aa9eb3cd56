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
    "MONTHS",
    "NUMBER_WORDS",
    "SPELLINGS",
    "UNITS",
    "Number",
    "number_at",
    "other_unit",
    "spans_of_time",
]


END = "\0"
"""Stands as a token between two texts that are read in one go."""


class Number(NamedTuple):
    """A number found in a text.

    Attributes:
        values: What it may mean, canonical (`#1000`); `1.000` may be one or a thousand.
        certain: False where the word often is no quantity ("one of them", "first of all").
        year: Whether it reads as a year.
    """

    values: tuple[str, ...]
    certain: bool = True
    year: bool = False


MONTHS = {
    name: f"#{position}"
    for position, names in enumerate(
        "january jan, february feb, march mar, april apr, may, june jun, july jul, august aug, "
        "september sept sep, october oct, november nov, december dec".split(", "),
        start=1,
    )
    for name in names.split()
}

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
_SHORT_SCALES = {"k": 10**3, "m": 10**6, "mn": 10**6, "mio": 10**6, "bn": 10**9, "b": 10**9}
_HALVES_OF_DAY = ("am", "pm")
_GO_WITH_DIGITS = _SCALES.keys() | _SHORT_SCALES.keys() | {*_HALVES_OF_DAY, "s"}
_AFTER_AND = _SMALL.keys() | _TENS.keys()
NUMBER_WORDS = _SMALL.keys() | _TENS.keys() | _ORDINALS.keys()

_COMMA_GROUPS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DOT_GROUPS = re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?")
_DECIMAL = re.compile(r"\d+[.,]\d+")
_DATE = re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}")
_AND_A_HALF = ["and", "a", "half"]
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
    following = tokens[at + 1 : at + 3]
    goes_on = following[0] if following and following[0] in _GO_WITH_DIGITS else ""
    in_century = "century" in following and following[0] != END
    read = _read_digits if len(token) <= _LONGEST else _read_digits.__wrapped__
    found, length = read(token, goes_on, in_century)
    return found, at + length


@lru_cache(maxsize=8_192)
def _read_digits(
    token: str,
    following: str,
    in_century: bool,  # noqa: FBT001 - a call with keywords is remembered half as fast
) -> tuple[tuple[Number, ...], int]:
    """The numbers of a digit group, and how many tokens they take."""
    readings = _readings(token)
    values = tuple(map(canonical, readings))
    if following in _HALVES_OF_DAY:  # 3:30 pm
        hour, _, minute = token.partition(":")
        if hour.isdecimal() and len(hour) <= 2 and 1 <= int(hour) <= 12:
            hours = int(hour) % 12 + 12 * (following == "pm")
            return (Number((f"#{hours:02}:{minute or '00'}", *values)),), 1
    if not readings:
        parts = token.split(".") if _DATE.fullmatch(token) else [f"#{token}"]
        return tuple(map(_whole, parts)), 1
    if scale := _SCALES.get(following) or _SHORT_SCALES.get(following):
        scaled = tuple(canonical(reading * scale) for reading in readings)
        # "330 m" may be metres.
        return (Number((*values, *scaled) if following in _SHORT_SCALES else scaled),), 2
    if not token.isdecimal():
        return (Number(values),), 1
    whole = _whole(token)
    if whole.year and token.endswith("0") and following == "s":
        return (Number((f"{whole.values[0]}s",)),), 2
    if in_century:
        whole = Number((*whole.values, f"{whole.values[0]}c"))
    return (whole,), 1


@lru_cache(maxsize=8_192)
def spans_of_time(year: str) -> tuple[str, str]:
    """The decade and the century of a canonical year, as "the 1970s" and "20th century" read."""
    value = int(year[1:])
    return f"#{value // 10 * 10}s", f"#{(value + 99) // 100}c"


def _whole(digits: str) -> Number:
    if not digits.isdecimal():
        return Number((digits,))
    year = len(digits) == 4 and digits[0] in "12"
    return Number((canonical(int(digits)),), year=year)


def _readings(token: str) -> list[float]:
    """Values a digit group may stand for; none for versions, times and long identifiers."""
    if len(token) > _LONGEST:
        return []
    if token.isdecimal():
        return [int(token)]
    if " " in token:  # 1 200 is one number, or two that happen to stand together
        whole, _, decimals = token.partition(",")
        return [float(f"{whole.replace(' ', '')}.{decimals or 0}"), *map(int, whole.split())]
    readings = []
    if _COMMA_GROUPS.fullmatch(token):
        readings.append(float(token.replace(",", "")))
    if _DOT_GROUPS.fullmatch(token):
        readings.append(float(token.replace(".", "").replace(",", ".")))
    if _DECIMAL.fullmatch(token):
        readings.append(float(token.replace(",", ".")))
    return readings


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
        elif last in ("small", "scale") and tokens[position : position + 3] == _AND_A_HALF:
            current += 0.5
            position += 2
        else:  # "two hundred and" goes on where a number follows
            following = tokens[position + 1] if position + 1 < len(tokens) else ""
            if not (token == "and" and last == "scale" and following in _AFTER_AND):
                break
        position += 1
    certain = not (position == at + 1 and (tokens[at] == "one" or last == "ordinal"))
    return [Number((canonical(total + current),), certain=certain)], position


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
    "data": ("kilobyte kb", "megabyte megabytes mb", "gigabyte gigabytes gb", "terabyte tb"),
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
