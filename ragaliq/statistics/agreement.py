"""How well two judges, or a judge and people, agree on categories."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from ragaliq.errors import DatasetError
from ragaliq.statistics.checks import labels_of, require_same_length, require_share
from ragaliq.statistics.distributions import binomial_cdf, normal_quantile
from ragaliq.statistics.estimates import Estimate
from ragaliq.statistics.interval_formulas import wilson

__all__ = ["Confusion", "McNemar", "cohen_kappa", "confusion", "mcnemar"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """How often each true category was taken for each.

    Attributes:
        categories: In sorted order, true and predicted ones together.
        counts: `counts[true, predicted]`; pairs that never occur are left out.
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
    """Count true against predicted categories.

    Raises:
        DatasetError: No items, or lengths that differ.
    """
    require_same_length(truth=truth, predicted=predicted)
    if not truth:
        raise DatasetError("truth: there are no items; at least one is needed")
    counts = Counter(zip(truth, predicted, strict=True))
    categories = sorted({*truth, *predicted}, key=lambda c: (type(c).__name__, str(c)))
    return Confusion(categories=tuple(categories), counts=dict(counts), n=len(truth))


def cohen_kappa(
    first: Sequence[Hashable], second: Sequence[Hashable], *, confidence: float = 0.95
) -> Estimate | None:
    """Cohen's kappa: agreement beyond what the two margins give by chance (Cohen 1960).

    The interval is normal with the large-sample variance of Fleiss, Cohen & Everitt 1969,
    Psychological Bulletin 72(5) (`fleiss_cohen_everitt`). With agreement on every item that
    variance is 0; the interval then follows from Wilson's for the agreement, the agreement by
    chance taken as known (`wilson_agreement`).

    Returns:
        None where both always name the same single category: chance alone explains everything.

    Raises:
        ConfigurationError: The confidence is out of range.
        DatasetError: No items, or lengths that differ.
    """
    require_share(confidence)
    table = confusion(first, second)
    rows, columns = _shares(table.margin(0), table.n), _shares(table.margin(1), table.n)
    observed = table.accuracy
    chance = math.fsum(rows.get(c, 0.0) * columns.get(c, 0.0) for c in table.categories)
    if chance >= 1.0:
        return None
    kappa = (observed - chance) / (1.0 - chance)
    variance = _kappa_variance(table, rows, columns, kappa, chance)
    if observed == 1.0:
        low = (wilson(1.0, n=table.n, confidence=confidence)[0] - chance) / (1.0 - chance)
        high, method = 1.0, "wilson_agreement"
    else:
        reach = normal_quantile(0.5 + confidence / 2.0) * math.sqrt(variance)
        low, high, method = kappa - reach, kappa + reach, "fleiss_cohen_everitt"
    return Estimate(
        value=kappa,
        low=max(-1.0, low),
        high=min(1.0, high),
        method=method,
        n=table.n,
        effective_n=table.n,
        confidence=confidence,
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


def _shares(counts: Mapping[Hashable, int], n: int) -> dict[Hashable, float]:
    return {category: count / n for category, count in counts.items()}


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

    Raises:
        DatasetError: No items, lengths that differ, or values other than 0 and 1.
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
