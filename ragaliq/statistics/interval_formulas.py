"""From a mean and what is known of its spread to an interval."""

from __future__ import annotations

import math

from ragaliq.errors import DatasetError
from ragaliq.statistics.checks import Bounds, require_share
from ragaliq.statistics.distributions import normal_quantile, student_t_quantile

__all__ = [
    "has_no_spread",
    "no_spread_interval",
    "student_t_of_variance",
    "wilson",
    "wilson_of_variance",
]

_ROUNDING = 1e-9


def wilson(share: float, *, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a share observed in `n` cases (Wilson 1927, JASA 22(158)).

    Args:
        share: The share observed, 0 to 1.
        n: Number of cases; need not be whole, for an effective number.
        confidence: Share of such intervals that hold the true share.

    Raises:
        ConfigurationError: The confidence is out of range.
        DatasetError: The share is outside [0, 1] or `n` is not above 0.
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


def wilson_of_variance(
    mean: float,
    variance: float,
    *,
    df: float,
    bounds: Bounds,
    confidence: float = 0.95,
    least_cases: float = 0.0,
) -> tuple[float, float]:
    """Wilson's interval of a share whose estimate has this variance, whatever made it.

    The number of equally likely cases in which a share would have this variance takes the place
    of the number of cases, with an allowance for few degrees of freedom (Korn & Graubard 1998,
    Survey Methodology 24(2)). `least_cases` is taken where that number is smaller.
    """
    low, high = bounds
    share = (mean - low) / (high - low)
    if not 0.0 < share < 1.0:
        return student_t_of_variance(mean, variance, df=df, bounds=bounds, confidence=confidence)
    tail = 0.5 + confidence / 2.0
    cases = max(least_cases, share * (1.0 - share) * (high - low) ** 2 / variance)
    cases *= (normal_quantile(tail) / student_t_quantile(tail, df=df)) ** 2
    lower, upper = wilson(share, n=cases, confidence=confidence)
    return low + lower * (high - low), low + upper * (high - low)


def student_t_of_variance(
    mean: float, variance: float, *, df: float, bounds: Bounds, confidence: float = 0.95
) -> tuple[float, float]:
    """The interval by Student's t distribution, within the bounds."""
    reach = student_t_quantile(0.5 + confidence / 2.0, df=df) * math.sqrt(variance)
    return max(bounds[0], mean - reach), min(bounds[1], mean + reach)


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
