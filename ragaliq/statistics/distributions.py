"""The three distributions the intervals rest on, without scipy."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

__all__ = [
    "binomial_cdf",
    "normal_cdf",
    "normal_quantile",
    "regularized_beta",
    "student_t_cdf",
    "student_t_quantile",
]

_NORMAL = NormalDist()
_TINY = 1e-300
_PRECISION = 1e-15
_MOST_STEPS = 20_000

normal_cdf = _NORMAL.cdf


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
    return math.exp(log_front) / _continued_fraction(x, a, b)


def _continued_fraction(x: float, a: float, b: float) -> float:
    value, upper, lower = 1.0, 1.0, 0.0
    for step in range(1, _MOST_STEPS):
        coefficient = _coefficient(step, x, a, b)
        lower = 1.0 / _away_from_zero(1.0 + coefficient * lower)
        upper = _away_from_zero(1.0 + coefficient / upper)
        value *= upper * lower
        if abs(upper * lower - 1.0) < _PRECISION:
            break
    return value


def _coefficient(step: int, x: float, a: float, b: float) -> float:
    m = step // 2
    if step % 2:
        return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
    return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def binomial_cdf(successes: int, *, trials: int, probability: float) -> float:
    """The chance of at most so many successes (DLMF 8.17.5 with 8.17.4)."""
    if successes < 0:
        return 0.0
    if successes >= trials:
        return 1.0
    return regularized_beta(1.0 - probability, a=trials - successes, b=successes + 1)


def student_t_cdf(value: float, *, df: float) -> float:
    """Student's t distribution function; `df` need not be whole (Abramowitz & Stegun 26.7.1)."""
    tail = 0.5 * regularized_beta(df / (df + value * value), a=df / 2.0, b=0.5)
    return tail if value < 0 else 1.0 - tail


@lru_cache(maxsize=1024)
def student_t_quantile(probability: float, *, df: float) -> float:
    """The quantile of Student's t distribution, by bisection of its distribution function."""
    if probability < 0.5:
        return -student_t_quantile(1.0 - probability, df=df)
    low, high = 0.0, 1.0
    while student_t_cdf(high, df=df) < probability and high < 1e12:
        low, high = high, high * 2.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        if student_t_cdf(middle, df=df) < probability:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
