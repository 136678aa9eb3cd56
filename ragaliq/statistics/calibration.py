"""Whether confidences are probabilities, and maps fitted to labels that make them so."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby
from random import Random

from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.statistics.checks import labelled, require_count, require_same_length


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityBin:
    """Items of similar confidence.

    Attributes:
        low: The least confidence in the bin.
        high: The greatest.
        n: Number of items.
        confidence: Their mean confidence.
        share: Share of them with label 1, which a calibrated confidence meets.
    """

    low: float
    high: float
    n: int
    confidence: float
    share: float


def reliability_table(
    probabilities: Sequence[float], labels: Sequence[float], *, bins: int = 10
) -> list[ReliabilityBin]:
    """Mean confidence with the share of positives, in bins of about as many items each.

    Items of equal confidence are always in one bin.
    """
    require_count(bins, name="bins")
    pairs = _pairs(probabilities, labels)
    table: list[ReliabilityBin] = []
    end = 0
    for number in range(1, bins + 1):
        start, end = end, max(end, round(number * len(pairs) / bins))
        while 0 < end < len(pairs) and pairs[end][0] == pairs[end - 1][0]:
            end += 1
        if end > start:
            group = pairs[start:end]
            table.append(
                ReliabilityBin(
                    low=group[0][0],
                    high=group[-1][0],
                    n=len(group),
                    confidence=math.fsum(p for p, _ in group) / len(group),
                    share=sum(label for _, label in group) / len(group),
                )
            )
    return table


def _pairs(probabilities: Sequence[float], labels: Sequence[float]) -> list[tuple[float, bool]]:
    return sorted(labelled(probabilities, labels, name="probabilities", bounds=(0.0, 1.0)))


def expected_calibration_error(
    probabilities: Sequence[float], labels: Sequence[float], *, bins: int = 10
) -> float:
    """Mean distance between confidence and share of positives, weighted by the bins' sizes.

    Naeini, Cooper & Hauskrecht 2015, AAAI; bins of equal mass after Nguyen & O'Connor 2015, EMNLP.
    It grows with the number of bins and is above 0 by chance alone, so compare figures only at
    equal bins and similar numbers of items.
    """
    table = reliability_table(probabilities, labels, bins=bins)
    total = sum(row.n for row in table)
    return math.fsum(row.n * abs(row.confidence - row.share) for row in table) / total


def brier_score(probabilities: Sequence[float], labels: Sequence[float]) -> float:
    """Mean squared distance between confidence and label (Brier 1950)."""
    pairs = _pairs(probabilities, labels)
    return math.fsum((p - label) ** 2 for p, label in pairs) / len(pairs)


# Maps from a judge's scores to probabilities.

_MOST_NEWTON_STEPS = 100
_FLAT = 1e-10
_RIDGE = 1e-12


@dataclass(frozen=True, slots=True)
class PlattCalibrator:
    """A logistic curve: 1 / (1 + exp(-(slope * score + intercept)))."""

    slope: float
    intercept: float

    def __call__(self, score: float) -> float:
        """The probability of label 1 at this score."""
        return _logistic(self.slope * score + self.intercept)


@dataclass(frozen=True, slots=True)
class IsotonicCalibrator:
    """A rising curve through points, straight between them and level outside.

    Attributes:
        scores: Rising scores.
        probabilities: The probability of label 1 at each, never falling.
    """

    scores: tuple[float, ...]
    probabilities: tuple[float, ...]

    def __call__(self, score: float) -> float:
        """The probability of label 1 at this score."""
        place = bisect_right(self.scores, score)
        if place == 0:
            return self.probabilities[0]
        if place == len(self.scores):
            return self.probabilities[-1]
        left, right = self.scores[place - 1], self.scores[place]
        low, high = self.probabilities[place - 1], self.probabilities[place]
        return low + (high - low) * (score - left) / (right - left)


def fit_platt(scores: Sequence[float], labels: Sequence[float]) -> PlattCalibrator:
    """Platt scaling: logistic regression on the score with Platt's softened labels.

    Platt 1999, "Probabilistic outputs for support vector machines", section 2.2: the labels become
    (p + 1) / (p + 2) and 1 / (n + 2), p and n being the numbers of items of the classes, which
    keeps the curve finite where the classes are apart. Newton's method with halved steps, after
    Lin, Lin & Weng 2007, Machine Learning 68.
    """
    pairs = _both_classes(scores, labels)
    positive = sum(label for _, label in pairs)
    negative = len(pairs) - positive
    soft = {True: (positive + 1.0) / (positive + 2.0), False: 1.0 / (negative + 2.0)}
    points = [(score, soft[label]) for score, label in pairs]
    slope, intercept = 0.0, math.log((positive + 1.0) / (negative + 1.0))
    loss = _loss(points, slope, intercept)
    for _ in range(_MOST_NEWTON_STEPS):
        step = _newton_step(points, slope, intercept)
        if max(abs(step[0]), abs(step[1])) < _FLAT:
            break
        size = 1.0
        while size > _FLAT:
            tried = slope + size * step[0], intercept + size * step[1]
            if (new := _loss(points, *tried)) <= loss:
                (slope, intercept), loss = tried, new
                break
            size /= 2.0
        else:
            break
    return PlattCalibrator(slope, intercept)


def _newton_step(
    points: Sequence[tuple[float, float]], slope: float, intercept: float
) -> tuple[float, float]:
    by_slope = by_intercept = 0.0
    ss = si = ii = 0.0
    for score, target in points:
        p = _logistic(slope * score + intercept)
        curve = p * (1.0 - p)
        by_slope += (target - p) * score
        by_intercept += target - p
        ss += curve * score * score
        si += curve * score
        ii += curve
    # The ridge keeps the step finite where all scores are equal.
    ss, ii = ss + _RIDGE, ii + _RIDGE
    determinant = ss * ii - si * si
    if determinant <= 0.0:
        return 0.0, by_intercept / ii
    return (
        (ii * by_slope - si * by_intercept) / determinant,
        (ss * by_intercept - si * by_slope) / determinant,
    )


def _loss(points: Sequence[tuple[float, float]], slope: float, intercept: float) -> float:
    total = []
    for score, target in points:
        x = slope * score + intercept
        total.append(max(x, 0.0) - x * target + math.log1p(math.exp(-abs(x))))
    return math.fsum(total)


def _logistic(x: float) -> float:
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    power = math.exp(x)
    return power / (1.0 + power)


def fit_isotonic(scores: Sequence[float], labels: Sequence[float]) -> IsotonicCalibrator:
    """Isotonic regression: the rising curve nearest to the labels, in squares.

    Pool adjacent violators (Ayer et al. 1955, Annals of Mathematical Statistics 26(4)); for
    calibration Zadrozny & Elkan 2002, KDD. Needs more labels than Platt scaling, and gives
    probabilities of exactly 0 and 1 at the ends.
    """
    blocks: list[tuple[float, int, float, float]] = []  # sum of labels, items, first, last score
    for score, group in groupby(sorted(_both_classes(scores, labels)), key=lambda pair: pair[0]):
        hits = [label for _, label in group]
        blocks.append((float(sum(hits)), len(hits), score, score))
        while len(blocks) > 1:
            (before, count, first, _), (total, items, _, last) = blocks[-2:]
            if before * items < total * count:  # it rises
                break
            blocks[-2:] = [(before + total, count + items, first, last)]
    points: list[tuple[float, float]] = []
    for total, items, first, last in blocks:
        points.append((first, total / items))
        if last > first:
            points.append((last, total / items))
    return IsotonicCalibrator(tuple(x for x, _ in points), tuple(p for _, p in points))


def _both_classes(scores: Sequence[float], labels: Sequence[float]) -> list[tuple[float, bool]]:
    pairs = labelled(scores, labels)
    if len({label for _, label in pairs}) < 2:
        raise DatasetError("labels: all are the same; a calibration needs items of both classes")
    return pairs


def cross_validated(
    scores: Sequence[float],
    labels: Sequence[float],
    fit: Callable[[Sequence[float], Sequence[float]], Callable[[float], float]],
    *,
    folds: int = 5,
    groups: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> list[float]:
    """The probability of each item from a calibrator fitted without it.

    Figures such as the Brier score of these are honest; of a calibrator's own labels they are not.

    Args:
        scores: The judge's scores.
        labels: 0 or 1 each.
        fit: `fit_platt`, `fit_isotonic`, or another function of scores and labels.
        folds: Number of parts; each class is dealt out evenly over them.
        groups: What must not be torn apart, one an item, such as the answer a claim is from.
        seed: Of the order in which items, or groups, are dealt out.
    """
    require_count(folds, name="folds", least=2)
    pairs = _both_classes(scores, labels)
    names: Sequence[Hashable] = range(len(pairs)) if groups is None else groups
    require_same_length(labels=pairs, groups=names)
    # A group goes with the class of its first item: dealt out evenly as far as groups allow.
    first: dict[Hashable, bool] = {}
    for name, (_, label) in zip(names, pairs, strict=True):
        first.setdefault(name, label)
    if len(first) < folds:
        raise ConfigurationError(f"folds={folds} is more than the {len(first)} groups there are")
    order = list(first)
    Random(seed).shuffle(order)  # noqa: S311 - an order, not secrets
    order.sort(key=lambda name: first[name])
    fold_of = {name: position % folds for position, name in enumerate(order)}
    parts = [fold_of[name] for name in names]
    result = [0.0] * len(pairs)
    for fold in range(folds):
        kept = [pair for pair, part in zip(pairs, parts, strict=True) if part != fold]
        if len({label for _, label in kept}) < 2:
            raise ConfigurationError(
                f"folds={folds} leaves one class only to fit on; use fewer folds or more labels"
            )
        calibrator = fit([score for score, _ in kept], [label for _, label in kept])
        for position, part in enumerate(parts):
            if part == fold:
                result[position] = calibrator(pairs[position][0])
    return result
