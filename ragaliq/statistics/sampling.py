"""Figures of a whole population from a sample whose members had unequal chances to be in it.

Members are drawn independently of each other, each with its own known probability (Poisson
sampling), which is what a sampler that hashes run ids does. Sources: Horvitz & Thompson 1952,
JASA 47(260); Hajek 1971 (comment in Godambe & Sprott, "Foundations of Statistical Inference");
Sarndal, Swensson & Wretman 1992, "Model Assisted Survey Sampling", sections 2.8 and 5.7; Kish
1965, "Survey Sampling", for the effective sample size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.statistics.checks import (
    Bounds,
    numbers_of,
    probabilities_of,
    require_choice,
    require_count,
    require_same_length,
    require_share,
)
from ragaliq.statistics.intervals import (
    Estimate,
    has_no_spread,
    no_spread_interval,
    student_t_of_variance,
    student_t_quantile,
    wilson_of_variance,
)

__all__ = [
    "PairedSums",
    "PredictionPowered",
    "Target",
    "WeightedSums",
    "effective_sample_size",
    "hajek_mean",
    "horvitz_thompson_mean",
    "horvitz_thompson_total",
    "powered",
    "prediction_powered_mean",
]


# The Hajek mean, kept as a few sums.

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


# The same of values at hand, and totals.


def hajek_mean(
    values: Iterable[float],
    probabilities: Iterable[float],
    *,
    bounds: Bounds = (0.0, 1.0),
    target: Target = "traffic",
    confidence: float = 0.95,
) -> Estimate:
    """The mean of a population from a Poisson sample, its size unknown.

    The weighted mean with weights `1 / probability`. The interval is by Student's t distribution
    with Kish's effective size less one as degrees of freedom (`hajek_t`); for values that all
    stand at the bounds, Wilson's with the number of cases the variance is worth (`hajek_wilson`);
    where all values are equal, `unseen_share`; where everything was included, `census`.

    Args:
        values: The sampled values.
        probabilities: The chance each had of being sampled, in (0, 1].
        bounds: The lowest and highest value possible.
        target: Whether the interval is about this population or what makes such populations.
        confidence: Share of such intervals that hold the true mean.

    Raises:
        ConfigurationError: A setting is out of range.
        DatasetError: No values, lengths that differ, or a value or probability out of range.
    """
    require_share(confidence)
    require_choice(target, name="target", choices=("traffic", "process"))
    sums = WeightedSums()
    for value, probability in _pairs(values, probabilities, bounds):
        sums.add(value, probability)
    return sums.estimate(bounds=bounds, target=target, confidence=confidence)


def horvitz_thompson_total(
    values: Iterable[float],
    probabilities: Iterable[float],
    *,
    bounds: Bounds = (0.0, 1.0),
    confidence: float = 0.95,
) -> Estimate:
    """The total of a population from a Poisson sample.

    The sum of `value / probability`, with the variance of Poisson sampling (Sarndal et al. 1992,
    2.8.6) and an interval by Student's t distribution (`horvitz_thompson`). Where all values are
    0 that variance sees nothing, and `unseen_share` is taken; where everything was included,
    `census`.

    Args:
        values: The sampled values.
        probabilities: The chance each had of being sampled, in (0, 1].
        bounds: The lowest and highest value possible.
        confidence: Share of such intervals that hold the true total.

    Raises:
        ConfigurationError: A setting is out of range.
        DatasetError: No values, lengths that differ, or a value or probability out of range.
    """
    require_share(confidence)
    pairs = _pairs(values, probabilities, bounds)
    total = math.fsum(value / p for value, p in pairs)
    size = math.fsum(1.0 / p for _, p in pairs)
    effective = effective_sample_size(p for _, p in pairs)
    variance = math.fsum((1.0 - p) * (value / p) ** 2 for value, p in pairs)
    low = high = total
    method = "horvitz_thompson" if variance else "census"
    if variance:
        df = max(1.0, effective - 1.0)
        reach = student_t_quantile(0.5 + confidence / 2.0, df=df) * math.sqrt(variance)
        low, high = total - reach, total + reach
    elif any(p < 1.0 for _, p in pairs):
        method = "unseen_share"
        unseen = no_spread_interval(0.0, n=effective, bounds=bounds, confidence=confidence)
        low, high = total + size * unseen[0], total + size * unseen[1]
    return Estimate(
        value=total,
        low=low,
        high=high,
        method=method,
        n=len(pairs),
        effective_n=effective,
        confidence=confidence,
    )


def horvitz_thompson_mean(
    values: Iterable[float],
    probabilities: Iterable[float],
    *,
    population: int,
    bounds: Bounds = (0.0, 1.0),
    confidence: float = 0.95,
) -> Estimate:
    """The mean of a population of known size: the estimated total over that size.

    It has no bias, and may therefore lie outside the bounds; its interval is cut to them where
    the mean is inside. `hajek_mean` is nearly always narrower, since a sample that came out large
    by chance does not raise it.

    Args:
        values: The sampled values.
        probabilities: The chance each had of being sampled, in (0, 1].
        population: How many members there are, sampled or not.
        bounds: The lowest and highest value possible.
        confidence: Share of such intervals that hold the true mean.

    Raises:
        ConfigurationError: A setting is out of range, or the population is smaller than the sample.
        DatasetError: No values, lengths that differ, or a value or probability out of range.
    """
    pairs = _pairs(values, probabilities, bounds)
    require_count(population, name="population", least=len(pairs))
    total = horvitz_thompson_total(
        (value for value, _ in pairs),
        (p for _, p in pairs),
        bounds=bounds,
        confidence=confidence,
    )
    mean = total.value / population
    return Estimate(
        value=mean,
        low=min(mean, max(bounds[0], total.low / population)),
        high=max(mean, min(bounds[1], total.high / population)),
        method=total.method,
        n=total.n,
        effective_n=total.effective_n,
        confidence=confidence,
    )


def effective_sample_size(probabilities: Iterable[float]) -> float:
    """Kish's size: how many equally weighted members would tell as much, if all vary alike.

    Raises:
        DatasetError: None, or one outside (0, 1].
    """
    weights = [1.0 / probability for probability in probabilities_of(probabilities)]
    return math.fsum(weights) ** 2 / math.fsum(weight * weight for weight in weights)


def _pairs(
    values: Iterable[float], probabilities: Iterable[float], bounds: Bounds
) -> list[tuple[float, float]]:
    numbers = numbers_of(values, name="values", bounds=bounds)
    chances = probabilities_of(probabilities)
    require_same_length(values=numbers, probabilities=chances)
    return list(zip(numbers, chances, strict=True))


# A cheap judge for all, an expensive one for a sample.
#
# The mean of an expensive judge's scores, sharpened by a cheap judge that scored far more:
# Angelopoulos, Bates, Fannjiang, Jordan & Zrnic 2023, "Prediction-powered inference", Science 382;
# Angelopoulos, Duchi & Zrnic 2023, "PPI++: Efficient Prediction-Powered Inference", arXiv
# 2311.01453, for the tuned weight of the cheap scores. With inclusion probabilities it is the
# difference estimator of survey sampling (Sarndal, Swensson & Wretman 1992, section 6.3, and
# chapter 9 for two phases): the cheap mean over all, corrected by the weighted mean of
# `expensive - weight * cheap` over what both scored.
#
# PPI++ compares what only the cheap judge scored with what both did; here the cheap mean is over
# everything. Both give the same estimate: their weight is ours times N / (n + N).

_NO_SPREAD = 1e-12


@dataclass(slots=True)
class _Moments:
    """Weighted sums of 1, x, y and their products, all about the point (1/2, 1/2)."""

    one: float = 0.0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0
    yy: float = 0.0

    def add(self, weight: float, x: float, y: float) -> None:
        x, y = x - 0.5, y - 0.5
        self.one += weight
        self.x += weight * x
        self.y += weight * y
        self.xx += weight * x * x
        self.xy += weight * x * y
        self.yy += weight * y * y

    def about(self, x: float, y: float) -> tuple[float, float, float]:
        """The sums of squares and products of the differences from a point: xx, xy, yy."""
        x, y = x - 0.5, y - 0.5
        return (
            max(0.0, self.xx - 2.0 * x * self.x + x * x * self.one),
            self.xy - x * self.y - y * self.x + x * y * self.one,
            max(0.0, self.yy - 2.0 * y * self.y + y * y * self.one),
        )


@dataclass(slots=True)
class PairedSums:
    """Scores of a cheap and of an expensive judge, the second on a part of the first.

    The variance has two parts. `_choice` weighs what comes from scoring only some with the
    expensive judge, which good cheap scores take away; the other two weigh what is left: that the
    cheap judge saw only a sample of the traffic, and that the traffic is itself a sample.
    """

    cheap: WeightedSums = field(default_factory=WeightedSums)
    expensive: WeightedSums = field(default_factory=WeightedSums)
    _cheap_of_pairs: WeightedSums = field(default_factory=WeightedSums)
    _choice: _Moments = field(default_factory=_Moments)
    _first_phase: _Moments = field(default_factory=_Moments)
    _process: _Moments = field(default_factory=_Moments)

    def add_cheap(self, score: float, probability: float = 1.0) -> None:
        """A member the cheap judge scored, whether or not the expensive one did as well."""
        self.cheap.add(score, probability)

    def add_pair(
        self,
        expensive: float,
        cheap: float,
        probability: float,
        *,
        cheap_probability: float = 1.0,
    ) -> None:
        """A member both judges scored; its cheap score goes to `add_cheap` too.

        Args:
            expensive: The expensive judge's score.
            cheap: The cheap judge's score.
            probability: The chance of being scored by both, at most `cheap_probability`.
            cheap_probability: The chance of being scored by the cheap judge.
        """
        later = probability / cheap_probability
        weight = 1.0 / probability
        self.expensive.add(expensive, probability)
        self._cheap_of_pairs.add(cheap, probability)
        square = weight * weight
        self._choice.add(square * (1.0 - later), cheap, expensive)
        self._first_phase.add(square * later * (1.0 - cheap_probability), cheap, expensive)
        self._process.add(square * later, cheap, expensive)

    @property
    def pairs(self) -> int:
        """Number of members both judges scored."""
        return self.expensive.n

    @property
    def cheap_count(self) -> int:
        """Number of members the cheap judge scored."""
        return self.cheap.n

    @property
    def cheap_mean(self) -> float:
        """The cheap judge's mean over everything it scored."""
        return self.cheap.mean

    def best_weight(self) -> float:
        """The weight of the cheap scores that makes the variance least, cut to [0, 1].

        Cut, because a slope from few pairs may be anything, and is multiplied with the difference
        between the cheap means.
        """
        squares, products, _ = self._choice.about(self._cheap_of_pairs.mean, self.expensive.mean)
        if squares <= _NO_SPREAD * self._choice.one:
            return 0.0
        return min(1.0, max(0.0, products / squares))

    def estimate(
        self,
        weight: float | None,
        *,
        classical: Estimate,
        bounds: Bounds,
        target: Target,
        confidence: float,
    ) -> tuple[Estimate, float]:
        """The prediction-powered mean, and the weight of the cheap scores in it."""
        if weight is not None and not 0.0 <= weight <= 1.0:
            raise ConfigurationError(f"weight must be within [0, 1], got {weight}")
        used = self.best_weight() if weight is None else weight
        # A fitted weight costs a degree of freedom, as a slope does in a regression.
        fitted = 1 if weight is not None else 2
        effective = self.expensive.effective_n
        if used == 0.0 or effective <= fitted + 1 or classical.method in ("census", "unseen_share"):
            return classical, 0.0
        value = self.expensive.mean + used * (self.cheap.mean - self._cheap_of_pairs.mean)
        value = min(max(value, bounds[0]), bounds[1])
        variance = self._variance(used, target) * effective / (effective - fitted)
        df = effective - fitted
        low, high = (
            wilson_of_variance(
                value,
                variance,
                df=df,
                bounds=bounds,
                confidence=confidence,
                least_cases=effective,  # that many the expensive scores are worth by themselves
            )
            if classical.method == "hajek_wilson"
            else student_t_of_variance(value, variance, df=df, bounds=bounds, confidence=confidence)
        )
        powered = Estimate(
            value=value,
            low=low,
            high=high,
            method="ppi++" if weight is None else "ppi",
            n=self.pairs,
            effective_n=effective,
            confidence=confidence,
        )
        return powered, used

    def _variance(self, weight: float, target: Target) -> float:
        known, mean = self._cheap_of_pairs.mean, self.expensive.mean
        xx, xy, yy = self._choice.about(known, mean)
        left = max(0.0, yy - 2.0 * weight * xy + weight * weight * xx)
        # Where the judges agree on every pair seen, the next one may still differ. Counting one
        # more, in which the two scores have nothing to do with each other, keeps the interval from
        # promising more than so many pairs can show.
        unrelated = (1.0 + weight * weight) * self.expensive.spread
        left += unrelated * self._choice.one / self.expensive.effective_n
        rest = self._process if target == "process" else self._first_phase
        return (left + rest.about(known, mean)[2]) / self.expensive.weight**2


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionPowered:
    """The sharpened mean beside the one from the expensive scores alone.

    Attributes:
        estimate: The prediction-powered mean and its interval.
        classical: The Hajek mean of the expensive scores and its interval.
        cheap_mean: The cheap judge's own mean over everything it scored.
        weight: How far the cheap scores are trusted, 0 to 1; 0 makes the estimate the classical.
        labelled: Number of members both judges scored.
        unlabelled: Number that only the cheap judge scored.
    """

    estimate: Estimate
    classical: Estimate
    cheap_mean: float
    weight: float
    labelled: int
    unlabelled: int


def prediction_powered_mean(
    expensive: Iterable[float],
    cheap: Iterable[float],
    unlabelled: Iterable[float],
    *,
    probabilities: Iterable[float] | None = None,
    weight: float | None = None,
    bounds: Bounds = (0.0, 1.0),
    target: Target = "process",
    confidence: float = 0.95,
) -> PredictionPowered:
    """The mean of the expensive judge's scores over everything the cheap judge scored.

    Args:
        expensive: The expensive judge's scores.
        cheap: The cheap judge's scores of the same members, in the same order.
        unlabelled: The cheap judge's scores of all other members.
        probabilities: The chance each member of `expensive` had of being scored by that judge; by
            default the same for all.
        weight: Of the cheap scores, 0 to 1; by default the one that makes the variance least,
            which is PPI++. 1 is plain prediction-powered inference, 0 the classical estimate.
        bounds: The lowest and highest score of both judges.
        target: Whether the interval is about this population or what makes such populations.
        confidence: Share of such intervals that hold the true mean.

    Raises:
        ConfigurationError: A setting is out of range.
        DatasetError: No labelled scores, lengths that differ, or a value out of range.
    """
    require_share(confidence)
    require_choice(target, name="target", choices=("traffic", "process"))
    dear = numbers_of(expensive, name="expensive", bounds=bounds)
    known = numbers_of(cheap, name="cheap", bounds=bounds)
    others = list(unlabelled)
    others = numbers_of(others, name="unlabelled", bounds=bounds) if others else []
    if probabilities is None:
        chances = [len(dear) / (len(dear) + len(others))] * len(dear)
    else:
        chances = probabilities_of(probabilities)
    require_same_length(expensive=dear, cheap=known, probabilities=chances)
    sums = PairedSums()
    for score in (*known, *others):
        sums.add_cheap(score)
    for one, other, chance in zip(dear, known, chances, strict=True):
        sums.add_pair(one, other, chance)
    return powered(sums, weight=weight, bounds=bounds, target=target, confidence=confidence)


def powered(
    sums: PairedSums,
    *,
    weight: float | None = None,
    bounds: Bounds = (0.0, 1.0),
    target: Target = "traffic",
    confidence: float = 0.95,
) -> PredictionPowered:
    """`prediction_powered_mean` of what was summed up.

    Raises:
        ConfigurationError: The weight is outside [0, 1].
        DatasetError: Nothing was scored by both judges.
    """
    if not sums.pairs:
        raise DatasetError("nothing was scored by both judges")
    classical = sums.expensive.estimate(bounds=bounds, target=target, confidence=confidence)
    estimate, used = sums.estimate(
        weight, classical=classical, bounds=bounds, target=target, confidence=confidence
    )
    return PredictionPowered(
        estimate=estimate,
        classical=classical,
        cheap_mean=sums.cheap_mean,
        weight=used,
        labelled=sums.pairs,
        unlabelled=sums.cheap_count - sums.pairs,
    )
