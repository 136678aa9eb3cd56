"""Intervals of means and shares, and the choice among them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Literal

from ragaliq.errors import DatasetError
from ragaliq.statistics.bootstrap import bca_mean_interval
from ragaliq.statistics.checks import Bounds, numbers_of, require_choice, require_share
from ragaliq.statistics.distributions import student_t_quantile
from ragaliq.statistics.estimates import Estimate
from ragaliq.statistics.interval_formulas import has_no_spread, no_spread_interval, wilson

__all__ = ["IntervalMethod", "mean_estimate", "share_estimate", "student_t_interval"]

IntervalMethod = Literal["auto", "wilson", "student_t", "bca_bootstrap"]
"""How the interval of a mean is made; `auto` chooses."""

_FEWEST_TO_RESAMPLE = 20
_MOST_TO_RESAMPLE = 1000


def share_estimate(successes: int, trials: int, *, confidence: float = 0.95) -> Estimate:
    """The share of successes, with Wilson's interval.

    Raises:
        ConfigurationError: The confidence is out of range.
        DatasetError: No trials, or more successes than trials.
    """
    if trials < 1 or not 0 <= successes <= trials:
        raise DatasetError(f"{successes} of {trials} is no share")
    share = successes / trials
    low, high = wilson(share, n=trials, confidence=confidence)
    return Estimate(
        value=share,
        low=low,
        high=high,
        method="wilson",
        n=trials,
        effective_n=trials,
        confidence=confidence,
    )


def student_t_interval(values: Sequence[float], *, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of a mean by Student's t distribution (Student 1908, Biometrika 6(1)).

    Raises:
        ConfigurationError: The confidence is out of range.
        DatasetError: Fewer than two values, or one is no number.
    """
    require_share(confidence)
    numbers = numbers_of(values, name="values")
    n = len(numbers)
    if n < 2:
        raise DatasetError("values: a spread needs at least two")
    mean = math.fsum(numbers) / n
    quantile = student_t_quantile(0.5 + confidence / 2.0, df=n - 1)
    reach = quantile * statistics.stdev(numbers, xbar=mean) / math.sqrt(n)
    return mean - reach, mean + reach


def mean_estimate(
    values: Iterable[float],
    *,
    bounds: Bounds = (0.0, 1.0),
    method: IntervalMethod = "auto",
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Estimate:
    """The mean of scores, with the interval that fits them.

    `auto` takes Wilson's interval where every score stands at one of the bounds, a share;
    `unseen_share` where all scores are equal (`no_spread_interval`); Student's t below 20 scores,
    where resampling is known to be too narrow, and from 1,000 on, where both agree and resampling
    takes seconds; the BCa bootstrap in between.

    Args:
        values: The scores; leave out what was not scored.
        bounds: The lowest and the highest score possible.
        method: Another choice than `auto`.
        confidence: Share of such intervals that hold the true mean.
        resamples: Of the bootstrap.
        seed: Of the bootstrap.

    Raises:
        ConfigurationError: A setting is out of range, or the method does not fit the data.
        DatasetError: No values, or one is no number or outside the bounds.
    """
    require_share(confidence)
    require_choice(method, name="method", choices=("auto", "wilson", "student_t", "bca_bootstrap"))
    numbers = numbers_of(values, name="values", bounds=bounds)
    mean = math.fsum(numbers) / len(numbers)
    chosen = _fitting(numbers, bounds) if method == "auto" else method
    if chosen == "wilson":
        low, high = _wilson_within(mean, len(numbers), bounds, confidence)
    elif has_no_spread(min(numbers), max(numbers), bounds):
        # Whatever was asked for: there is no spread from which it could be made.
        chosen = "unseen_share"
        low, high = no_spread_interval(mean, n=len(numbers), bounds=bounds, confidence=confidence)
    elif chosen == "student_t":
        low, high = student_t_interval(numbers, confidence=confidence)
    else:
        low, high = bca_mean_interval(
            numbers, confidence=confidence, resamples=resamples, seed=seed
        )
    return Estimate(
        value=mean,
        low=max(bounds[0], low),
        high=min(bounds[1], high),
        method=chosen,
        n=len(numbers),
        effective_n=len(numbers),
        confidence=confidence,
    )


def _fitting(numbers: Sequence[float], bounds: Bounds) -> str:
    if all(number in bounds for number in numbers):
        return "wilson"
    if _FEWEST_TO_RESAMPLE <= len(numbers) < _MOST_TO_RESAMPLE:
        return "bca_bootstrap"
    return "student_t"


def _wilson_within(mean: float, n: int, bounds: Bounds, confidence: float) -> tuple[float, float]:
    low, high = bounds
    lower, upper = wilson((mean - low) / (high - low), n=n, confidence=confidence)
    return low + lower * (high - low), low + upper * (high - low)
