"""Goals: figures that a job's results must reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

from ragaliq.core.checks import did_you_mean
from ragaliq.errors import ConfigurationError
from ragaliq.evaluators.registry import list_evaluators
from ragaliq.records.summary import TOLERANCE, Summary
from ragaliq.reports.wording import decimals_apart


class Goal(NamedTuple):
    """Goal: a mean that a metric must reach, or the share of answers that must pass.

    Attributes:
        metric: Name of the metric; empty for the share of passing answers.
        least: The mean or the share, 0 to 1; for a metric where a low score is good, the highest
            mean.
    """

    metric: str
    least: float

    @classmethod
    def of(cls, given: str | float | Goal, metrics: Sequence[str], *, option: str) -> Self:
        """Parse a goal: `METRIC=MEAN` or a share.

        Args:
            given: The goal.
            metrics: Names of the metrics.
            option: Name of the user's option, for messages.

        Raises:
            ConfigurationError: It is not a valid goal, or its metric is not evaluated.
        """
        text = given.text if isinstance(given, Goal) else str(given)
        metric, _, number = text.rpartition("=")
        try:
            least = float(number)
        except ValueError:
            least = -1.0
        if not 0.0 <= least <= 1.0:
            raise ConfigurationError(
                f"{option} {text!r}: write it as METRIC=MEAN, with a mean within [0, 1], or as "
                "the share of answers that must pass, such as 0.9"
            )
        if metric and metric not in metrics and metric not in list_evaluators():
            hint = did_you_mean(metric, {*metrics, *list_evaluators()})
            raise ConfigurationError(
                f"{option} {text!r}: no metric {metric!r}{hint}; measured are {', '.join(metrics)}"
            )
        if metric and metric not in metrics:
            names = [*metrics, metric]
            how = f"--metrics {','.join(names)}" if option.startswith("--") else f"metrics={names}"
            raise ConfigurationError(
                f"{option} {text!r}: {metric} is not measured; measure it by {how}"
            )
        return cls(metric, least)

    @property
    def text(self) -> str:
        """Goal as the user writes it: `faithfulness=0.8` or `0.9`."""
        return f"{self.metric}={self.least:g}" if self.metric else f"{self.least:g}"

    def problem(self, summary: Summary) -> str:
        """Problem in words; empty if the goal is reached.

        A metric without a score does not reach its goal, nor do answers of which none was scored.
        """
        if not self.metric:
            passed, of = summary.passing
            is_reached = of > 0 and passed / of >= self.least - TOLERANCE
            asked = f"{passed:,} of {of:,} answers pass, asked for {self.least:g}"
            return "" if is_reached else asked
        found = summary.metrics.get(self.metric)
        if found is None or found.mean is None:
            return f"{self.metric} has no score at all; asked for a mean of {self.least:g}"
        side = "below" if found.higher_is_better else "above"
        short = self.least - found.mean if found.higher_is_better else found.mean - self.least
        if short <= TOLERANCE:
            return ""
        note = "" if found.higher_is_better else " (low is good)"
        decimals = decimals_apart(found.mean, self.least, least=4)
        return f"{self.metric} has a mean of {found.mean:.{decimals}f}, {side} {self.least:g}{note}"
