"""Intervals of means and shares, and their distributions; no dependency but Python."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

from ragaliq.errors import DatasetError
from ragaliq.statistics.checks import Bounds, require_share


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Estimate with its interval.

    Attributes:
        value: The estimate.
        low: Lower end of the interval.
        high: Upper end of the interval.
        method: Method of the interval, such as `wilson` or `logit_t`.
        n: Number of values.
        effective_n: Number of equally weighted values with the same information; `n` without
            weights.
        confidence: Share of such intervals that contain the true figure, 0.95 by default.
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


# Two distributions, without scipy: a live process and a gate in CI need not install it.

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
        # Values too near to zero are moved away from it, to avoid dividing by zero.
        lower, upper = 1.0 + coefficient * lower, 1.0 + coefficient / upper
        lower = 1.0 / (lower if abs(lower) > _TINY else _TINY)
        upper = upper if abs(upper) > _TINY else _TINY
        value *= upper * lower
        if abs(upper * lower - 1.0) < _PRECISION:
            break
    return math.exp(log_front) / value


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
    # At 0 and 1 one end equals the share; rounding must not move it past.
    return min(max(0.0, centre - reach), share), max(min(1.0, centre + reach), share)


class MeanVariance(NamedTuple):
    """Mean with its variance, from which intervals within the bounds follow.

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
        """Position of the mean between the bounds, 0 to 1."""
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
        """Wilson's interval of a share whose estimate has this variance.

        The number of cases is replaced by the number of equally weighted ones that would give this
        variance, with an allowance for few degrees of freedom (Korn & Graubard 1998, Survey
        Methodology 24(2)), or by `least_cases` if that is larger.
        """
        (low, high), share = self.bounds, self.share
        if not 0.0 < share < 1.0:
            return self.student_t()
        cases = max(least_cases, share * (1.0 - share) * (high - low) ** 2 / self.variance)
        cases *= (normal_quantile(0.5 + self.confidence / 2.0) / self.reach) ** 2
        lower, upper = wilson(share, n=cases, confidence=self.confidence)
        return low + lower * (high - low), low + upper * (high - low)

    def logit_t(self) -> tuple[float, float]:
        """Interval by Student's t distribution on the scale of log odds, transformed back.

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
    """True if all values are equal within floating-point precision."""
    return most - least <= _ROUNDING * (bounds[1] - bounds[0])


def no_spread_interval(
    value: float, *, n: float, bounds: Bounds, confidence: float = 0.95
) -> tuple[float, float]:
    """Interval of a mean when all `n` values are equal.

    Bootstrap and variance would both give an interval of width 0 for such data. Yet up to a share
    `u` of the population may have other values: `u` is the upper end of Wilson's interval for 0 in
    `n`, and those values may lie anywhere within the bounds. At either bound this is Wilson's
    interval itself.
    """
    z = normal_quantile(0.5 + confidence / 2.0)
    unseen = z * z / (n + z * z)
    low, high = bounds
    return (1.0 - unseen) * value + unseen * low, (1.0 - unseen) * value + unseen * high
