"""The bootstrap: intervals for figures without a formula.

Efron & Tibshirani 1993, "An Introduction to the Bootstrap": the percentile interval is chapter 13,
BCa (bias-corrected and accelerated) chapter 14. Random numbers come from a seeded generator of
their own and sums are exact, so the same data and seed give the same interval everywhere.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Sequence
from random import Random
from typing import TypeVar

from ragaliq.errors import DatasetError
from ragaliq.statistics.checks import (
    numbers_of,
    require_count,
    require_same_length,
    require_share,
)
from ragaliq.statistics.distributions import normal_cdf, normal_quantile

__all__ = ["bca_mean_interval", "percentile_interval", "quantile"]

Row = TypeVar("Row")


def percentile_interval(
    rows: Sequence[Row],
    statistic: Callable[[Sequence[Row]], float | None],
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> tuple[float, float]:
    """The percentile interval of any figure of the rows.

    Args:
        rows: What was observed.
        statistic: The figure of a resample; None where a resample does not define it, such as
            one with a single class: it is drawn again.
        clusters: What belongs together, one a row, such as the answer a claim is from; whole
            clusters are drawn, since claims of one answer are not independent.
        confidence: Share of such intervals that hold the true figure.
        resamples: Number of resamples.
        seed: Of the random numbers.

    Raises:
        ConfigurationError: A setting is out of range.
        DatasetError: No rows, clusters of another length, or resamples that hardly ever define
            the figure.
    """
    require_share(confidence)
    require_count(resamples, name="resamples", least=100)
    if not rows:
        raise DatasetError("rows: there are none to resample")
    units = _units(rows, clusters)
    random = Random(seed)  # noqa: S311 - resampling, not secrets
    figures: list[float] = []
    for _ in range(10 * resamples):
        drawn = random.choices(units, k=len(units))
        figure = statistic([row for unit in drawn for row in unit])
        if figure is not None:
            figures.append(figure)
        if len(figures) == resamples:
            break
    else:
        raise DatasetError(
            "the figure is not defined on nine of ten resamples: there are too few rows of a kind"
        )
    figures.sort()
    tail = (1.0 - confidence) / 2.0
    return quantile(figures, tail), quantile(figures, 1.0 - tail)


def _units(rows: Sequence[Row], clusters: Sequence[Hashable] | None) -> list[list[Row]]:
    if clusters is None:
        return [[row] for row in rows]
    require_same_length(rows=rows, clusters=clusters)
    units: dict[Hashable, list[Row]] = {}
    for row, cluster in zip(rows, clusters, strict=True):
        units.setdefault(cluster, []).append(row)
    return list(units.values())


def bca_mean_interval(
    values: Sequence[float], *, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """The BCa interval of a mean.

    The acceleration is that of a mean, a sixth of the values' skewness over the square root of
    their number (Efron 1987, JASA 82(397), section 4); no jackknife is needed.

    Raises:
        ConfigurationError: A setting is out of range.
        DatasetError: Fewer than two different values, or one is no number.
    """
    require_share(confidence)
    require_count(resamples, name="resamples", least=100)
    numbers = numbers_of(values, name="values")
    n = len(numbers)
    mean = math.fsum(numbers) / n
    squares = math.fsum((v - mean) ** 2 for v in numbers)
    if squares == 0.0:
        raise DatasetError("values: all are equal, so there is no spread to resample")
    acceleration = math.fsum((v - mean) ** 3 for v in numbers) / (6.0 * squares**1.5)
    random = Random(seed)  # noqa: S311 - resampling, not secrets
    # fsum is exact, and so independent of the order and of the Python version; sum() is neither.
    means = sorted(math.fsum(random.choices(numbers, k=n)) / n for _ in range(resamples))
    below = (bisect_left(means, mean) + bisect_right(means, mean)) / 2.0
    bias = normal_quantile(min(max(below, 0.5), resamples - 0.5) / resamples)
    tail = (1.0 - confidence) / 2.0
    low, high = (_adjusted(share, bias, acceleration) for share in (tail, 1.0 - tail))
    return quantile(means, low), quantile(means, high)


def _adjusted(share: float, bias: float, acceleration: float) -> float:
    shifted = bias + normal_quantile(share)
    return normal_cdf(bias + shifted / (1.0 - acceleration * shifted))


def quantile(ordered: Sequence[float], share: float) -> float:
    """The quantile of sorted values, interpolated (definition 7 of Hyndman & Fan 1996)."""
    place = share * (len(ordered) - 1)
    below = min(int(place), len(ordered) - 1)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
