"""Prediction-powered mean: a cheap judge for all answers, an expensive one for some.

The mean of an expensive judge's scores, sharpened by a cheap judge that scored far more:
Angelopoulos, Bates, Fannjiang, Jordan & Zrnic 2023, "Prediction-powered inference", Science 382;
Angelopoulos, Duchi & Zrnic 2023, "PPI++: Efficient Prediction-Powered Inference", arXiv
2311.01453, for the tuned weight of the cheap scores. With inclusion probabilities it is the
difference estimator of survey sampling (Sarndal, Swensson & Wretman 1992, section 6.3): the cheap
mean over all, corrected by the weighted mean of `expensive - weight * cheap` over what both
scored.

PPI++ compares what only the cheap judge scored with what both did; here the cheap mean is over
everything. Both give the same estimate: their weight is ours times N / (n + N).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ragaliq.statistics import Estimate
from ragaliq.statistics.checks import numbers_of, probabilities_of, require_same_length
from ragaliq.statistics.intervals import MeanVariance, normal_quantile, student_t_quantile
from ragaliq.statistics.sampling import WeightedSums

_NO_SPREAD = 1e-12
_UNIT = (0.0, 1.0)  # the scores of both judges


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionPowered:
    """The sharpened mean with the one from the expensive scores alone.

    Attributes:
        estimate: The prediction-powered mean and its interval.
        classical: The Hajek mean of the expensive scores and its interval.
        cheap_mean: The cheap judge's own mean over everything it scored.
        weight: Weight of the cheap scores, 0 to 1; with 0 the estimate is the classical one.
        labelled: Number of members both judges scored.
        unlabelled: Number that only the cheap judge scored.
        fixed_variance: The part of the estimate's variance that further expensive scores leave.
    """

    estimate: Estimate
    classical: Estimate
    cheap_mean: float
    weight: float
    labelled: int
    unlabelled: int
    fixed_variance: float

    def labels_for(self, half_width: float) -> int | None:
        """Number of expensive scores needed for an interval with this half-width.

        Their part of the variance falls as one over their number; the rest stays. This is a plan,
        not a promise: it uses the variance seen so far.

        Returns:
            The total number; None if the rest of the variance is too large already.
        """
        tail = 0.5 + self.estimate.confidence / 2.0
        now = student_t_quantile(tail, df=max(1.0, self.estimate.effective_n - 2.0))
        variable = max(0.0, (self.estimate.width / 2.0 / now) ** 2 - self.fixed_variance)
        room = (half_width / normal_quantile(tail)) ** 2 - self.fixed_variance
        return math.ceil(self.labelled * variable / room) if room > 0.0 else None


def prediction_powered_mean(
    expensive: Iterable[float],
    cheap: Iterable[float],
    unlabelled: Iterable[float],
    *,
    probabilities: Iterable[float] | None = None,
    weights: Iterable[float] | None = None,
    unlabelled_weights: Iterable[float] | None = None,
) -> PredictionPowered:
    """The mean of the expensive judge's scores over everything the cheap judge scored.

    Where that was itself a sample of the traffic, the sample has two phases (Sarndal, Swensson &
    Wretman 1992, chapter 9): each member stands for `weights` runs, and what both scored for one
    over its probability times as many.

    Args:
        expensive: The expensive judge's scores, one a draw: for claims that are drawn together,
            such as those of an answer, the mean of the answer.
        cheap: The cheap judge's scores of the same members, in the same order.
        unlabelled: The cheap judge's scores of all other members.
        probabilities: The chance each member of `expensive` had of being scored by that judge; by
            default the same for all. With chances that prefer what the cheap judge is unsure of,
            this is active inference (Zrnic & Candes 2024, arXiv 2403.03208).
        weights: How many runs of all traffic each member of `expensive` stands for, 1 or more; by
            default 1.
        unlabelled_weights: The same of each member of `unlabelled`.
    """
    dear = numbers_of(expensive, name="expensive", bounds=_UNIT)
    known = numbers_of(cheap, name="cheap", bounds=_UNIT)
    others = list(unlabelled)
    others = numbers_of(others, name="unlabelled", bounds=_UNIT) if others else []
    if probabilities is None:
        chances = [len(dear) / (len(dear) + len(others))] * len(dear)
    else:
        chances = probabilities_of(probabilities)
    own = _weights_of(weights, name="weights", count=len(dear))
    of_others = _weights_of(unlabelled_weights, name="unlabelled_weights", count=len(others))
    require_same_length(expensive=dear, cheap=known, probabilities=chances, weights=own)
    require_same_length(unlabelled=others, unlabelled_weights=of_others)

    sums, sums_of_known = WeightedSums(), WeightedSums()
    for score, other, chance, runs in zip(dear, known, chances, own, strict=True):
        sums.add(score, chance / runs)
        sums_of_known.add(other, chance / runs)
    classical = sums.estimate()
    everything, runs_of_all = (*known, *others), (*own, *of_others)
    cheap_sum = math.fsum(x * runs for x, runs in zip(everything, runs_of_all, strict=True))
    cheap_mean = cheap_sum / math.fsum(runs_of_all)

    # The moments of the pairs about their means, each pair weighted by what it adds to the variance
    # because only some were scored by the expensive judge: runs^2 (1 - p) / p^2.
    pairs = [
        (x - sums_of_known.mean, y - sums.mean, runs**2 * (1.0 - p) / p**2)
        for x, y, p, runs in zip(known, dear, chances, own, strict=True)
    ]
    total = math.fsum(w for _, _, w in pairs)
    xx = math.fsum(w * x * x for x, _, w in pairs)
    xy = math.fsum(w * x * y for x, y, w in pairs)
    # What is uncertain because only so many runs were scored by the cheap judge.
    of_traffic = [
        runs**2 * (y - sums.mean) ** 2 / p for y, p, runs in zip(dear, chances, own, strict=True)
    ]
    # A fitted weight costs a degree of freedom, as a slope does in a regression.
    effective, fitted = sums.effective_n, 2
    if effective <= fitted + 1 or not sums.variance():
        used = 0.0
        estimate = classical
    else:
        # Cut to [0, 1], because a slope from few pairs may be anything, and is multiplied with the
        # difference between the cheap means.
        used = min(1.0, max(0.0, xy / xx)) if xx > _NO_SPREAD * total else 0.0
        value = sums.mean + used * (cheap_mean - sums_of_known.mean)
        value = min(max(value, 0.0), 1.0)
        # Each pair's share of the variance.
        parts = [
            w * (y - used * x) ** 2 + rest
            for (x, y, w), rest in zip(pairs, of_traffic, strict=True)
        ]
        variance = math.fsum(parts)
        # Few pairs that make up most of the variance say little about it: the degrees of freedom
        # follow from how unequal the parts are (Satterthwaite 1946, Biometrics Bulletin 2(6)), seen
        # half-way: how unequal so few parts are is itself seen badly.
        squares = math.fsum(part * part for part in parts) - variance**2 / len(parts)
        # Where the judges agree on every pair seen, the next may still differ. As far as the cheap
        # scores are trusted, three more pairs count in which the two scores have nothing to do with
        # each other: of what was never seen, up to 3 in n must be expected (Hanley & Lippman-Hand
        # 1983, JAMA 249(13)).
        variance += 3.0 * used**2 * (1.0 + used**2) * sums.spread * total / effective
        df = effective - fitted
        if squares > _NO_SPREAD * variance**2:
            df = max(1.0, 2.0 / (1.0 / df + 1.0 / min(df, 2.0 * variance**2 / squares)))
        variance *= effective / (effective - fitted) / sums.weight**2
        found = MeanVariance(value, variance, df, _UNIT)
        if classical.method == "wilson":
            # At least the cases that the expensive scores are worth by themselves.
            low, high = found.wilson(least_cases=effective)
        else:
            low, high = found.logit_t()
        estimate = Estimate(
            value=value,
            low=low,
            high=high,
            method="ppi++",
            n=len(dear),
            effective_n=effective,
        )
    return PredictionPowered(
        estimate=estimate,
        classical=classical,
        cheap_mean=cheap_mean,
        weight=used,
        labelled=len(dear),
        unlabelled=len(others),
        fixed_variance=math.fsum(of_traffic) / sums.weight**2,
    )


def _weights_of(values: Iterable[float] | None, *, name: str, count: int) -> list[float]:
    if values is None:
        return [1.0] * count
    given = list(values)
    return numbers_of(given, name=name, bounds=(1.0, math.inf)) if given else []
