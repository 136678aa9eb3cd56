"""How good a judge is: agreement on categories, and ranking by its scores."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from random import Random

from ragaliq.errors import DatasetError
from ragaliq.statistics.checks import labelled, labels_of, require_count, require_same_length
from ragaliq.statistics.intervals import Estimate, binomial_cdf, middle_of, normal_quantile, wilson


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """How often each true category was taken for each.

    Attributes:
        categories: In sorted order, true and predicted ones together.
        counts: `counts[true, predicted]`; pairs that never occur are skipped.
        n: Number of items.
    """

    categories: tuple[Hashable, ...]
    counts: Mapping[tuple[Hashable, Hashable], int]
    n: int

    @property
    def accuracy(self) -> float:
        """Share of items whose category was met."""
        return sum(self.counts.get((c, c), 0) for c in self.categories) / self.n

    @property
    def recalls(self) -> Mapping[Hashable, float]:
        """Share met of each category that truly occurs."""
        truth = self.margin(0)
        return {c: self.counts.get((c, c), 0) / truth[c] for c in self.categories if truth[c]}

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall over the categories that truly occur (Brodersen et al. 2010, ICPR)."""
        recalls = self.recalls.values()
        return math.fsum(recalls) / len(recalls)

    @property
    def macro_f1(self) -> float:
        """Mean of the categories' F1, 2 tp / (2 tp + fp + fn).

        The "averaged F1" of Opitz & Burst 2019, arXiv 1911.03347. A category that was predicted
        but never true counts with 0.
        """
        truth, predicted = self.margin(0), self.margin(1)
        return math.fsum(
            2.0 * self.counts.get((c, c), 0) / (truth[c] + predicted[c]) for c in self.categories
        ) / len(self.categories)

    def margin(self, side: int) -> Counter[Hashable]:
        """How often each category occurs: truly (side 0) or as predicted (side 1)."""
        totals: Counter[Hashable] = Counter()
        for pair, count in self.counts.items():
            totals[pair[side]] += count
        return totals


def confusion(truth: Sequence[Hashable], predicted: Sequence[Hashable]) -> Confusion:
    """Count true against predicted categories."""
    require_same_length(truth=truth, predicted=predicted)
    if not truth:
        raise DatasetError("truth: no items; at least one is needed")
    counts = Counter(zip(truth, predicted, strict=True))
    categories = sorted({*truth, *predicted}, key=lambda c: (type(c).__name__, str(c)))
    return Confusion(categories=tuple(categories), counts=dict(counts), n=len(truth))


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> Estimate | None:
    """Cohen's kappa: agreement beyond what the two margins give by chance (Cohen 1960).

    The interval is normal with the large-sample variance of Fleiss, Cohen & Everitt 1969,
    Psychological Bulletin 72(5) (`fleiss_cohen_everitt`). With agreement on every item that
    variance is 0; the interval then follows from Wilson's for the agreement, the agreement by
    chance taken as known (`wilson_agreement`).

    Returns:
        None where both always name the same single category: chance alone explains everything.
    """
    table = confusion(first, second)
    rows, columns = (
        {category: count / table.n for category, count in table.margin(side).items()}
        for side in (0, 1)
    )
    observed = table.accuracy
    chance = math.fsum(rows.get(c, 0.0) * columns.get(c, 0.0) for c in table.categories)
    if chance >= 1.0:
        return None
    kappa = (observed - chance) / (1.0 - chance)
    if observed == 1.0:
        low = (wilson(1.0, n=table.n)[0] - chance) / (1.0 - chance)
        high, method = 1.0, "wilson_agreement"
    else:
        variance = _kappa_variance(table, rows, columns, kappa, chance)
        reach = normal_quantile(0.975) * math.sqrt(variance)
        low, high, method = kappa - reach, kappa + reach, "fleiss_cohen_everitt"
    return Estimate(
        value=kappa,
        low=max(-1.0, low),
        high=min(1.0, high),
        method=method,
        n=table.n,
        effective_n=table.n,
    )


def _kappa_variance(
    table: Confusion,
    rows: Mapping[Hashable, float],
    columns: Mapping[Hashable, float],
    kappa: float,
    chance: float,
) -> float:
    """Equation 13 of Fleiss, Cohen & Everitt 1969."""
    agreed = spread = 0.0
    for (one, other), count in table.counts.items():
        share = count / table.n
        if one == other:
            both = rows[one] + columns[one]
            agreed += share * (1.0 - both * (1.0 - kappa)) ** 2
        else:
            spread += share * (columns.get(one, 0.0) + rows.get(other, 0.0)) ** 2
    rest = (kappa - chance * (1.0 - kappa)) ** 2
    variance = agreed + (1.0 - kappa) ** 2 * spread - rest
    return max(0.0, variance) / (table.n * (1.0 - chance) ** 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class McNemar:
    """Whether one judge is right more often than the other on the same items.

    Attributes:
        only_first: Items only the first judge has right.
        only_second: Items only the second judge has right.
        exact_p: Two-sided exact binomial p-value (McNemar 1947, Psychometrika 12(2)).
        mid_p: The mid-p value, nearer to the nominal level (Fagerland, Lydersen & Laake 2013,
            BMC Medical Research Methodology 13:91).
    """

    only_first: int
    only_second: int
    exact_p: float
    mid_p: float


def mcnemar(first_right: Sequence[float], second_right: Sequence[float]) -> McNemar:
    """McNemar's test of two judges, item by item.

    Args:
        first_right: 1 where the first judge was right, else 0.
        second_right: The same of the second judge.
    """
    first = labels_of(first_right, name="first_right")
    second = labels_of(second_right, name="second_right")
    require_same_length(first_right=first, second_right=second)
    pairs = Counter(zip(first, second, strict=True))
    one, other = pairs[True, False], pairs[False, True]
    trials, least = one + other, min(one, other)
    if not trials:
        return McNemar(only_first=0, only_second=0, exact_p=1.0, mid_p=1.0)
    below = binomial_cdf(least, trials=trials, probability=0.5)
    point = below - binomial_cdf(least - 1, trials=trials, probability=0.5)
    return McNemar(
        only_first=one,
        only_second=other,
        exact_p=min(1.0, 2.0 * below),
        mid_p=min(1.0, 2.0 * below - point),
    )


# Ranking.

_MOST_TO_RESAMPLE = 2000


def auroc(scores: Sequence[float], labels: Sequence[float]) -> float:
    """The chance that an item with label 1 scores above one with label 0; ties count half.

    Computed from midranks (Mann & Whitney 1947; Hanley & McNeil 1982, Radiology 143(1)).
    """
    positive, negative = _classes(scores, labels)
    placements = _placements(positive, sorted(negative))
    return math.fsum(placements) / len(positive)


def auroc_estimate(
    scores: Sequence[float],
    labels: Sequence[float],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> Estimate:
    """The AUROC with its 95 % interval.

    Up to 2,000 items it is the percentile bootstrap, which draws within each class, so that none is
    ever empty; beyond, where both agree and resampling takes minutes, the normal interval with the
    variance of DeLong, DeLong & Clarke-Pearson 1988, Biometrics 44(3). Where the classes are
    apart altogether neither sees any spread, and Wilson's interval with the smaller class as
    number of cases is taken: the variance is at most A (1 - A) / min(m, n) (Birnbaum & Klose 1957,
    Annals of Mathematical Statistics 28(4)).
    """
    require_count(resamples, name="resamples", least=100)
    positive, negative = _classes(scores, labels)
    area = math.fsum(_placements(positive, sorted(negative))) / len(positive)
    if area in (0.0, 1.0):
        method = "wilson_smaller_class"
        low, high = wilson(area, n=min(len(positive), len(negative)))
    elif len(scores) > _MOST_TO_RESAMPLE:
        method = "delong"
        reach = normal_quantile(0.975) * math.sqrt(_delong_variance(positive, negative, area))
        low, high = area - reach, area + reach
    else:
        method = "percentile_bootstrap"
        low, high = middle_of(_resampled(positive, negative, resamples, seed))
    return Estimate(
        value=area,
        low=max(0.0, low),
        high=min(1.0, high),
        method=method,
        n=len(scores),
        effective_n=len(scores),
    )


def _classes(scores: Sequence[float], labels: Sequence[float]) -> tuple[list[float], list[float]]:
    pairs = labelled(scores, labels)
    positive = [score for score, label in pairs if label]
    negative = [score for score, label in pairs if not label]
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


def _delong_variance(positive: Sequence[float], negative: Sequence[float], area: float) -> float:
    variance = 0.0
    for values, others in ((positive, negative), (negative, positive)):
        shares = _placements(values, sorted(others))
        middle = math.fsum(shares) / len(shares)
        squares = math.fsum((share - middle) ** 2 for share in shares)
        # A class of one shows no spread of its own; the widest possible takes its place.
        n = len(values)
        variance += squares / (n - 1) / n if n > 1 else area * (1.0 - area)
    return variance


def _resampled(
    positive: Sequence[float], negative: Sequence[float], resamples: int, seed: int
) -> Iterator[float]:
    random = Random(seed)  # noqa: S311 - resampling, not secrets
    for _ in range(resamples):
        ordered = sorted(random.choices(negative, k=len(negative)))
        drawn = random.choices(positive, k=len(positive))
        yield math.fsum(_placements(drawn, ordered)) / len(drawn)


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
    """
    points, decided, wrong = [], 0, 0
    pairs = labelled(confidences, right, name="confidences", labels_name="right")
    ranked = sorted(pairs, key=lambda item: -item[0])
    for threshold, group in groupby(ranked, key=lambda item: item[0]):
        outcomes = [hit for _, hit in group]
        decided += len(outcomes)
        wrong += outcomes.count(False)
        points.append(
            RiskPoint(threshold=threshold, coverage=decided / len(ranked), risk=wrong / decided)
        )
    return points
