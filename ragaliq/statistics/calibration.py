"""Whether confidences are probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ragaliq.statistics.checks import (
    labels_of,
    numbers_of,
    require_choice,
    require_count,
    require_same_length,
)

__all__ = [
    "Binning",
    "ReliabilityBin",
    "brier_score",
    "expected_calibration_error",
    "reliability_table",
]

Binning = Literal["equal_mass", "equal_width"]
"""Bins with as many items each, or bins of the same length in [0, 1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityBin:
    """Items of similar confidence.

    Attributes:
        low: The least confidence in the bin, or its lower edge with `equal_width`.
        high: The greatest, or its upper edge.
        n: Number of items.
        confidence: Their mean confidence.
        share: Share of them with label 1, which a calibrated confidence meets.
    """

    low: float
    high: float
    n: int
    confidence: float
    share: float


def reliability_table(
    probabilities: Sequence[float],
    labels: Sequence[float],
    *,
    bins: int = 10,
    binning: Binning = "equal_mass",
) -> list[ReliabilityBin]:
    """Mean confidence beside the share of positives, bin by bin; empty bins are left out.

    Items of equal confidence are always in one bin, so equal-mass bins may differ in number.

    Raises:
        ConfigurationError: A setting is out of range.
        DatasetError: No items, lengths that differ, or values out of range.
    """
    require_count(bins, name="bins")
    require_choice(binning, name="binning", choices=("equal_mass", "equal_width"))
    pairs = _pairs(probabilities, labels)
    if binning == "equal_width":
        return _equal_width(pairs, bins)
    return [_bin(group, low=group[0][0], high=group[-1][0]) for group in _equal_mass(pairs, bins)]


def _pairs(probabilities: Sequence[float], labels: Sequence[float]) -> list[tuple[float, bool]]:
    numbers = numbers_of(probabilities, name="probabilities", bounds=(0.0, 1.0))
    truth = labels_of(labels)
    require_same_length(probabilities=numbers, labels=truth)
    return sorted(zip(numbers, truth, strict=True))


def _equal_width(pairs: Sequence[tuple[float, bool]], bins: int) -> list[ReliabilityBin]:
    groups: dict[int, list[tuple[float, bool]]] = {}
    for pair in pairs:
        groups.setdefault(min(int(pair[0] * bins), bins - 1), []).append(pair)
    return [_bin(group, low=i / bins, high=(i + 1) / bins) for i, group in groups.items()]


def _equal_mass(pairs: Sequence[tuple[float, bool]], bins: int) -> list[list[tuple[float, bool]]]:
    groups: list[list[tuple[float, bool]]] = []
    end = 0
    for number in range(1, bins + 1):
        start, end = end, max(end, round(number * len(pairs) / bins))
        while 0 < end < len(pairs) and pairs[end][0] == pairs[end - 1][0]:
            end += 1
        if end > start:
            groups.append(list(pairs[start:end]))
    return groups


def _bin(group: Sequence[tuple[float, bool]], *, low: float, high: float) -> ReliabilityBin:
    return ReliabilityBin(
        low=low,
        high=high,
        n=len(group),
        confidence=math.fsum(p for p, _ in group) / len(group),
        share=sum(label for _, label in group) / len(group),
    )


def expected_calibration_error(
    probabilities: Sequence[float],
    labels: Sequence[float],
    *,
    bins: int = 10,
    binning: Binning = "equal_mass",
) -> float:
    """Mean distance between confidence and share of positives, weighted by the bins' sizes.

    Naeini, Cooper & Hauskrecht 2015, AAAI, with bins of equal width; equal mass after Nguyen &
    O'Connor 2015, EMNLP. It grows with the number of bins and is above 0 by chance alone, so
    compare figures only at equal bins and similar numbers of items.

    Raises:
        ConfigurationError: A setting is out of range.
        DatasetError: No items, lengths that differ, or values out of range.
    """
    table = reliability_table(probabilities, labels, bins=bins, binning=binning)
    total = sum(row.n for row in table)
    return math.fsum(row.n * abs(row.confidence - row.share) for row in table) / total


def brier_score(probabilities: Sequence[float], labels: Sequence[float]) -> float:
    """Mean squared distance between confidence and label (Brier 1950, Monthly Weather Review 78).

    Raises:
        DatasetError: No items, lengths that differ, or values out of range.
    """
    pairs = _pairs(probabilities, labels)
    return math.fsum((p - label) ** 2 for p, label in pairs) / len(pairs)
