"""The mean of an expensive judge's scores, sharpened by a cheap judge that scored far more.

Angelopoulos, Bates, Fannjiang, Jordan & Zrnic 2023, "Prediction-powered inference", Science 382;
Angelopoulos, Duchi & Zrnic 2023, "PPI++: Efficient Prediction-Powered Inference", arXiv
2311.01453, for the tuned weight of the cheap scores. With inclusion probabilities it is the
difference estimator of survey sampling (Sarndal, Swensson & Wretman 1992, "Model Assisted Survey
Sampling", section 6.3, and chapter 9 for two phases): the cheap mean over all, corrected by the
weighted mean of `expensive - weight * cheap` over what both scored.

PPI++ compares what only the cheap judge scored with what both did; here the cheap mean is over
everything. Both give the same estimate: their weight is ours times N / (n + N).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ragaliq.errors import DatasetError
from ragaliq.statistics.checks import (
    Bounds,
    numbers_of,
    probabilities_of,
    require_choice,
    require_same_length,
    require_share,
)
from ragaliq.statistics.estimates import Estimate
from ragaliq.statistics.paired_sums import PairedSums
from ragaliq.statistics.weighted import Target

__all__ = ["PredictionPowered", "prediction_powered_mean"]


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
