"""Calibration curves: how well confidences match labels, and corrections."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from ragaliq.judges.calibration import IsotonicCalibrator, PlattCalibrator

Curve = PlattCalibrator | IsotonicCalibrator


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


_BINS = 10
FOLDS = 5


def reliability_table(
    probabilities: Sequence[float], labels: Sequence[float]
) -> list[ReliabilityBin]:
    """Mean confidence with the share of positives, in ten bins of about as many items each.

    Items of equal confidence are always in one bin, so the table does not depend on their order.
    """
    pairs = sorted(zip(probabilities, labels, strict=True))
    table: list[ReliabilityBin] = []
    end = 0
    for number in range(1, _BINS + 1):
        start, end = end, max(end, round(number * len(pairs) / _BINS))
        while 0 < end < len(pairs) and pairs[end][0] == pairs[end - 1][0]:
            end += 1
        if group := pairs[start:end]:
            table.append(
                ReliabilityBin(
                    low=group[0][0],
                    high=group[-1][0],
                    n=len(group),
                    confidence=sum(p for p, _ in group) / len(group),
                    share=sum(label for _, label in group) / len(group),
                )
            )
    return table


def expected_calibration_error(probabilities: Sequence[float], labels: Sequence[float]) -> float:
    """Mean distance between confidence and share of positives, weighted by the bins' sizes.

    Naeini, Cooper & Hauskrecht 2015, AAAI; bins of equal mass after Nguyen & O'Connor 2015, EMNLP.
    It is above 0 by chance alone, so compare figures only at similar numbers of items.
    """
    table = reliability_table(probabilities, labels)
    return sum(row.n * abs(row.confidence - row.share) for row in table) / len(labels)


def brier_score(probabilities: Sequence[float], labels: Sequence[float]) -> float:
    """Mean squared distance between confidence and label (Brier 1950)."""
    from sklearn.metrics import brier_score_loss

    return float(brier_score_loss(labels, probabilities, pos_label=1))


def fit_platt(scores: Sequence[float], labels: Sequence[float]) -> PlattCalibrator:
    """Platt scaling: logistic regression on the score with Platt's softened labels.

    Platt 1999, "Probabilistic outputs for support vector machines", section 2.2: the labels become
    (p + 1) / (p + 2) and 1 / (n + 2), p and n being the numbers of items of the classes, which
    keeps the curve finite where the classes are apart. A soft label is two items with weights.
    """
    import numpy
    from sklearn.linear_model import LogisticRegression

    truth = numpy.asarray(labels, float)
    positive, n = truth.sum(), len(truth)
    soft = numpy.where(truth > 0, (positive + 1.0) / (positive + 2.0), 1.0 / (n - positive + 2.0))
    found = LogisticRegression(C=numpy.inf, solver="newton-cholesky", tol=1e-10).fit(
        numpy.tile(numpy.asarray(scores, float), 2)[:, None],
        numpy.repeat([1, 0], n),
        sample_weight=numpy.concatenate([soft, 1.0 - soft]),
    )
    # The last digits depend on how the machine adds up; the same labels give the same curve.
    slope, intercept = (round(float(each), 9) for each in (found.coef_[0, 0], found.intercept_[0]))
    return PlattCalibrator(slope=slope, intercept=intercept)


def fit_isotonic(scores: Sequence[float], labels: Sequence[float]) -> IsotonicCalibrator:
    """Isotonic regression: the rising curve nearest to the labels, in squares.

    For calibration Zadrozny & Elkan 2002, KDD. Needs more labels than Platt scaling, and gives
    probabilities of exactly 0 and 1 at the ends.
    """
    from sklearn.isotonic import IsotonicRegression

    found = IsotonicRegression().fit(scores, labels)
    return IsotonicCalibrator(
        scores=tuple(map(float, found.X_thresholds_)),
        probabilities=tuple(map(float, found.y_thresholds_)),
    )


def cross_validated(
    scores: Sequence[float],
    labels: Sequence[float],
    fit: Callable[[Sequence[float], Sequence[float]], Curve],
    *,
    groups: Sequence[Hashable] | None,
) -> list[float]:
    """The probability of each item from a curve fitted without it and its fifth of the items.

    Figures such as the Brier score of these are honest; of a curve's own labels they are not.

    Args:
        scores: The judge's scores.
        labels: 0 or 1 each.
        fit: `fit_platt` or `fit_isotonic`.
        groups: What must not be torn apart, one an item, such as the answer a claim is from.
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    parts = kind(n_splits=FOLDS, shuffle=True, random_state=0)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(groups or ()))}
    names = None if groups is None else [numbers[name] for name in groups]
    result = [0.0] * len(labels)
    for kept, left_out in parts.split([[each] for each in scores], labels, names):
        curve = fit([scores[place] for place in kept], [labels[place] for place in kept])
        for place in left_out:
            result[place] = curve(scores[place])
    return result
