"""Means with intervals, trends and distributions of the collected scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress
from typing import Any

from ragaliq.reports.columns import Series
from ragaliq.statistics import Estimate, hajek_mean, mean_estimate
from ragaliq.statistics.sampling import WeightedSums

__all__ = ["METHOD_NAMES", "bucket_width", "estimate_of", "histogram", "trend"]

METHOD_NAMES = {
    "wilson": "Wilson",
    "student_t": "Student's t",
    "bca_bootstrap": "BCa bootstrap",
    "hajek_t": "Hájek, Student's t",
    "hajek_wilson": "Hájek, Wilson",
    "unseen_share": "unseen share",
}
"""How the intervals are made, in words for people; `ragaliq.statistics` explains each."""

_BINS = 20
_MOST_BUCKETS = 40
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0
_WIDTHS = (
    *(_MINUTE * n for n in (1, 5, 15)),
    *(_HOUR * n for n in (1, 3, 6, 12)),
    *(_DAY * n for n in (1, 2, 7, 14, 28, 91, 364)),
)
_LEAST_RANGE = 5 * _MINUTE


def estimate_of(series: Series, pipeline: int | None = None) -> Estimate | None:
    """The mean score of all traffic with its 95 % interval; None where nothing was measured.

    Scores of runs that stand for no traffic (weight 0) are left out. Where runs had unequal
    chances of being chosen, each counts for those it stands for.
    """
    chosen = [
        weight > 0 and (pipeline is None or owner == pipeline)
        for weight, owner in zip(series.weights, series.pipelines, strict=True)
    ]
    scores = list(compress(series.scores, chosen))
    weights = list(compress(series.weights, chosen))
    if not scores:
        return None
    if min(weights) == max(weights):
        # Resampling every pipeline too would take longer than reading the file.
        return mean_estimate(scores) if pipeline is None else _quick(scores, weights)
    return hajek_mean(scores, [1.0 / weight for weight in weights], target="process")


def _quick(scores: Sequence[float], weights: Sequence[float]) -> Estimate:
    sums = WeightedSums()
    for score, weight in zip(scores, weights, strict=True):
        sums.add(score, 1.0 / weight)
    return sums.estimate(target="process")


def bucket_width(first: float, last: float) -> float | None:
    """Seconds of a trend's buckets; None for a time too short to speak of a trend."""
    length = last - first
    if length < _LEAST_RANGE:
        return None
    fitting = (width for width in _WIDTHS if length / width <= _MOST_BUCKETS)
    return next(fitting, _WIDTHS[-1] * math.ceil(length / _WIDTHS[-1] / _MOST_BUCKETS))


def trend(series: Series, width: float, pipeline: int | None = None) -> list[list[Any]]:
    """`[start, mean, low, high, n]` for each bucket with scores, in the order of time."""
    buckets: dict[float, WeightedSums] = {}
    rows = zip(series.times, series.scores, series.weights, series.pipelines, strict=True)
    for time, score, weight, owner in rows:
        if weight > 0 and (pipeline is None or owner == pipeline):
            buckets.setdefault(time // width, WeightedSums()).add(score, 1.0 / weight)
    points = []
    for number, sums in sorted(buckets.items()):
        found = sums.estimate(target="process")
        figures = [round(value, 4) for value in (found.value, found.low, found.high)]
        points.append([round(number * width), *figures, found.n])
    return points


def histogram(series: Series, pipeline: int | None = None) -> list[int]:
    """Scores in 20 bins of 0.05; the last one holds 1.0 as well."""
    counts = [0] * _BINS
    for score, owner in zip(series.scores, series.pipelines, strict=True):
        if pipeline is None or owner == pipeline:
            # 0.15 * 20 is a little below 3 in floating point, and 0.15 belongs above.
            counts[min(_BINS - 1, int(score * _BINS + 1e-9))] += 1
    return counts
