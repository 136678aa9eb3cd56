"""What share of labelled claims is supported from which probability on, and what follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ragaliq.statistics import wilson

__all__ = ["OperatingPoint", "certainty_below", "flagged_precision", "supported_precision"]

_SURE = 0.9  # two-sided, so that the precision is reached with a certainty of 95 % on one side

Bounds = list[tuple[float, float]]
"""Thresholds with the precision that they reach at least, those that decide most claims first."""


class OperatingPoint(NamedTuple):
    """Labelled claims from a probability on.

    Attributes:
        at: The calibrated probability of support.
        claims: Labelled claims with at least this probability.
        supported: Those of them that people call supported.
    """

    at: float
    claims: int
    supported: int


def supported_precision(points: Sequence[OperatingPoint]) -> Bounds:
    """How often claims are supported from each probability on."""
    return [(point.at, _least(point.supported, point.claims)) for point in points if point.claims]


def flagged_precision(points: Sequence[OperatingPoint]) -> Bounds:
    """How often claims are not supported below each probability."""
    everything = points[0]
    bounds = []
    for point in reversed(points):
        claims = everything.claims - point.claims
        if claims:
            unsupported = claims - (everything.supported - point.supported)
            bounds.append((point.at, _least(unsupported, claims)))
    return bounds


def certainty_below(points: Sequence[OperatingPoint], share: float) -> float:
    """The certainty that this share of the labelled claims is below; 1.0 for all of them."""
    after = [point.claims for point in points[1:]] + [0]
    counts = [point.claims - rest for point, rest in zip(points, after, strict=True)]
    certain = sorted(
        (max(point.at, 1.0 - point.at), count) for point, count in zip(points, counts, strict=True)
    )
    below = 0
    for certainty, count in certain:
        if below >= share * points[0].claims:
            return certainty
        below += count
    return 1.0


def _least(right: int, claims: int) -> float:
    return wilson(right / claims, n=claims, confidence=_SURE)[0]
