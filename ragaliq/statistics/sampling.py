"""Estimates for a population from a sample with unequal inclusion probabilities.

Members are drawn independently of each other, each with its own known probability (Poisson
sampling), which is what a sampler that hashes run ids does. Sources: Hajek 1971 (comment in Godambe
& Sprott, "Foundations of Statistical Inference"); Sarndal, Swensson & Wretman 1992, "Model Assisted
Survey Sampling", section 5.7; Kish 1965, "Survey Sampling", for the effective sample size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragaliq.errors import DatasetError
from ragaliq.statistics.checks import Bounds, numbers_of, probabilities_of, require_same_length
from ragaliq.statistics.intervals import (
    Estimate,
    MeanVariance,
    has_no_spread,
    no_spread_interval,
    wilson,
)

# The Hajek mean, kept as a few sums. Its interval is for the application's long-run mean: the
# population that was sampled is itself a sample.

_LEAST_VARIANCE = 1e-15
_ROUNDING = 1e-9


@dataclass(slots=True)
class WeightedSums:
    """Sums of a sample from which the Hajek mean follows, in constant memory.

    Attributes:
        n: Number of values.
        weight: Sum of the weights `1 / probability`, an estimate of the population's size.
        weight_squared: Sum of the squared weights.
    """

    n: int = 0
    weight: float = 0.0
    weight_squared: float = 0.0
    _y: float = 0.0
    _y_twice: float = 0.0
    _yy: float = 0.0
    _yy_twice: float = 0.0
    _least: float = math.inf
    _most: float = -math.inf

    def add(self, value: float, probability: float) -> None:
        """Add a value that had this chance of being in the sample; both are checked already."""
        weight = 1.0 / probability
        self.n += 1
        self.weight += weight
        self.weight_squared += weight * weight
        self._y += weight * value
        self._yy += weight * value * value
        self._y_twice += weight * weight * value
        self._yy_twice += weight * weight * value * value
        self._least = min(self._least, value)
        self._most = max(self._most, value)

    @property
    def effective_n(self) -> float:
        """Kish's effective sample size; 0 without values."""
        return self.weight * self.weight / self.weight_squared if self.n else 0.0

    @property
    def mean(self) -> float:
        """The Hajek mean."""
        # Rounding must not move the mean outside the observed values.
        return min(max(self._y / self.weight, self._least), self._most)

    @property
    def spread(self) -> float:
        """Variance of the values in the population."""
        return max(0.0, self._yy / self.weight - self.mean**2)

    def variance(self) -> float:
        """The variance of the Hajek mean by linearisation (Sarndal et al. 1992, 5.7.10)."""
        mean = self.mean
        squares = self._yy_twice - 2.0 * mean * self._y_twice + mean * mean * self.weight_squared
        if squares <= _LEAST_VARIANCE * self.weight_squared or self.effective_n <= 1.0 + _ROUNDING:
            return 0.0
        # Kish's size instead of the number of values in n / (n - 1): one heavy value dominates the
        # mean, so its distance from that mean carries no information.
        return squares / (self.weight**2 - self.weight_squared)

    def estimate(self, *, bounds: Bounds = (0.0, 1.0), confidence: float = 0.95) -> Estimate:
        """The mean with its interval, as `hajek_mean` describes it."""
        if not self.n:
            raise DatasetError("values: there are none; at least one is needed")
        mean, variance, n = self.mean, self.variance(), self.effective_n
        low, high = bounds
        found = MeanVariance(mean, variance, max(1.0, n - 1.0), bounds, confidence)
        # Only values at the bounds have (y - low) * (y - high) = 0; inside it is below.
        product = self._yy - (low + high) * self._y + low * high * self.weight
        is_share = abs(product) <= 1e-12 * self.weight * (high - low) ** 2
        if is_share and self.n - n <= _ROUNDING * self.n:
            # Without weights the number of cases is known, not estimated from the variance.
            ends = tuple(
                low + end * (high - low)
                for end in wilson(found.share, n=self.n, confidence=confidence)
            )
            method = "wilson"
        elif has_no_spread(self._least, self._most, bounds) or not variance:
            ends = no_spread_interval(mean, n=n, bounds=bounds, confidence=confidence)
            method = "unseen_share"
        elif is_share:
            ends, method = found.wilson(), "wilson"
        else:
            ends, method = found.logit_t(), "logit_t"
        return Estimate(
            value=mean,
            low=ends[0],
            high=ends[1],
            method=method,
            n=self.n,
            effective_n=n,
            confidence=confidence,
        )


# The same of values at hand.


def hajek_mean(
    values: Iterable[float],
    probabilities: Iterable[float],
    *,
    bounds: Bounds = (0.0, 1.0),
) -> Estimate:
    """Mean of a population of unknown size from a Poisson sample.

    The weighted mean with weights `1 / probability`. The interval is by Student's t distribution
    with Kish's effective size less one as degrees of freedom, on the scale of log odds, because
    the usual mean is near 1 and its estimates are skewed (Newcombe 2001, American Statistician
    55(3); `logit_t`); for values that all stand at the bounds, Wilson's (`wilson`), with weights by
    the number of cases the variance is worth; where all values are equal, `unseen_share`.

    Args:
        values: The sampled values.
        probabilities: The chance each had of being sampled, in (0, 1].
        bounds: The lowest and highest value possible.
    """
    sums = WeightedSums()
    numbers = numbers_of(values, name="values", bounds=bounds)
    chances = probabilities_of(probabilities)
    require_same_length(values=numbers, probabilities=chances)
    for value, probability in zip(numbers, chances, strict=True):
        sums.add(value, probability)
    return sums.estimate(bounds=bounds)


# Two runs over the same cases: how far the scores moved.


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """Mean change from the first scores to the second, case by case.

    Attributes:
        difference: Mean of `second - first` with its interval.
        higher: Cases that score higher the second time.
        lower: Cases that score lower.
    """

    difference: Estimate
    higher: int
    lower: int

    @property
    def is_clear(self) -> bool:
        """True if the interval excludes 0."""
        return self.difference.low > 0.0 or self.difference.high < 0.0


def paired_difference(
    first: Sequence[float],
    second: Sequence[float],
    probabilities: Sequence[float] | None = None,
) -> PairedDifference:
    """Mean difference of the scores, 0 to 1, of the same cases in the same order.

    The interval is that of `hajek_mean` over the differences, so what makes a case hard in both
    runs cancels out.

    Args:
        first: Scores of the one run.
        second: Scores of the other.
        probabilities: The chance each case had of being drawn; by default the same for all.
    """
    before = numbers_of(first, name="first", bounds=(0.0, 1.0))
    after = numbers_of(second, name="second", bounds=(0.0, 1.0))
    require_same_length(first=before, second=after)
    changes = [b - a for a, b in zip(before, after, strict=True)]
    chances = [1.0] * len(changes) if probabilities is None else probabilities
    return PairedDifference(
        difference=hajek_mean(changes, chances, bounds=(-1.0, 1.0)),
        higher=sum(change > 0.0 for change in changes),
        lower=sum(change < 0.0 for change in changes),
    )
