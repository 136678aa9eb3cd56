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

from ragaliq.statistics.checks import (
    Bounds,
    numbers_of,
    probabilities_of,
    require_choice,
    require_count,
    require_same_length,
    require_share,
)
from ragaliq.statistics.distributions import student_t_quantile
from ragaliq.statistics.estimates import Estimate
from ragaliq.statistics.interval_formulas import no_spread_interval
from ragaliq.statistics.weighted import Target, WeightedSums

__all__ = [
    "effective_sample_size",
    "hajek_mean",
    "horvitz_thompson_mean",
    "horvitz_thompson_total",
]


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
