"""Two runs over the same cases: how far the scores moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragaliq.statistics.checks import Bounds, numbers_of, require_same_length
from ragaliq.statistics.estimates import Estimate
from ragaliq.statistics.intervals import IntervalMethod, mean_estimate

__all__ = ["PairedDifference", "paired_difference"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """The mean change from the first scores to the second, case by case.

    Attributes:
        difference: Mean of `second - first` with its interval.
        higher: Cases that score higher the second time.
        lower: Cases that score lower.
        equal: Cases that score the same.
    """

    difference: Estimate
    higher: int
    lower: int
    equal: int

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.difference.low > 0.0 or self.difference.high < 0.0


def paired_difference(
    first: Sequence[float],
    second: Sequence[float],
    *,
    bounds: Bounds = (0.0, 1.0),
    method: IntervalMethod = "auto",
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> PairedDifference:
    """The mean difference of scores of the same cases, in the same order.

    Cases are resampled as pairs (Efron & Tibshirani 1993, section 14.3, BCa), so what makes a case
    hard in both runs cancels out. `auto` takes Student's t where there are too few or too many
    cases to resample (`mean_estimate`); where all differences are equal the interval is
    `unseen_share`.

    Raises:
        ConfigurationError: A setting is out of range.
        DatasetError: No cases, lengths that differ, or a score out of range.
    """
    before = numbers_of(first, name="first", bounds=bounds)
    after = numbers_of(second, name="second", bounds=bounds)
    require_same_length(first=before, second=after)
    changes = [b - a for a, b in zip(before, after, strict=True)]
    reach = bounds[1] - bounds[0]
    return PairedDifference(
        difference=mean_estimate(
            changes,
            bounds=(-reach, reach),
            method=method,
            confidence=confidence,
            resamples=resamples,
            seed=seed,
        ),
        higher=sum(change > 0.0 for change in changes),
        lower=sum(change < 0.0 for change in changes),
        equal=sum(change == 0.0 for change in changes),
    )
