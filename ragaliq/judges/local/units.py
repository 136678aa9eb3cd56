"""Units: one spelling for each, and which of them measure the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["SPELLINGS", "UNITS", "Measure", "measures", "other_unit"]

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


def measures(stems: Sequence[str], units: dict[str, str]) -> Iterator[tuple[Measure, str]]:
    """The numbers of a text that have a unit, and what is measured.

    Args:
        stems: Its words in order.
        units: Stem of a unit -> its spelling in `SPELLINGS`.
    """
    for at, word in enumerate(stems):
        if word[0] != "#":
            continue
        for unit in stems[at + 1 : at + 2 + _REACH]:
            if unit[0] == "#":
                break
            if unit in units:
                yield Measure(word, unit), UNITS[units[unit]]
                break


def other_unit(
    claim: Sequence[str], sentence: Sequence[str], units: dict[str, str]
) -> tuple[Measure, Measure] | None:
    """A number of the claim that the sentence has with another unit only, and what it has."""
    stated: dict[tuple[str, str], list[Measure]] = {}
    for measure, kind in measures(sentence, units):
        stated.setdefault((measure.number, kind), []).append(measure)
    for measure, kind in measures(claim, units):
        others = stated.get((measure.number, kind), [])
        if others and measure not in others and measure.unit not in sentence:
            return measure, others[0]
    return None
