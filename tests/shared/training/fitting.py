"""Fit the support model. Plain Python: training needs nothing installed.

The model is a logistic regression with a ridge penalty (Hoerl and Kennard 1970), fitted by Newton's
method, whose weights may only have the sign that makes sense; the threshold is
where balanced accuracy is highest.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from ragaliq.judges.local.claim import WordFrequencies
from ragaliq.judges.local.verdict import Features, Parameters, examine
from training.data import FAMILIES, Data

# Summaries with a word changed: wording hardly tells them apart, so they have no say in where the
# threshold is put.
_NO_VOTE = ("summedits",)
# The sign a weight may have; 0 where either makes sense.
_SIGNS = Features(
    cover=1,
    run=1,
    missing_number=-1,
    miscounted=-1,
    missing_name=-1,
    missing_property=1,  # never fitted: the cap decides, and the threshold of other claims stays
    negation=-1,
    contradiction=-1,
    length=0,
)
_DIGITS = 4  # decimals of the weights in the file


def train(
    data: Data, sets: Sequence[str], frequencies: WordFrequencies
) -> tuple[Parameters, float]:
    """Fit the parameters, and the threshold of plain recall, on some of the sets."""
    samples: dict[str, list[Sample]] = {}
    recalls: dict[str, list[float]] = {}
    for name in sets:
        weights = _weights(data, name, sets)
        examined = [examine(row.claim, row.context, frequencies) for row in data[name]]
        recalls[name] = [match.window_cover for match, _, _ in examined]
        samples[name] = [
            Sample(tuple(features), row.label, weight)
            for row, weight, (_, _, features) in zip(data[name], weights, examined, strict=True)
        ]
    intercept, slopes = fit_logistic(
        [row for rows in samples.values() for row in rows], signs=tuple(_SIGNS)
    )
    scores = {
        name: [intercept + sum(map(float.__mul__, slopes, row.values)) for row in rows]
        for name, rows in samples.items()
    }
    # Moving the intercept makes 0.5 the threshold.
    shifted = round(intercept - _threshold(data, scores), _DIGITS)
    rounded = Features(*(round(slope, _DIGITS) for slope in slopes))
    return Parameters(frequencies, shifted, rounded), _threshold(data, recalls)


def _threshold(data: Data, scores: Mapping[str, Sequence[float]]) -> float:
    """Threshold: the median of the best thresholds of all sets.

    One for all pooled hangs on which set is steepest, and their mean on the set that differs most.
    """
    votes = [
        best_threshold(values, [row.label for row in data[name]])
        for name, values in scores.items()
        if name not in _NO_VOTE
    ]
    return median(votes)


def _weights(data: Data, name: str, sets: Sequence[str]) -> Iterator[float]:
    """Weights that make families equal, the sets of a family, and both labels of a set."""
    present = [
        members
        for names in FAMILIES.values()
        if (members := [member for member in names if member in sets])
    ]
    siblings = next(members for members in present if name in members)
    share = 1.0 / len(present) / len(siblings)
    positive = sum(row.label for row in data[name])
    for row in data[name]:
        yield share / 2 / (positive if row.label else len(data[name]) - positive)


# Logistic regression.

_RIDGE = 0.05
_STEPS = 25
_CUTS = 200  # thresholds tried
_SOFTNESS = 0.005  # balanced accuracy by which a threshold may fall short and still count


class Sample(NamedTuple):
    """One labelled claim.

    Attributes:
        values: Its features.
        label: 1 supported, 0 not.
        weight: How much it counts.
    """

    values: tuple[float, ...]
    label: int
    weight: float


def fit_logistic(samples: Sequence[Sample], *, signs: Sequence[float]) -> tuple[float, list[float]]:
    """Fit a logistic model.

    Args:
        samples: Labelled claims; their weights add up to about 1.
        signs: +1 or -1 a feature: the sign its weight may have; 0 for either.

    Returns:
        Intercept and a weight a feature; a feature whose weight would have the wrong sign gets 0.
    """
    active = list(range(len(signs)))
    means, scales = _moments(samples)
    while True:
        columns = [
            ([1.0, *((row.values[at] - means[at]) / scales[at] for at in active)], row)
            for row in samples
        ]
        solution = _newton(columns, 1 + len(active))
        wrong = [
            at for at, value in zip(active, solution[1:], strict=True) if value * signs[at] < 0
        ]
        if not wrong:
            break
        active = [at for at in active if at not in wrong]
    weights = [0.0] * len(signs)
    for at, value in zip(active, solution[1:], strict=True):
        weights[at] = value / scales[at]
    shift = sum(weight * mean for weight, mean in zip(weights, means, strict=True))
    return solution[0] - shift, weights


def _moments(samples: Sequence[Sample]) -> tuple[list[float], list[float]]:
    total = sum(row.weight for row in samples)
    means, scales = [], []
    for at in range(len(samples[0].values)):
        mean = sum(row.weight * row.values[at] for row in samples) / total
        spread = sum(row.weight * (row.values[at] - mean) ** 2 for row in samples) / total
        means.append(mean)
        scales.append(math.sqrt(spread) or 1.0)
    return means, scales


def _newton(columns: list[tuple[list[float], Sample]], size: int) -> list[float]:
    solution = [0.0] * size
    for _ in range(_STEPS):
        gradient = [_RIDGE * value for value in solution]
        gradient[0] = 0.0
        curvature = [
            [_RIDGE if row == column > 0 else 0.0 for column in range(size)] for row in range(size)
        ]
        for values, sample in columns:
            total = sum(map(float.__mul__, solution, values))
            chance = 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, total))))
            error = sample.weight * (chance - sample.label)
            bend = sample.weight * chance * (1.0 - chance) + 1e-12
            for row, value in enumerate(values):
                gradient[row] += error * value
                bent = bend * value
                line = curvature[row]
                for column in range(row + 1):
                    line[column] += bent * values[column]
        for row in range(size):
            for column in range(row):
                curvature[column][row] = curvature[row][column]
        step = _solve(curvature, gradient)
        solution = [value - change for value, change in zip(solution, step, strict=True)]
        if max(map(abs, step)) < 1e-9:
            break
    return solution


def _solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Gaussian elimination; the ridge keeps the matrix positive definite."""
    rows = [[*line, value] for line, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for pivot in range(size):
        for row in range(pivot + 1, size):
            factor = rows[row][pivot] / rows[pivot][pivot]
            rows[row] = [a - factor * b for a, b in zip(rows[row], rows[pivot], strict=True)]
    solution = [0.0] * size
    for row in reversed(range(size)):
        known = sum(rows[row][column] * solution[column] for column in range(row + 1, size))
        solution[row] = (rows[row][size] - known) / rows[row][row]
    return solution


def best_threshold(scores: Sequence[float], labels: Sequence[int]) -> float:
    """Threshold with the best balanced accuracy.

    Many thresholds are nearly as good as the best one, and which of them comes out on top is
    chance. So this is their mean, weighted by `exp((accuracy - best) / softness)`.
    """
    ordered = sorted(scores)
    low, high = ordered[len(ordered) // 100], ordered[-1 - len(ordered) // 100]
    cuts = [low + (high - low) * step / (_CUTS - 1) for step in range(_CUTS)]
    accepted = sorted(score for score, label in zip(scores, labels, strict=True) if label)
    rejected = sorted(score for score, label in zip(scores, labels, strict=True) if not label)
    reached = [
        (
            1
            - bisect_right(accepted, cut) / len(accepted)
            + bisect_right(rejected, cut) / len(rejected)
        )
        / 2
        for cut in cuts
    ]
    best = max(reached)
    shares = [math.exp((value - best) / _SOFTNESS) for value in reached]
    return sum(map(float.__mul__, shares, cuts)) / sum(shares)
