"""The Hajek mean of a sample with unequal inclusion probabilities, kept as a few sums.

Hajek 1971 (comment in Godambe & Sprott, "Foundations of Statistical Inference"); Sarndal,
Swensson & Wretman 1992, "Model Assisted Survey Sampling", section 5.7, for the variance; Kish
1965, "Survey Sampling", for the effective sample size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ragaliq.errors import DatasetError
from ragaliq.statistics.checks import Bounds
from ragaliq.statistics.estimates import Estimate
from ragaliq.statistics.interval_formulas import (
    has_no_spread,
    no_spread_interval,
    student_t_of_variance,
    wilson_of_variance,
)

__all__ = ["Target", "WeightedSums"]

Target = Literal["traffic", "process"]
"""What an interval is about.

`traffic` is the mean of exactly the population that was sampled from: where everything was
included nothing is left to estimate, and the interval has no width. `process` is the mean that
the application would show in the long run, of which that population is itself a sample.
"""

_LEAST_VARIANCE = 1e-15
_ROUNDING = 1e-9


@dataclass(slots=True)
class WeightedSums:
    """What a Hajek mean needs to know of a sample: a few sums, however long the sample is.

    Attributes:
        n: Number of values.
        weight: Sum of the weights `1 / probability`, an estimate of the population's size.
        weight_squared: Sum of the squared weights.
    """

    n: int = 0
    weight: float = 0.0
    weight_squared: float = 0.0
    _y: float = 0.0
    _y_squared: float = 0.0
    _y_twice: float = 0.0
    _yy: float = 0.0
    _yy_twice: float = 0.0
    _least: float = math.inf
    _most: float = -math.inf

    def add(self, value: float, probability: float) -> None:
        """Take in one value that had this chance of being in the sample; both already checked."""
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
        # Rounding must not move a mean outside what was seen.
        return min(max(self._y / self.weight, self._least), self._most)

    @property
    def spread(self) -> float:
        """The variance of the values themselves in the population."""
        return max(0.0, self._yy / self.weight - self.mean**2)

    def variance(self, *, target: Target = "traffic") -> float:
        """The variance of the Hajek mean by linearisation (Sarndal et al. 1992, 5.7.10)."""
        mean = self.mean
        squares = self._yy_twice - 2.0 * mean * self._y_twice + mean * mean * self.weight_squared
        if target == "traffic":
            # (1 - p) / p^2 = w^2 - w: what was sure to be included adds no uncertainty.
            squares -= self._yy - 2.0 * mean * self._y + mean * mean * self.weight
        if squares <= _LEAST_VARIANCE * self.weight_squared or self.effective_n <= 1.0 + _ROUNDING:
            return 0.0
        # Kish's size, not the number of values, in n / (n - 1): next to one heavy value the others
        # say little, and its own distance from a mean it makes itself says nothing.
        return squares / (self.weight**2 - self.weight_squared)

    def estimate(
        self,
        *,
        bounds: Bounds = (0.0, 1.0),
        target: Target = "traffic",
        confidence: float = 0.95,
    ) -> Estimate:
        """The mean with its interval, as `hajek_mean` describes it.

        Raises:
            DatasetError: There are no values.
        """
        if not self.n:
            raise DatasetError("values: there are none; at least one is needed")
        low, high, method = self._interval(bounds, target, confidence)
        return Estimate(
            value=self.mean,
            low=low,
            high=high,
            method=method,
            n=self.n,
            effective_n=self.effective_n,
            confidence=confidence,
        )

    def _interval(
        self, bounds: Bounds, target: Target, confidence: float
    ) -> tuple[float, float, str]:
        mean, variance = self.mean, self.variance(target=target)
        left_out = self.weight_squared - (self.weight if target == "traffic" else 0.0)
        if left_out <= _LEAST_VARIANCE * self.weight_squared:
            return mean, mean, "census"
        if has_no_spread(self._least, self._most, bounds) or not variance:
            n = self.weight**2 / left_out
            low, high = no_spread_interval(mean, n=n, bounds=bounds, confidence=confidence)
            return low, high, "unseen_share"
        interval, method = (
            (wilson_of_variance, "hajek_wilson")
            if self._is_two_valued(bounds)
            else (student_t_of_variance, "hajek_t")
        )
        df = max(1.0, self.effective_n - 1.0)
        return *interval(mean, variance, df=df, bounds=bounds, confidence=confidence), method

    def _is_two_valued(self, bounds: Bounds) -> bool:
        # Only values at the bounds have (y - low) * (y - high) = 0; inside it is below.
        low, high = bounds
        product = self._yy - (low + high) * self._y + low * high * self.weight
        return abs(product) <= 1e-12 * self.weight * (high - low) ** 2
