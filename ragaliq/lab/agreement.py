"""Quality of a judge: agreement on categories, and ranking by its scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from ragaliq.errors import DatasetError
from ragaliq.lab.resampling import resampled_estimate
from ragaliq.statistics import Estimate

# Resampling computes each figure hundreds of times: a call of scikit-learn takes milliseconds,
# these functions microseconds. The tests compare the two.


def balanced_accuracy(truth: Sequence[Hashable], predicted: Sequence[Hashable]) -> float:
    """Mean recall over the categories that truly occur."""
    met = Counter(t for t, p in zip(truth, predicted, strict=True) if t == p)
    return fmean(met[category] / count for category, count in Counter(truth).items())


def macro_f1(truth: Sequence[Hashable], predicted: Sequence[Hashable]) -> float:
    """Mean F1 of the categories; one that was predicted but never true counts with 0."""
    met = Counter(t for t, p in zip(truth, predicted, strict=True) if t == p)
    either = Counter(truth) + Counter(predicted)
    return fmean(2.0 * met[category] / count for category, count in either.items())


def kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Cohen's kappa: agreement beyond what the two margins give by chance.

    None if both always name the same single category: chance alone explains the agreement.
    """
    n, one, other = len(first), Counter(first), Counter(second)
    agreed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    chance = sum(count * other[category] for category, count in one.items()) / n**2
    return None if chance == 1.0 else (agreed - chance) / (1.0 - chance)


def kappa_estimate(first: Sequence[Hashable], second: Sequence[Hashable]) -> Estimate | None:
    """Cohen's kappa with its 95 % interval, a bootstrap over the items."""
    pairs = list(zip(first, second, strict=True))
    return resampled_estimate(pairs, lambda some: kappa(*zip(*some, strict=True)), cases=len(pairs))


# Ranking.


def auroc(scores: Sequence[float], labels: Sequence[float]) -> float:
    """The chance that an item with label 1 scores above one with label 0; ties count half."""
    import numpy
    from scipy.stats import rankdata

    truth = numpy.asarray(labels) > 0
    positive = int(truth.sum())
    above = rankdata(scores)[truth].sum() - positive * (positive + 1) / 2
    return float(above / (positive * (len(truth) - positive)))


def auroc_estimate(scores: Sequence[float], labels: Sequence[float]) -> Estimate:
    """The AUROC with its 95 % interval, a bootstrap over the items.

    Raises:
        DatasetError: All labels are the same.
    """

    def area(some: Sequence[tuple[float, float]]) -> float | None:
        drawn, truth = zip(*some, strict=True)
        return auroc(drawn, truth) if len(set(truth)) == 2 else None

    positive = sum(label > 0 for label in labels)
    pairs = list(zip(scores, labels, strict=True))
    found = resampled_estimate(pairs, area, cases=min(positive, len(labels) - positive))
    if found is None:
        raise DatasetError("labels: all are the same; a ranking needs items of both classes")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskPoint:
    """Coverage and risk of a judge that decides only its surest items.

    Attributes:
        threshold: Least confidence of a decided item.
        coverage: Share of decided items.
        risk: Share of errors among the decided items.
    """

    threshold: float
    coverage: float
    risk: float


def risk_coverage(confidences: Sequence[float], right: Sequence[bool]) -> list[RiskPoint]:
    """The abstention curve, from the surest items alone to all of them.

    El-Yaniv & Wiener 2010, JMLR 11. Items of equal confidence are decided together, so the curve
    does not depend on the order of the items.

    Args:
        confidences: How sure the judge was of each item.
        right: Whether it was right.
    """
    points, decided, wrong = [], 0, 0
    ranked = sorted(zip(confidences, right, strict=True), key=lambda item: -item[0])
    for threshold, group in groupby(ranked, key=lambda item: item[0]):
        outcomes = [hit for _, hit in group]
        decided += len(outcomes)
        wrong += sum(not hit for hit in outcomes)
        points.append(
            RiskPoint(threshold=threshold, coverage=decided / len(ranked), risk=wrong / decided)
        )
    return points
