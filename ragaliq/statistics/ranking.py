"""How well a score ranks items with label 1 above items with label 0."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from random import Random
from typing import Literal

from ragaliq.errors import DatasetError
from ragaliq.statistics.bootstrap import quantile
from ragaliq.statistics.checks import (
    labels_of,
    numbers_of,
    require_choice,
    require_count,
    require_same_length,
    require_share,
)
from ragaliq.statistics.distributions import normal_quantile
from ragaliq.statistics.estimates import Estimate
from ragaliq.statistics.interval_formulas import wilson

__all__ = ["RiskPoint", "auroc", "auroc_estimate", "risk_coverage"]

_MOST_TO_RESAMPLE = 2000


def auroc(scores: Sequence[float], labels: Sequence[float]) -> float:
    """The chance that an item with label 1 scores above one with label 0; ties count half.

    Computed from midranks (Mann & Whitney 1947; Hanley & McNeil 1982, Radiology 143(1)).

    Raises:
        DatasetError: No items, lengths that differ, a score that is no number, or one class only.
    """
    positive, negative = _classes(scores, labels)
    placements = _placements(positive, sorted(negative))
    return math.fsum(placements) / len(positive)


def auroc_estimate(
    scores: Sequence[float],
    labels: Sequence[float],
    *,
    method: Literal["auto", "percentile_bootstrap", "delong"] = "auto",
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Estimate:
    """The AUROC with its interval.

    The bootstrap draws within each class, so that none is ever empty. `auto` takes it up to 2,000
    items and the normal interval with the variance of DeLong, DeLong & Clarke-Pearson 1988,
    Biometrics 44(3), beyond, where both agree and resampling takes minutes. Where the classes are
    apart altogether neither sees any spread, and Wilson's interval with the smaller class as
    number of cases is taken: the variance is at most A (1 - A) / min(m, n) (Birnbaum & Klose 1957,
    Annals of Mathematical Statistics 28(4)).

    Raises:
        ConfigurationError: A setting is out of range.
        DatasetError: No items, lengths that differ, a score that is no number, or one class only.
    """
    require_share(confidence)
    require_count(resamples, name="resamples", least=100)
    require_choice(method, name="method", choices=("auto", "percentile_bootstrap", "delong"))
    positive, negative = _classes(scores, labels)
    area = math.fsum(_placements(positive, sorted(negative))) / len(positive)
    if method == "auto":
        method = "delong" if len(scores) > _MOST_TO_RESAMPLE else "percentile_bootstrap"
    named: str = method
    if area in (0.0, 1.0):
        named = "wilson_smaller_class"
        fewer = min(len(positive), len(negative))
        low, high = wilson(area, n=fewer, confidence=confidence)
    elif method == "delong":
        low, high = _delong(positive, negative, area, confidence)
    else:
        low, high = _resampled(positive, negative, confidence, resamples, seed)
    return Estimate(
        value=area,
        low=max(0.0, low),
        high=min(1.0, high),
        method=named,
        n=len(scores),
        effective_n=len(scores),
        confidence=confidence,
    )


def _classes(scores: Sequence[float], labels: Sequence[float]) -> tuple[list[float], list[float]]:
    numbers, truth = numbers_of(scores, name="scores"), labels_of(labels)
    require_same_length(scores=numbers, labels=truth)
    positive = [score for score, label in zip(numbers, truth, strict=True) if label]
    negative = [score for score, label in zip(numbers, truth, strict=True) if not label]
    if not positive or not negative:
        raise DatasetError("labels: all are the same; a ranking needs items of both classes")
    return positive, negative


def _placements(values: Sequence[float], ordered: Sequence[float]) -> list[float]:
    """For each value the share of the ordered ones below it, equal ones counted half."""
    below: dict[float, float] = {}
    place = 0
    for value in sorted(set(values)):
        place = bisect_left(ordered, value, place)
        after = place
        while after < len(ordered) and ordered[after] == value:
            after += 1
        below[value] = (place + after) / 2.0 / len(ordered)
    return [below[value] for value in values]


def _delong(
    positive: Sequence[float], negative: Sequence[float], area: float, confidence: float
) -> tuple[float, float]:
    variance = 0.0
    for values, others in ((positive, negative), (negative, positive)):
        shares = _placements(values, sorted(others))
        middle = math.fsum(shares) / len(shares)
        squares = math.fsum((share - middle) ** 2 for share in shares)
        # A class of one shows no spread of its own; the widest possible stands in for it.
        n = len(values)
        variance += squares / (n - 1) / n if n > 1 else area * (1.0 - area)
    reach = normal_quantile(0.5 + confidence / 2.0) * math.sqrt(variance)
    return area - reach, area + reach


def _resampled(
    positive: Sequence[float],
    negative: Sequence[float],
    confidence: float,
    resamples: int,
    seed: int,
) -> tuple[float, float]:
    random = Random(seed)  # noqa: S311 - resampling, not secrets
    areas = []
    for _ in range(resamples):
        ordered = sorted(random.choices(negative, k=len(negative)))
        drawn = random.choices(positive, k=len(positive))
        areas.append(math.fsum(_placements(drawn, ordered)) / len(drawn))
    areas.sort()
    tail = (1.0 - confidence) / 2.0
    return quantile(areas, tail), quantile(areas, 1.0 - tail)


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskPoint:
    """What happens when a judge decides only what it is surest of.

    Attributes:
        threshold: The least confidence that is decided.
        coverage: Share of the items decided.
        risk: Share of errors among those.
    """

    threshold: float
    coverage: float
    risk: float


def risk_coverage(confidences: Sequence[float], right: Sequence[float]) -> list[RiskPoint]:
    """The abstention curve, from the surest items alone to all of them.

    El-Yaniv & Wiener 2010, JMLR 11. Items of equal confidence are decided together, so the curve
    does not depend on the order of the items.

    Args:
        confidences: How sure the judge was of each item.
        right: 1 where it was right, else 0.

    Raises:
        DatasetError: No items, lengths that differ, or values out of range.
    """
    numbers = numbers_of(confidences, name="confidences")
    truth = labels_of(right, name="right")
    require_same_length(confidences=numbers, right=truth)
    points, decided, wrong = [], 0, 0
    ranked = sorted(zip(numbers, truth, strict=True), key=lambda item: -item[0])
    for threshold, group in groupby(ranked, key=lambda item: item[0]):
        outcomes = [hit for _, hit in group]
        decided += len(outcomes)
        wrong += outcomes.count(False)
        points.append(
            RiskPoint(threshold=threshold, coverage=decided / len(ranked), risk=wrong / decided)
        )
    return points
