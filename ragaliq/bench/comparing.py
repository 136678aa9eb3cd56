"""Two judges on the same labelled claims: which is better, and is that more than chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ragaliq.bench.figures import balanced_accuracy, ranking
from ragaliq.bench.judged import JudgedClaim
from ragaliq.bench.result import JudgeBench
from ragaliq.errors import DatasetError
from ragaliq.statistics import Estimate, McNemar, mcnemar, paired_difference, percentile_interval

__all__ = ["JudgeComparison", "compare_benches"]

_RESAMPLES = 1000
_RESAMPLED_ROWS = 400_000

Pair = tuple[JudgedClaim, JudgedClaim]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeComparison:
    """The second judge against the first, over the claims that both decided.

    Attributes:
        pairs: Number of those claims.
        left_out: Claims that only one has, or on which one failed.
        mcnemar: Whether one is right more often.
        accuracy: Difference of the shares that are right, second minus first.
        balanced_accuracy: Difference of the balanced accuracies; None with one kind of label.
        auroc: Difference of the AUROCs; None with one kind of label.
    """

    pairs: int
    left_out: int
    mcnemar: McNemar
    accuracy: Estimate
    balanced_accuracy: Estimate | None
    auroc: Estimate | None


def compare_benches(first: JudgeBench, second: JudgeBench, *, seed: int = 0) -> JudgeComparison:
    """Compare claim by claim, so that what makes a claim hard for both cancels out.

    Raises:
        DatasetError: The benches share no claim that both decided, or their labels differ.
    """
    one, other = _decided(first), _decided(second)
    pairs = [(one[key], other[key]) for key in sorted(one.keys() & other.keys())]
    if not pairs:
        raise DatasetError("the two benches share no claim that both judges decided")
    for a, b in pairs:
        if (a.is_supported, a.cluster) != (b.is_supported, b.cluster):
            raise DatasetError(
                f"claim {a.id!r} has another label or context in the other bench; compare benches "
                "over the same data"
            )
    right = _right(pairs)
    everything = {row.id for row in first.judged} | {row.id for row in second.judged}
    return JudgeComparison(
        pairs=len(pairs),
        left_out=len(everything) - len(pairs),
        mcnemar=mcnemar(*right),
        accuracy=_accuracy_difference(pairs, seed),
        balanced_accuracy=_difference(pairs, balanced_accuracy, seed),
        auroc=_difference(pairs, ranking, seed),
    )


def _decided(bench: JudgeBench) -> dict[str, JudgedClaim]:
    return {row.id: row for row in bench.judged if row.failure is None}


def _right(pairs: Sequence[Pair]) -> list[list[float]]:
    return [[float(row.is_right) for row in side] for side in zip(*pairs, strict=True)]


def _accuracy_difference(pairs: Sequence[Pair], seed: int) -> Estimate:
    if len({a.cluster for a, _ in pairs}) < len(pairs):
        # Claims over one context are not independent: taken one by one they promise too much.
        found = _difference(pairs, _accuracy, seed)
        if found is not None and found.low < found.high:
            return found
    return paired_difference(*_right(pairs), seed=seed).difference


def _accuracy(rows: Sequence[JudgedClaim]) -> float:
    return sum(row.is_right for row in rows) / len(rows)


def _difference(
    pairs: Sequence[Pair], figure: Callable[[Sequence[JudgedClaim]], float | None], seed: int
) -> Estimate | None:
    def difference(some: Sequence[Pair]) -> float | None:
        first, second = figure([a for a, _ in some]), figure([b for _, b in some])
        return None if first is None or second is None else second - first

    value = difference(pairs)
    clusters = [a.cluster for a, _ in pairs]
    contexts = len(set(clusters))
    if value is None or contexts < 2:
        return None
    # Both judges are resampled together: drawn apart, the interval would be far too wide.
    low, high = percentile_interval(
        pairs,
        difference,
        clusters=clusters,
        resamples=max(100, min(_RESAMPLES, _RESAMPLED_ROWS // len(pairs))),
        seed=seed,
    )
    return Estimate(
        value=value,
        low=low,
        high=high,
        method="paired_percentile_bootstrap",
        n=len(pairs),
        effective_n=contexts,
    )
