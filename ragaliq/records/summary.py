"""Summary of results: means with intervals, counts by status, repeats merged by case, costs.

`evaluate()`, the command line, gates, test runs, reports and stores all use this one.
"""

from __future__ import annotations

import math
import statistics
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

from ragaliq.core.results import Evaluation, EvaluationResult, JudgeUsage, Status
from ragaliq.records.record import EvaluationRecord, observation_of
from ragaliq.statistics import Estimate
from ragaliq.statistics.sampling import WeightedSums

TOLERANCE = 1e-9
"""A mean that is below its goal by rounding only has reached it, as for a single case."""

_KINDS = tuple(status.value for status in Status)
_MAX_PIPELINES = 30
_OTHER_PIPELINES = "(other pipelines)"
_LAST_TIME = 253_402_300_799.0  # the end of the year 9999


class SeriesKey(NamedTuple):
    """Key of a series of scores that has a mean: a metric, or a metric of one judge.

    Judge, model and fingerprint are empty unless a summary keeps judges apart.
    """

    metric: str
    judge: str = ""
    model: str | None = None
    fingerprint: str = ""

    @classmethod
    def by_judge(cls, metric: str, result: EvaluationResult) -> Self:
        """Make the key of a result in a summary that keeps judges apart."""
        return cls(metric, result.judge, result.model, result.fingerprint)


class MetricSummary:
    """Figures of one metric over all cases. A case that is evaluated several times counts once.

    Each result takes about 35 bytes of memory.

    Attributes:
        key: The metric, and the judge where judges are kept apart.
        measured: Number of cases in the mean.
        statuses: Cases by status, failures included.
        passed: Cases with a measured score that reaches the threshold.
        passing: Statuses that pass under the policy although they have no measured score.
        threshold: The lowest score that passes, or the highest where low is good; of the latest
            case, in [0, 1].
        higher_is_better: False for metrics where a low score is good.
        errors: Failed evaluations by the class of the error.
        spread: Mean standard deviation of a case's score over its repeats; None without repeats.
        unscored_repeats: Evaluations without a score, by status, of cases that have a score from
            another repeat.
    """

    def __init__(
        self, key: SeriesKey, threshold: float = 0.0, *, higher_is_better: bool = True
    ) -> None:
        self.key, self.threshold, self.higher_is_better = key, threshold, higher_is_better
        self.measured = self.passed = 0
        self.statuses: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.passing: set[str] = set()
        self.spread: float | None = None
        self.unscored_repeats: Counter[str] = Counter()
        # One row for each result; the score is NaN if none was measured.
        self._cases, self._kinds, self._pipelines = array("q"), array("B"), array("H")
        self._times, self._scores, self._weights = array("d"), array("d"), array("d")
        self._estimates: dict[int | None, Estimate | None] = {}

    def __repr__(self) -> str:
        figures = f"mean={self.mean}, interval={self.interval}, statuses={dict(self.statuses)}"
        return f"MetricSummary({self.key.metric!r}, {figures})"

    @property
    def mean(self) -> float | None:
        """Mean over the cases with a measured score; None if there are none.

        Runs that were sampled with unequal chances are weighted by `RunInfo.weight`.
        """
        found = self.estimate()
        return found.value if found else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the mean; None if there is no mean."""
        found = self.estimate()
        return found.interval if found else None

    @property
    def interval_method(self) -> str | None:
        """Method of the interval, as of `hajek_mean`: `wilson`, `logit_t` or `unseen_share`."""
        found = self.estimate()
        return found.method if found else None

    @property
    def cases(self) -> int:
        """Number of cases of any status."""
        return self.statuses.total()

    def _add(self, result: EvaluationResult, of: tuple[int, float, float, int]) -> None:
        threshold, status = result.threshold, result.status.value
        self.threshold = min(1.0, max(0.0, threshold)) if math.isfinite(threshold) else 0.0
        self.higher_is_better = result.higher_is_better
        if result.status.is_failure and result.error_type:
            self.errors[result.error_type] += 1
        passed, score = bool(result.passed), math.nan
        if result.is_measured and result.score is not None:
            score = result.score
        elif passed:
            self.passing.add(status)
        self._add_row(status, score, of, passed=passed)

    def _add_row(
        self, status: str, score: float, of: tuple[int, float, float, int], *, passed: bool
    ) -> None:
        """Add a row; `of` holds the case's hash, Unix time, weight and the pipeline's index."""
        case, time, weight, pipeline = of
        self._estimates.clear()
        self._cases.append(case)
        self._kinds.append(_KINDS.index(status))
        self._pipelines.append(pipeline)
        self._times.append(time)
        self._scores.append(score)
        self._weights.append(weight)
        self.statuses[status] += 1
        if not math.isnan(score):
            self.measured += 1
            self.passed += passed

    @property
    def times(self) -> Sequence[float]:
        """Unix times of the evaluations."""
        return self._times

    def _rows(self, pipeline: int | None) -> Iterator[tuple[float, float, float]]:
        """Time, score and weight of each measured score."""
        rows = zip(self._times, self._scores, self._weights, self._pipelines, strict=True)
        for time, score, weight, owner in rows:
            if pipeline in (None, owner) and not math.isnan(score):
                yield time, score, weight

    def estimate(self, pipeline: int | None = None) -> Estimate | None:
        """Mean score of all traffic with its 95 % interval; None if nothing was measured.

        Scores are weighted by the traffic that their runs represent (`RunInfo.weight`); those of
        weight 0 are ignored.
        """
        if pipeline in self._estimates:
            return self._estimates[pipeline]
        sums = WeightedSums()
        # Results come in the order they finish; sorting makes the rounding reproducible.
        for score, weight in sorted(row[1:] for row in self._rows(pipeline) if row[2] > 0):
            sums.add(score, 1.0 / weight)
        found = sums.estimate() if sums.n else None
        self._estimates[pipeline] = found
        return found

    def trend(self, width: float, pipeline: int | None = None) -> list[tuple[float, Estimate]]:
        """Start and mean of each bucket of `width` seconds with scores, in the order of time."""
        buckets: dict[float, WeightedSums] = {}
        for time, score, weight in self._rows(pipeline):
            if weight > 0:
                buckets.setdefault(time // width, WeightedSums()).add(score, 1.0 / weight)
        return [(number * width, sums.estimate()) for number, sums in sorted(buckets.items())]

    def histogram(self, pipeline: int | None = None) -> list[int]:
        """Counts of scores in 20 equal parts of [0, 1]; the last one holds 1.0 as well."""
        counts = [0] * 20
        for _, score, _ in self._rows(pipeline):
            # 0.15 * 20 is slightly below 3 in floating point, but 0.15 belongs to the upper part.
            counts[min(19, int(score * 20 + 1e-9))] += 1
        return counts

    def _joined(self) -> MetricSummary:
        """Summary with one row a case: the mean score, at the time of the first evaluation.

        Repeats of a case measure the judge's steadiness and are one observation: counted separately
        they would make every interval too narrow.
        """
        made = MetricSummary(self.key, self.threshold, higher_is_better=self.higher_is_better)
        made.errors, made.passing = Counter(self.errors), set(self.passing)
        cases: dict[int, list[int]] = {}
        for row, case in enumerate(self._cases):
            cases.setdefault(case, []).append(row)
        spreads = []
        for case, rows in cases.items():
            measured = [row for row in rows if not math.isnan(self._scores[row])]
            scores = [self._scores[row] for row in measured]
            if measured:
                made.unscored_repeats.update(
                    _KINDS[self._kinds[row]] for row in rows if row not in measured
                )
            if len(scores) > 1:
                spreads.append(statistics.stdev(scores))
            first, score = (measured or rows)[0], joint_score(scores) if scores else math.nan
            of = case, self._times[first], self._weights[first], self._pipelines[first]
            status = joint_status([_KINDS[self._kinds[row]] for row in measured or rows])
            margin = score - self.threshold if self.higher_is_better else self.threshold - score
            made._add_row(status, score, of, passed=margin >= -TOLERANCE)
        made.spread = statistics.fmean(spreads) if spreads else None
        return made


@dataclass
class PipelineCosts:
    """Cost of evaluating the answers of one pipeline.

    Attributes:
        name: The application's name for the chain; may be empty.
        answers: Number of answers.
        evaluations: Number of evaluations; larger if answers are evaluated several times.
        tokens: Tokens of all judges.
        requests: Calls that got a reply.
        cost: US dollars, as far as known.
        saved: US dollars saved against the list price.
        unknown_costs: Evaluations whose cost is not known and not in the sum.
    """

    name: str
    answers: int = 0
    evaluations: int = 0
    tokens: int = 0
    requests: int = 0
    cost: float = 0.0
    saved: float = 0.0
    unknown_costs: int = 0


class NamedMetric(Protocol):
    """Metric that a `Summary` lists even if it has no results, such as an `Evaluator`.

    A protocol, so that this package does not import the evaluators.
    """

    name: str
    threshold: float
    higher_is_better: bool


class Summary:
    """Adds up results, record by record, in little memory.

    A case that is evaluated several times (`run_id_of`) counts once, with the mean of its scores.

    Args:
        metrics: Metrics that have figures even without results.
        by_judge: Whether each judge and model has figures of its own: their scores differ.
        max_series: Most series; results of further ones are skipped. None for no limit.

    Attributes:
        records: Evaluations added; more than cases if cases are evaluated several times.
        usage: Tokens, requests and money of all.
        skipped: Results beyond `max_series` series.
        first: Unix time of the first evaluation; infinite if there are none.
        last: Unix time of the last.
        without_weight: Evaluations that represent no traffic.
    """

    def __init__(
        self,
        metrics: Iterable[NamedMetric] = (),
        *,
        by_judge: bool = False,
        max_series: int | None = None,
    ) -> None:
        self._by_judge, self._max_series = by_judge, max_series
        self.records = self.skipped = self.without_weight = 0
        self.usage = JudgeUsage()
        self.first, self.last = math.inf, -math.inf
        self._series = {
            (key := SeriesKey(each.name)): MetricSummary(
                key, each.threshold, higher_is_better=each.higher_is_better
            )
            for each in metrics
        }
        self._joined: dict[SeriesKey, MetricSummary] | None = None
        self._pipelines: list[PipelineCosts] = []
        self._indices: dict[str, int] = {}  # in `_pipelines`, by name
        self._is_repeated = False
        self._cases, self._owners = array("q"), array("H")
        self._passing: dict[int, bool] = {}

    def add(self, evaluated: EvaluationRecord | Evaluation) -> int:
        """Add an evaluation or its record.

        Returns:
            Index of its pipeline in `pipelines`.
        """
        run = evaluated.run
        if isinstance(evaluated, EvaluationRecord):
            case_id, time = evaluated.case_id, evaluated.created_at
        else:
            case_id, time = evaluated.case.id, run.ended_at
        time = min(_LAST_TIME, max(0.0, time)) if math.isfinite(time) else 0.0
        observation = observation_of(case_id, run.run_id)
        case = hash((run.pipeline, observation))
        self._joined = None
        self._is_repeated |= observation != run.run_id
        self.records += 1
        usage = evaluated.usage
        self.usage += usage
        self.without_weight += not run.represents_traffic
        self.first, self.last = min(self.first, time), max(self.last, time)
        name = run.pipeline
        if name not in self._indices and len(self._pipelines) >= _MAX_PIPELINES:
            name = _OTHER_PIPELINES
        pipeline = self._indices.setdefault(name, len(self._pipelines))
        if pipeline == len(self._pipelines):
            self._pipelines.append(PipelineCosts(name))
        costs = self._pipelines[pipeline]
        costs.answers += 1
        costs.evaluations += 1
        costs.tokens += usage.total_tokens
        costs.requests += usage.requests
        costs.saved += usage.saved_usd if math.isfinite(usage.saved_usd) else 0.0
        if usage.cost_usd is not None and math.isfinite(usage.cost_usd):
            costs.cost += usage.cost_usd
        else:
            costs.unknown_costs += 1
        self._cases.append(case)
        self._owners.append(pipeline)
        results = evaluated.results.values()
        if not any(result.status.is_failure for result in results):
            passes = all(result.passed for result in results)
            self._passing[case] = passes and self._passing.get(case, True)
        for metric, result in evaluated.results.items():
            key = SeriesKey.by_judge(metric, result) if self._by_judge else SeriesKey(metric)
            series = self._series.get(key)
            if series is None:
                if len(self._series) == self._max_series:
                    self.skipped += 1
                    continue
                series = self._series[key] = MetricSummary(key)
            series._add(result, (case, time, run.weight(metric), pipeline))
        return pipeline

    @property
    def cases(self) -> int:
        """Number of cases."""
        return len(set(self._cases)) if self._is_repeated else self.records

    @property
    def passing(self) -> tuple[int, int]:
        """Cases that pass every metric, and cases on which the judge did not fail.

        A case without a score does not pass, unless the policy says so; one that is evaluated
        several times must pass each time.
        """
        return sum(self._passing.values()), len(self._passing)

    @property
    def series(self) -> Mapping[SeriesKey, MetricSummary]:
        """Results of each metric, with one row a case."""
        if not self._is_repeated:
            return self._series
        if self._joined is None:
            self._joined = {key: each._joined() for key, each in self._series.items()}
        return self._joined

    @property
    def metrics(self) -> Mapping[str, MetricSummary]:
        """Figures of each metric, by name; of its last judge where judges are kept apart."""
        return {key.metric: each for key, each in self.series.items()}

    @property
    def pipelines(self) -> Sequence[PipelineCosts]:
        """Costs of each pipeline; past 30 pipelines, further ones share the last."""
        if self._is_repeated:
            owners = Counter(dict(zip(self._cases, self._owners, strict=True)).values())
            for number, pipeline in enumerate(self._pipelines):
                pipeline.answers = owners[number]
        return self._pipelines

    @property
    def errors(self) -> Counter[str]:
        """Failures of the judge over all metrics, by the class of the error."""
        return sum((series.errors for series in self._series.values()), Counter())

    @property
    def failed_throughout(self) -> list[str]:
        """Metrics that the judge failed on for every case: an outage, not bad answers."""
        return [
            name
            for name, metric in self.metrics.items()
            if all(Status(status).is_failure for status in metric.statuses)
        ]


def joint_score(scores: Sequence[float]) -> float:
    """Score of a case with several measured scores: their mean."""
    # The mean of equal scores is exact, without a rounding error.
    return scores[0] if min(scores) == max(scores) else statistics.fmean(scores)


def joint_status(statuses: Sequence[str]) -> str:
    """Status of a case with several evaluations: a measured one's status if there is one.

    A failure says nothing about the answer, so it counts only if there is nothing else.
    """

    def rank(name: str) -> tuple[bool, bool, bool, int]:
        status = Status(name)
        is_scored = status is Status.SCORED
        return status.is_failure, not status.is_measured, not is_scored, -statuses.count(name)

    return min(statuses, key=rank)
