"""`--fail-under METRIC=MEAN`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from ragaliq.errors import ConfigurationError
from ragaliq.records.summary import TOLERANCE, Summary

__all__ = ["Goal", "missed"]


@dataclass(frozen=True)
class Goal:
    """A mean that a metric must reach."""

    metric: str
    mean: float

    @classmethod
    def of(cls, text: str, metrics: Sequence[str]) -> Self:
        """Read `METRIC=MEAN`.

        Raises:
            ConfigurationError: It is something else, or the metric is not measured.
        """
        metric, _, number = text.partition("=")
        try:
            mean = float(number)
        except ValueError:
            mean = -1.0
        if not 0.0 <= mean <= 1.0:
            raise ConfigurationError(
                f"--fail-under {text!r}: write it as METRIC=MEAN, with a mean within [0, 1]"
            )
        if metric not in metrics:
            raise ConfigurationError(
                f"--fail-under {text!r}: {metric} is not measured; --metrics has "
                f"{', '.join(metrics)}"
            )
        return cls(metric, mean)


def missed(goal: Goal, summary: Summary) -> str:
    """What is wrong, or an empty text where the goal is reached.

    A metric without a single score has not reached anything.
    """
    found = summary.metrics.get(goal.metric)
    if found is None or found.mean is None:
        return f"{goal.metric} has no score at all; asked for a mean of {goal.mean:g}"
    if found.mean >= goal.mean - TOLERANCE:
        return ""
    return f"{goal.metric} has a mean of {found.mean:.4f}, below {goal.mean:g}"
