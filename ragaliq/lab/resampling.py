"""The bootstrap: 95 % intervals for figures without a formula."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from ragaliq.errors import DatasetError
from ragaliq.statistics import Estimate, wilson

Item = TypeVar("Item")

RESAMPLES = 400
_FEWEST = 10


def percentile_interval(
    rows: Sequence[Item],
    statistic: Callable[[Sequence[Item]], float | None],
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int | None = None,
) -> tuple[float, float]:
    """The 95 % percentile interval of any figure of the rows.

    Args:
        rows: What was observed.
        statistic: The figure of a resample; None if a resample does not define it, such as one with
            a single class, which is then ignored.
        clusters: Cluster of each row, such as the answer of a claim; whole clusters are drawn,
            since claims of one answer are not independent.
        resamples: Number of resamples; by default `RESAMPLES`.

    Raises:
        DatasetError: The figure is defined on too few resamples.
    """
    import numpy

    units: dict[Hashable, list[Item]] = {}
    for row, cluster in zip(rows, range(len(rows)) if clusters is None else clusters, strict=True):
        units.setdefault(cluster, []).append(row)
    drawable = list(units.values())
    if len(drawable) < 2:
        raise DatasetError("an interval needs at least two rows or clusters to resample")

    random = numpy.random.default_rng(0)
    figures = []
    for _ in range(resamples or RESAMPLES):
        drawn = random.integers(len(drawable), size=len(drawable))
        value = statistic([row for place in drawn for row in drawable[place]])
        if value is not None:
            figures.append(value)
    if len(figures) < _FEWEST:
        raise DatasetError(
            "the figure is not defined on nearly all resamples: there are too few rows of a kind"
        )
    low, high = numpy.quantile(figures, (0.025, 0.975))
    return float(low), float(high)


def resampled_estimate(
    rows: Sequence[Item],
    statistic: Callable[[Sequence[Item]], float | None],
    *,
    cases: int,
    clusters: Sequence[Hashable] | None = None,
) -> Estimate | None:
    """A figure with its interval; None where the rows do not define it.

    If all resamples are equal, Wilson's interval with `cases` as number of cases is used: the
    bootstrap would give an interval of width 0.
    """
    value = statistic(rows) if rows else None
    if value is None:
        return None
    units = len(rows) if clusters is None else len(set(clusters))
    method, low, high = "percentile_bootstrap", value, value
    if units > 1:
        low, high = percentile_interval(rows, statistic, clusters=clusters)
    if high - low < 1e-9 and 0.0 <= value <= 1.0:
        (low, high), method = wilson(value, n=max(1, min(cases, units))), "wilson"
    return Estimate(value=value, low=low, high=high, method=method, n=len(rows), effective_n=units)
