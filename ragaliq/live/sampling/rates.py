"""The rate of each metric in each pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragaliq.live.sampling.choice import Choice
from ragaliq.live.sampling.settings import Sampling

__all__ = ["PipelineRates", "Rates"]


class PipelineRates:
    """The rates of all metrics in one pipeline.

    Attributes:
        by_metric: Each metric's rate.
        highest: The highest of them: the chance of a run of being evaluated at all.
        is_certain: Whether every run is evaluated with every metric, or none with any.
        shared_choice: What is decided about every run the rate chooses, where all metrics have one
            rate and nothing but the rate decides.
    """

    __slots__ = ("by_metric", "highest", "is_certain", "shared_choice")

    def __init__(self, by_metric: Mapping[str, float]) -> None:
        self.by_metric = dict(by_metric)
        self.highest = max(by_metric.values())
        is_shared = self.highest == min(by_metric.values()) > 0
        self.shared_choice = (
            Choice(probability=self.highest, metrics=self.by_metric) if is_shared else None
        )
        self.is_certain = not self.highest or min(by_metric.values()) == 1.0


class Rates:
    """Looks a pipeline's rates up; made once, since every run asks.

    Attributes:
        everywhere: The rates of all pipelines, where none has its own.

    Args:
        sampling: What the application said.
        general: The rate where it said nothing.
        metrics: The names of all metrics.
    """

    def __init__(self, sampling: Sampling, *, general: float, metrics: Sequence[str]) -> None:
        own = sampling.evaluators
        self._others = PipelineRates({name: own.get(name, general) for name in metrics})
        self._named = {
            pipeline: PipelineRates({name: min(rate, own.get(name, rate)) for name in metrics})
            for pipeline, rate in sampling.pipelines.items()
        }
        self.everywhere = None if self._named else self._others

    def of(self, pipeline: str) -> PipelineRates:
        """The rates in this pipeline."""
        return self._named.get(pipeline, self._others)
