"""Means, shares and differences with their intervals, and the distributions these rest on."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from statistics import NormalDist
from typing import NamedTuple, TypeVar

from ragaliq.errors import DatasetError
from ragaliq.statistics.checks import (
    Bounds,
    numbers_of,
    require_count,
    require_same_length,
    require_share,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure and how far it can be trusted.

    Attributes:
        value: The estimate.
        low: Lower end of the interval.
        high: Upper end of the interval.
        method: How the interval was made, such as `wilson` or `bca_bootstrap`.
        n: Number of values it rests on.
        effective_n: How many equally weighted values would tell as much; `n` without weights.
        confidence: How often such intervals hold the true figure, 0.95 by default.
    """

    value: float
    low: float
    high: float
    method: str
    n: int
    effective_n: float
    confidence: float = 0.95

    @property
    def interval(self) -> tuple[float, float]:
        """The lower and the upper end."""
        return self.low, self.high

    @property
    def width(self) -> float:
        """The length of the interval."""
        return self.high - self.low


# The three distributions, without scipy.

_NORMAL = NormalDist()
_TINY = 1e-300
_PRECISION = 1e-15
_MOST_STEPS = 20_000


@lru_cache(maxsize=64)
def normal_quantile(probability: float) -> float:
    """The standard normal quantile of a probability in (0, 1)."""
    return _NORMAL.inv_cdf(probability)


def regularized_beta(x: float, *, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b).

    By its continued fraction (NIST Digital Library of Mathematical Functions, 8.17.22), evaluated
    with Lentz's method (Lentz 1976, Applied Optics 15(3)).
    """
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    if x > (a + 1.0) / (a + b + 2.0):
        # The fraction converges fast on this side only: I_x(a, b) = 1 - I_{1-x}(b, a).
        return 1.0 - regularized_beta(1.0 - x, a=b, b=a)
    log_front = (
        a * math.log(x)
        + b * math.log1p(-x)
        - math.log(a)
        - (math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b))
    )
    value, upper, lower = 1.0, 1.0, 0.0
    for step in range(1, _MOST_STEPS):
        m = step // 2
        if step % 2:
            coefficient = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            coefficient = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        # Nothing is divided by zero: what comes too near to it is moved away.
        lower, upper = 1.0 + coefficient * lower, 1.0 + coefficient / upper
        lower = 1.0 / (lower if abs(lower) > _TINY else _TINY)
        upper = upper if abs(upper) > _TINY else _TINY
        value *= upper * lower
        if abs(upper * lower - 1.0) < _PRECISION:
            break
    return math.exp(log_front) / value


def binomial_cdf(successes: int, *, trials: int, probability: float) -> float:
    """The chance of at most so many successes (DLMF 8.17.5 with 8.17.4)."""
    if successes < 0:
        return 0.0
    if successes >= trials:
        return 1.0
    return regularized_beta(1.0 - probability, a=trials - successes, b=successes + 1)


@lru_cache(maxsize=1024)
def student_t_quantile(probability: float, *, df: float) -> float:
    """The quantile of Student's t distribution, by bisection of its distribution function.

    `df` need not be whole (Abramowitz & Stegun 26.7.1).
    """
    if probability < 0.5:
        return -student_t_quantile(1.0 - probability, df=df)

    def cdf(value: float) -> float:
        return 1.0 - 0.5 * regularized_beta(df / (df + value * value), a=df / 2.0, b=0.5)

    low, high = 0.0, 1.0
    while cdf(high) < probability and high < 1e12:
        low, high = high, high * 2.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if cdf(middle) < probability else (low, middle)
    return 0.5 * (low + high)


# From a mean and what is known of its spread to an interval.

_ROUNDING = 1e-9


def wilson(share: float, *, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a share observed in `n` cases (Wilson 1927, JASA 22(158)).

    Args:
        share: The share observed, 0 to 1.
        n: Number of cases; need not be whole, for an effective number.
        confidence: Share of such intervals that hold the true share.
    """
    require_share(confidence)
    if not 0.0 <= share <= 1.0:
        raise DatasetError(f"share is {share}; it must be within [0, 1]")
    if not n > 0.0:
        raise DatasetError(f"n is {n}; a share needs at least one case")
    z = normal_quantile(0.5 + confidence / 2.0)
    centre = (share + z * z / (2.0 * n)) / (1.0 + z * z / n)
    reach = z * math.sqrt(share * (1.0 - share) / n + (z / (2.0 * n)) ** 2) / (1.0 + z * z / n)
    # At 0 and 1 an end is the share itself; rounding must not move it past.
    return min(max(0.0, centre - reach), share), max(min(1.0, centre + reach), share)


class MeanVariance(NamedTuple):
    """A mean and what is known of its spread, from which come intervals within the bounds.

    Attributes:
        mean: The estimate.
        variance: Of the estimate.
        df: Degrees of freedom of that variance.
        bounds: The lowest and the highest value possible.
        confidence: Share of the intervals that hold the true mean.
    """

    mean: float
    variance: float
    df: float
    bounds: Bounds
    confidence: float = 0.95

    @property
    def share(self) -> float:
        """Where the mean lies between the bounds, 0 to 1."""
        low, high = self.bounds
        return (self.mean - low) / (high - low)

    @property
    def reach(self) -> float:
        """Student's quantile of the interval."""
        return student_t_quantile(0.5 + self.confidence / 2.0, df=self.df)

    def student_t(self) -> tuple[float, float]:
        """The interval by Student's t distribution."""
        reach = self.reach * math.sqrt(self.variance)
        return max(self.bounds[0], self.mean - reach), min(self.bounds[1], self.mean + reach)

    def wilson(self, *, least_cases: float = 0.0) -> tuple[float, float]:
        """Wilson's interval of a share whose estimate has this variance, whatever made it.

        The number of equally likely cases in which a share would have this variance takes the place
        of the number of cases, with an allowance for few degrees of freedom (Korn & Graubard 1998,
        Survey Methodology 24(2)). `least_cases` is taken where that number is smaller.
        """
        (low, high), share = self.bounds, self.share
        if not 0.0 < share < 1.0:
            return self.student_t()
        cases = max(least_cases, share * (1.0 - share) * (high - low) ** 2 / self.variance)
        cases *= (normal_quantile(0.5 + self.confidence / 2.0) / self.reach) ** 2
        lower, upper = wilson(share, n=cases, confidence=self.confidence)
        return low + lower * (high - low), low + upper * (high - low)

    def logit_t(self) -> tuple[float, float]:
        """The interval by Student's t distribution on the scale of log odds, carried back.

        Near a bound, estimates of a mean are skewed towards the middle, and so is this interval
        (Newcombe 2001, American Statistician 55(3), for shares). At a bound it is Student's own.
        """
        (low, high), share = self.bounds, self.share
        if not 0.0 < share < 1.0:
            return self.student_t()
        error = math.sqrt(self.variance) / (high - low) / (share * (1.0 - share))
        odds = math.log(share / (1.0 - share))
        lower, upper = (
            0.5 + 0.5 * math.tanh(0.5 * (odds + way * self.reach * error)) for way in (-1.0, 1.0)
        )
        return low + lower * (high - low), low + upper * (high - low)


def has_no_spread(least: float, most: float, bounds: Bounds) -> bool:
    """Whether all values are equal as far as floating point can tell."""
    return most - least <= _ROUNDING * (bounds[1] - bounds[0])


def no_spread_interval(
    value: float, *, n: float, bounds: Bounds, confidence: float = 0.95
) -> tuple[float, float]:
    """The interval of a mean when all `n` values are equal.

    Neither a bootstrap nor a variance sees anything in such data, and both would give an interval
    without width. Yet up to a share `u` of the values may be something else: `u` is the upper end
    of Wilson's interval for 0 in `n`, and those values may lie anywhere within the bounds. At
    either bound this is Wilson's interval itself.
    """
    z = normal_quantile(0.5 + confidence / 2.0)
    unseen = z * z / (n + z * z)
    low, high = bounds
    return (1.0 - unseen) * value + unseen * low, (1.0 - unseen) * value + unseen * high


# The bootstrap: 95 % intervals for figures without a formula.
#
# Efron & Tibshirani 1993, "An Introduction to the Bootstrap": the percentile interval is chapter
# 13, BCa (bias-corrected and accelerated) chapter 14. Random numbers come from a seeded generator
# of their own and sums are exact: the same data and seed give the same interval everywhere.

Row = TypeVar("Row")
_TAIL = (1.0 - 0.95) / 2.0


def percentile_interval(
    rows: Sequence[Row],
    statistic: Callable[[Sequence[Row]], float | None],
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> tuple[float, float]:
    """The 95 % percentile interval of any figure of the rows.

    Args:
        rows: What was observed.
        statistic: The figure of a resample; None where a resample does not define it, such as
            one with a single class: it is drawn again.
        clusters: What belongs together, one a row, such as the answer a claim is from; whole
            clusters are drawn, since claims of one answer are not independent.
        resamples: Number of resamples.
        seed: Of the random numbers.
    """
    require_count(resamples, name="resamples", least=100)
    if not rows:
        raise DatasetError("rows: there are none to resample")
    units: dict[Hashable, list[Row]] = {}
    names = range(len(rows)) if clusters is None else clusters
    require_same_length(rows=rows, clusters=names)
    for row, cluster in zip(rows, names, strict=True):
        units.setdefault(cluster, []).append(row)
    drawable = list(units.values())
    random = Random(seed)  # noqa: S311 - resampling, not secrets
    figures: list[float] = []
    for _ in range(10 * resamples):
        drawn = random.choices(drawable, k=len(drawable))
        figure = statistic([row for unit in drawn for row in unit])
        if figure is not None:
            figures.append(figure)
        if len(figures) == resamples:
            break
    else:
        raise DatasetError(
            "the figure is not defined on nine of ten resamples: there are too few rows of a kind"
        )
    return middle_of(figures)


def middle_of(figures: Iterable[float]) -> tuple[float, float]:
    """Between which figures 95 % of them lie."""
    ordered = sorted(figures)
    return _quantile(ordered, _TAIL), _quantile(ordered, 1.0 - _TAIL)


def _bca_interval(
    numbers: Sequence[float], mean: float, *, resamples: int, seed: int
) -> tuple[float, float]:
    """The BCa interval of a mean of values that are not all equal.

    The acceleration is that of a mean, a sixth of the values' skewness over the square root of
    their number (Efron 1987, JASA 82(397), section 4); no jackknife is needed.
    """
    n = len(numbers)
    squares = math.fsum((v - mean) ** 2 for v in numbers)
    acceleration = math.fsum((v - mean) ** 3 for v in numbers) / (6.0 * squares**1.5)
    random = Random(seed)  # noqa: S311 - resampling, not secrets
    # fsum is exact, and so independent of the order and of the Python version; sum() is neither.
    means = sorted(math.fsum(random.choices(numbers, k=n)) / n for _ in range(resamples))
    below = (bisect_left(means, mean) + bisect_right(means, mean)) / 2.0
    bias = normal_quantile(min(max(below, 0.5), resamples - 0.5) / resamples)

    def end(share: float) -> float:
        shifted = bias + normal_quantile(share)
        return _quantile(means, _NORMAL.cdf(bias + shifted / (1.0 - acceleration * shifted)))

    return end(_TAIL), end(1.0 - _TAIL)


def _quantile(ordered: Sequence[float], share: float) -> float:
    """The quantile of sorted values, interpolated (definition 7 of Hyndman & Fan 1996)."""
    place = share * (len(ordered) - 1)
    below = min(int(place), len(ordered) - 1)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


# Means of a data set, and the choice among the intervals.

_FEWEST_TO_RESAMPLE = 20
_MOST_TO_RESAMPLE = 1000


def mean_estimate(
    values: Iterable[float],
    *,
    bounds: Bounds = (0.0, 1.0),
    resamples: int = 2000,
    seed: int = 0,
) -> Estimate:
    """The mean of scores, with the 95 % interval that fits them.

    That is Wilson's where every score stands at one of the bounds, a share; `unseen_share` where
    all scores are equal (`no_spread_interval`); below 20 scores, where resampling is known to be
    too narrow, Student's t on the scale of log odds (`MeanVariance.logit_t`), for a few mostly good
    scores are skewed; from 1,000 on, where both agree and resampling takes seconds, Student's t
    (Student 1908, Biometrika 6(1)); the BCa bootstrap in between.

    Args:
        values: The scores; without what was not scored.
        bounds: The lowest and the highest score possible.
        resamples: Of the bootstrap.
        seed: Of the bootstrap.
    """
    require_count(resamples, name="resamples", least=100)
    numbers = numbers_of(values, name="values", bounds=bounds)
    n, reach = len(numbers), bounds[1] - bounds[0]
    mean = math.fsum(numbers) / n
    if all(number in bounds for number in numbers):
        method = "wilson"
        ends = wilson((mean - bounds[0]) / reach, n=n)
        low, high = (bounds[0] + end * reach for end in ends)
    elif has_no_spread(min(numbers), max(numbers), bounds):
        method = "unseen_share"
        low, high = no_spread_interval(mean, n=n, bounds=bounds)
    elif n < _FEWEST_TO_RESAMPLE:
        method = "logit_t"
        low, high = _variance_of(numbers, mean, bounds).logit_t()
    elif n < _MOST_TO_RESAMPLE:
        method = "bca_bootstrap"
        low, high = _bca_interval(numbers, mean, resamples=resamples, seed=seed)
    else:
        method = "student_t"
        low, high = _variance_of(numbers, mean, bounds).student_t()
    return Estimate(
        value=mean,
        low=max(bounds[0], low),
        high=min(bounds[1], high),
        method=method,
        n=n,
        effective_n=n,
    )


def _variance_of(numbers: Sequence[float], mean: float, bounds: Bounds) -> MeanVariance:
    variance = statistics.variance(numbers, xbar=mean) / len(numbers)
    return MeanVariance(mean, variance, len(numbers) - 1.0, bounds)


# Two runs over the same cases: how far the scores moved.


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """The mean change from the first scores to the second, case by case.

    Attributes:
        difference: Mean of `second - first` with its interval.
        higher: Cases that score higher the second time.
        lower: Cases that score lower.
        equal: Cases that score the same.
    """

    difference: Estimate
    higher: int
    lower: int
    equal: int

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.difference.low > 0.0 or self.difference.high < 0.0


def paired_difference(
    first: Sequence[float], second: Sequence[float], *, seed: int = 0
) -> PairedDifference:
    """The mean difference of scores, 0 to 1, of the same cases in the same order.

    Cases are resampled as pairs (Efron & Tibshirani 1993, section 14.3, BCa), so what makes a case
    hard in both runs cancels out. Mostly few scores change: resamples of few changes are too narrow
    (Hesterberg 2015, American Statistician 69(4)) and would call chance clear in one comparison of
    seven, while Student's t is too short on the side of a rare large loss. So each end is that of
    the two which lies farther out (`wider_of_bca_and_t`). Where there are too few or too many
    cases to resample, or all differences are equal, the interval is another (`mean_estimate`).
    """
    before = numbers_of(first, name="first", bounds=(0.0, 1.0))
    after = numbers_of(second, name="second", bounds=(0.0, 1.0))
    require_same_length(first=before, second=after)
    changes = [b - a for a, b in zip(before, after, strict=True)]
    bounds = (-1.0, 1.0)
    difference = mean_estimate(changes, bounds=bounds, seed=seed)
    if difference.method == "bca_bootstrap":
        low, high = _variance_of(changes, difference.value, bounds).student_t()
        difference = replace(
            difference,
            low=min(low, difference.low),
            high=max(high, difference.high),
            method="wider_of_bca_and_t",
        )
    return PairedDifference(
        difference=difference,
        higher=sum(change > 0.0 for change in changes),
        lower=sum(change < 0.0 for change in changes),
        equal=sum(change == 0.0 for change in changes),
    )
