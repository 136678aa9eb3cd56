"""All traffic by a cheap judge, a sample by an expensive one: one estimate from both."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Lock

from ragaliq.errors import ConfigurationError
from ragaliq.live.estimate import OTHER_PIPELINES, ScoredRun
from ragaliq.statistics.checks import require_choice, require_count, require_share
from ragaliq.statistics.sampling import PairedSums, PredictionPowered, Target, powered

__all__ = ["TwoJudgeEstimate", "TwoJudgeEstimator", "estimate_with_two_judges"]

_Key = tuple[str, str]
_Waiting = tuple[float, float]  # score, probability


@dataclass(frozen=True, kw_only=True)
class TwoJudgeEstimate:
    """One metric of one pipeline, the expensive judge's mean over all traffic.

    Attributes:
        pipeline: The application's name for the chain.
        metric: The metric's name.
        powered: The prediction-powered mean, and the one without the cheap scores; None where no
            run was scored by both.
        cheap_only: Runs with a score by the cheap judge alone.
        expensive_only: Runs with a score by the expensive judge alone; they cannot be used. Many
            of them mean that results arrive too far apart for `max_waiting`, or that the cheap
            judge cannot score what the other can.
        expensive_failures: Runs in which the expensive judge refused, failed or took too long.
    """

    pipeline: str
    metric: str
    powered: PredictionPowered | None
    cheap_only: int
    expensive_only: int
    expensive_failures: int


@dataclass(slots=True)
class _Sides:
    sums: PairedSums = field(default_factory=PairedSums)
    expensive_scores: int = 0
    expensive_failures: int = 0


class TwoJudgeEstimator:
    """Brings together what two monitors say about the same runs.

    Pass `estimator.add_cheap` as `on_result` of the monitor whose judge scores most of the
    traffic, and `estimator.add_expensive` as that of the one that scores a sample. Runs are
    matched by run id and metric, in whichever order they come.

    The estimate is about traffic the cheap judge can score. Runs are taken to be sampled by id, as
    monitors do: a run in the expensive judge's sample is in the cheap judge's larger one too.

    Runs that stand for no traffic, chosen for their feedback, are left out on both sides.

    Args:
        max_waiting: Scores kept until the other judge's arrives; the oldest is given up first.
        max_pipelines: Pipelines kept apart; further ones are counted as `OTHER_PIPELINES`.

    Raises:
        ConfigurationError: A setting is below 1.
    """

    def __init__(self, *, max_waiting: int = 100_000, max_pipelines: int = 1000) -> None:
        require_count(max_waiting, name="max_waiting")
        require_count(max_pipelines, name="max_pipelines")
        self._max_waiting = max_waiting
        self._max_pipelines = max_pipelines
        self._lock = Lock()
        self._sides: dict[str, dict[str, _Sides]] = {}
        self._cheap: OrderedDict[_Key, _Waiting] = OrderedDict()
        self._expensive: OrderedDict[_Key, _Waiting] = OrderedDict()

    def add_cheap(self, result: ScoredRun) -> None:
        """Take in what the cheap judge said of one run.

        Raises:
            ConfigurationError: The run has no id, so it cannot be matched.
        """
        for metric, outcome in result.results.items():
            key, score = _key(result, metric), outcome.score
            probability = result.run.chance(metric)
            if not outcome.is_measured or score is None or probability is None:
                continue
            with self._lock:
                sides = self._of(result.run.pipeline, metric)
                sides.sums.add_cheap(score, probability)
                other = self._expensive.pop(key, None)
                if other is None:
                    self._wait(self._cheap, key, (score, probability))
                else:
                    _pair(sides, expensive=other, cheap=(score, probability))

    def add_expensive(self, result: ScoredRun) -> None:
        """Take in what the expensive judge said of one run.

        Raises:
            ConfigurationError: The run has no id, so it cannot be matched.
        """
        for metric, outcome in result.results.items():
            key = _key(result, metric)
            probability = result.run.chance(metric)
            if probability is None:
                continue
            with self._lock:
                sides = self._of(result.run.pipeline, metric)
                sides.expensive_failures += outcome.status.is_failure
                if not outcome.is_measured or outcome.score is None:
                    self._cheap.pop(key, None)
                    continue
                sides.expensive_scores += 1
                other = self._cheap.pop(key, None)
                if other is None:
                    self._wait(self._expensive, key, (outcome.score, probability))
                else:
                    _pair(sides, expensive=(outcome.score, probability), cheap=other)

    def _of(self, pipeline: str, metric: str) -> _Sides:
        if pipeline not in self._sides and len(self._sides) >= self._max_pipelines:
            pipeline = OTHER_PIPELINES
        return self._sides.setdefault(pipeline, {}).setdefault(metric, _Sides())

    def _wait(self, waiting: OrderedDict[_Key, _Waiting], key: _Key, score: _Waiting) -> None:
        waiting[key] = score
        if len(waiting) > self._max_waiting:
            waiting.popitem(last=False)

    def estimates(
        self, *, target: Target = "traffic", confidence: float = 0.95
    ) -> list[TwoJudgeEstimate]:
        """Every metric of every pipeline so far, by name.

        Args:
            target: As in `TrafficEstimator.estimates`.
            confidence: Share of the intervals that hold the true mean.

        Raises:
            ConfigurationError: A setting is out of range.
        """
        require_choice(target, name="target", choices=("traffic", "process"))
        require_share(confidence)
        with self._lock:
            return [
                TwoJudgeEstimate(
                    pipeline=pipeline,
                    metric=metric,
                    powered=(
                        powered(sides.sums, target=target, confidence=confidence)
                        if sides.sums.pairs
                        else None
                    ),
                    cheap_only=sides.sums.cheap_count - sides.sums.pairs,
                    expensive_only=sides.expensive_scores - sides.sums.pairs,
                    expensive_failures=sides.expensive_failures,
                )
                for pipeline, metrics in sorted(self._sides.items())
                for metric, sides in sorted(metrics.items())
            ]


def estimate_with_two_judges(
    cheap: Iterable[ScoredRun],
    expensive: Iterable[ScoredRun],
    *,
    target: Target = "traffic",
    confidence: float = 0.95,
) -> list[TwoJudgeEstimate]:
    """The estimates of a `TwoJudgeEstimator` that was fed these results.

    Raises:
        ConfigurationError: A setting is out of range, or a run has no id.
    """
    sampled = list(expensive)
    metrics = sum(len(result.results) for result in sampled)
    # The sample waits for the stream, not the other way round: it is the smaller part.
    estimator = TwoJudgeEstimator(max_waiting=max(1, metrics))
    for result in sampled:
        estimator.add_expensive(result)
    for result in cheap:
        estimator.add_cheap(result)
    return estimator.estimates(target=target, confidence=confidence)


def _key(result: ScoredRun, metric: str) -> _Key:
    if not result.run.run_id:
        raise ConfigurationError("a run without an id cannot be matched between two judges")
    return result.run.run_id, metric


def _pair(sides: _Sides, *, expensive: _Waiting, cheap: _Waiting) -> None:
    sides.sums.add_pair(
        expensive[0], cheap[0], min(expensive[1], cheap[1]), cheap_probability=cheap[1]
    )
