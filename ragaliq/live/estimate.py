"""From the sampled runs to all traffic: means, shares and intervals.

What is estimated: the mean of a metric over the *scorable* traffic, the runs for which the metric
is defined. An answer without claims has no faithfulness; it is counted, and `scorable` estimates
the share of traffic that can be scored. A judge that failed says nothing about the run: such runs
enter neither figure, and `judge_failures` counts them. The figures are unbiased where judges fail,
and queues and budgets drop, without regard to the quality of the answer.

What a judge *costs* is estimated elsewhere, by `ragaliq.cost_estimate`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from ragaliq.core.results import EvaluationResult, Status
from ragaliq.core.run import RunInfo
from ragaliq.errors import DatasetError
from ragaliq.statistics.checks import require_choice, require_count, require_share
from ragaliq.statistics.intervals import Estimate
from ragaliq.statistics.sampling import Target, WeightedSums

__all__ = [
    "OTHER_PIPELINES",
    "ScoredRun",
    "TrafficEstimate",
    "TrafficEstimator",
    "estimate_traffic",
]

OTHER_PIPELINES = "(other pipelines)"
"""Where runs are counted once there are `max_pipelines` pipelines."""


class ScoredRun(Protocol):
    """What an estimator reads of a `Evaluation`."""

    @property
    def run(self) -> RunInfo:
        """Where the answer came from and how it was chosen."""

    @property
    def results(self) -> Mapping[str, EvaluationResult]:
        """Metric name to result."""


@dataclass(frozen=True, kw_only=True)
class TrafficEstimate:
    """One metric of one pipeline over all of its traffic.

    Attributes:
        pipeline: The application's name for the chain.
        metric: The metric's name.
        mean: Its mean over the scorable traffic; None where nothing was scored.
        passing: Share of the scorable traffic that passes; None where nothing was scored.
        scorable: Share of the traffic that can be scored; None where the judge always failed.
        statuses: Sampled runs by status; they add up to `sampled`.
        sampled: Number of sampled runs that were asked about this metric.
        judge_failures: Those in which the judge refused, failed or took too long.
        traffic: Estimated number of runs these stand for.
        left_out: Results that are in no other figure, since their runs were chosen when they were
            over, for the feedback they got, and so stand for no traffic.
    """

    pipeline: str
    metric: str
    mean: Estimate | None
    passing: Estimate | None
    scorable: Estimate | None
    statuses: Mapping[str, int]
    sampled: int
    judge_failures: int
    traffic: float
    left_out: int


@dataclass(slots=True)
class _Sums:
    score: WeightedSums = field(default_factory=WeightedSums)
    passing: WeightedSums = field(default_factory=WeightedSums)
    scorable: WeightedSums = field(default_factory=WeightedSums)
    statuses: Counter[str] = field(default_factory=Counter)
    traffic: float = 0.0
    left_out: int = 0


class TrafficEstimator:
    """Takes sampled results one by one and estimates figures of all traffic.

    Pass `estimator.add` as `on_result`, or feed it stored results. It keeps a few sums for each
    pipeline and metric, however many runs there are, and may be used from several threads. A run
    that is added twice counts twice.

    Args:
        max_pipelines: Pipelines kept apart; further ones are counted as `OTHER_PIPELINES`.

    Raises:
        ConfigurationError: `max_pipelines` is below 1.
    """

    def __init__(self, *, max_pipelines: int = 1000) -> None:
        require_count(max_pipelines, name="max_pipelines")
        self._max_pipelines = max_pipelines
        self._lock = Lock()
        self._sums: dict[str, dict[str, _Sums]] = {}

    def add(self, result: ScoredRun) -> None:
        """Take in every metric of one evaluated run."""
        for metric, outcome in result.results.items():
            probability = result.run.chance(metric)
            if probability is None:
                with self._lock:
                    self._of(result.run.pipeline, metric).left_out += 1
                continue
            self.add_score(
                outcome.score if outcome.is_measured else None,
                passed=outcome.passed,
                status=outcome.status,
                metric=metric,
                pipeline=result.run.pipeline,
                probability=probability,
            )

    def add_score(
        self,
        score: float | None,
        *,
        metric: str,
        passed: bool | None = None,
        status: Status | str = Status.SCORED,
        pipeline: str = "",
        probability: float = 1.0,
    ) -> None:
        """Take in one metric of one run, such as a row of a sink.

        Args:
            score: 0 to 1, or None where there is none.
            metric: The metric's name.
            passed: Whether the score passes.
            status: How the evaluation ended; a score counts with `scored` and `partial` only.
            pipeline: The application's name for the chain.
            probability: The chance this run had of being asked about this metric.

        Raises:
            DatasetError: A score or probability out of range, or a status that does not exist.
        """
        ended = _status(status)
        if not 0.0 < probability <= 1.0:
            raise DatasetError(f"probability is {probability}; it must be within (0, 1]")
        measured = ended.is_measured and score is not None
        if measured and score is not None and not 0.0 <= score <= 1.0:
            raise DatasetError(f"score is {score}; it must be within [0, 1]")
        with self._lock:
            sums = self._of(pipeline, metric)
            sums.statuses[ended.value] += 1
            sums.traffic += 1.0 / probability
            if not ended.is_failure:
                sums.scorable.add(float(measured), probability)
            if measured and score is not None:
                sums.score.add(score, probability)
                sums.passing.add(float(bool(passed)), probability)

    def _of(self, pipeline: str, metric: str) -> _Sums:
        if pipeline not in self._sums and len(self._sums) >= self._max_pipelines:
            pipeline = OTHER_PIPELINES
        return self._sums.setdefault(pipeline, {}).setdefault(metric, _Sums())

    def estimates(
        self, *, target: Target = "traffic", confidence: float = 0.95
    ) -> list[TrafficEstimate]:
        """Every metric of every pipeline so far, by name.

        Args:
            target: `traffic` for the mean of just the traffic that was sampled from, `process`
                for what the application would show in the long run, for comparing two days.
            confidence: Share of the intervals that hold the true figure.

        Raises:
            ConfigurationError: A setting is out of range.
        """
        require_choice(target, name="target", choices=("traffic", "process"))
        require_share(confidence)
        with self._lock:
            return [
                _estimate(pipeline, metric, sums, target, confidence)
                for pipeline, metrics in sorted(self._sums.items())
                for metric, sums in sorted(metrics.items())
            ]


def estimate_traffic(
    results: Iterable[ScoredRun], *, target: Target = "traffic", confidence: float = 0.95
) -> list[TrafficEstimate]:
    """The estimates of a `TrafficEstimator` that was fed these results.

    Raises:
        ConfigurationError: A setting is out of range.
    """
    estimator = TrafficEstimator()
    for result in results:
        estimator.add(result)
    return estimator.estimates(target=target, confidence=confidence)


def _estimate(
    pipeline: str, metric: str, sums: _Sums, target: Target, confidence: float
) -> TrafficEstimate:
    def figure(weighted: WeightedSums) -> Estimate | None:
        return weighted.estimate(target=target, confidence=confidence) if weighted.n else None

    return TrafficEstimate(
        pipeline=pipeline,
        metric=metric,
        mean=figure(sums.score),
        passing=figure(sums.passing),
        scorable=figure(sums.scorable),
        statuses=dict(sums.statuses),
        sampled=sum(sums.statuses.values()),
        judge_failures=sum(sums.statuses[status.value] for status in Status if status.is_failure),
        traffic=sums.traffic,
        left_out=sums.left_out,
    )


def _status(status: Status | str) -> Status:
    try:
        return Status(status)
    except ValueError:
        known = ", ".join(each.value for each in Status)
        raise DatasetError(f"no status {status!r}; there are {known}") from None
