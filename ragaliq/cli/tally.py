"""What a run's summary says, counted record by record in little memory."""

from __future__ import annotations

import statistics
from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from ragaliq.core.results import JudgeUsage, Status
from ragaliq.sinks import EvaluationRecord, MetricRecord
from ragaliq.sinks.repeats import TOLERANCE, joint_score, joint_status

__all__ = ["MetricTally", "RunTally"]


class MetricTally:
    """One metric over all cases. A case that is judged several times counts once.

    Attributes:
        judgings: Judgings by status; as many as cases where none is judged again.
        passing: The statuses without a measured score that pass, as the policy says.
        errors: Failed judgings by the class of the error.

    Args:
        repeated: Whether cases are judged several times. Only then are scores kept by case, which
            takes a multiple of the memory.
    """

    def __init__(self, *, repeated: bool = False) -> None:
        self.judgings: Counter[str] = Counter()
        self.passing: set[str] = set()
        self.errors: Counter[str] = Counter()
        self._scores = array("d")
        self._passed = 0
        self._threshold = 0.0
        self._repeated = repeated
        self._by_case: dict[str, array[float]] = defaultdict(lambda: array("d"))
        self._ended: dict[str, Counter[str]] = defaultdict(Counter)

    def add(self, case: str, metric: MetricRecord) -> None:
        """Take in one judging."""
        status = metric.status.value
        self.judgings[status] += 1
        self._threshold = metric.threshold
        if metric.error_type is not None:
            self.errors[metric.error_type] += 1
        if self._repeated:
            self._ended[case][status] += 1
        if metric.is_measured and metric.score is not None:
            self._passed += bool(metric.passed)
            (self._by_case[case] if self._repeated else self._scores).append(metric.score)
        elif metric.passed:
            self.passing.add(status)

    @property
    def scores(self) -> Sequence[float]:
        """Of each case with a measured one; their mean where it was judged several times."""
        if not self._repeated:
            return self._scores
        return [joint_score(scores) for scores in self._by_case.values()]

    @property
    def statuses(self) -> Mapping[str, int]:
        """Cases by status."""
        return Counter(map(joint_status, self._ended.values())) if self._repeated else self.judgings

    @property
    def passed(self) -> int:
        """Cases with a measured score that reaches the threshold."""
        if not self._repeated:
            return self._passed
        return sum(score >= self._threshold - TOLERANCE for score in self.scores)

    @property
    def lost(self) -> Mapping[str, int]:
        """Judgings without a score, by status, of cases that have one all the same."""
        found: Counter[str] = Counter()
        for case in self._by_case:
            found.update(self._ended[case])
        return {status: n for status, n in found.items() if not Status(status).is_measured}

    @property
    def spread(self) -> float | None:
        """Mean standard deviation of a case's score over its repeats; None without repeats."""
        spreads = [statistics.stdev(scores) for scores in self._by_case.values() if len(scores) > 1]
        return statistics.fmean(spreads) if spreads else None


class RunTally:
    """All metrics of a run, its cost, and which judgings are in it.

    Attributes:
        records: How many there are: one for each judging of a case.
        usage: Tokens, requests and money.
        metrics: By name.
        done: The run id of each record of an earlier part.

    Args:
        repeated: Whether cases are judged several times.
    """

    def __init__(self, *, repeated: bool = False) -> None:
        self._repeated = repeated
        self._cases: set[str] = set()
        self.records = 0
        self.usage = JudgeUsage()
        self.metrics: dict[str, MetricTally] = {}
        self.done: set[str] = set()

    @property
    def cases(self) -> int:
        """How many cases the records are about."""
        return len(self._cases) if self._repeated else self.records

    def add(self, record: EvaluationRecord) -> None:
        """Take in a record."""
        self.records += 1
        self.usage += record.usage
        if self._repeated:
            self._cases.add(record.case_id)
        for metric in record.metrics:
            tally = self.metrics.get(metric.name)
            if tally is None:
                tally = self.metrics[metric.name] = MetricTally(repeated=self._repeated)
            tally.add(record.case_id, metric)

    def add_earlier(self, record: EvaluationRecord) -> None:
        """Take in a record that was there before this run, and remember not to judge it again."""
        self.done.add(record.run.run_id)
        self.add(record)

    @property
    def errors(self) -> Counter[str]:
        """What the judge failed on, over all metrics, by the class of the error."""
        return sum((metric.errors for metric in self.metrics.values()), Counter())

    def failed_throughout(self) -> list[str]:
        """Metrics that the judge failed on for every case."""
        return [
            name
            for name, tally in self.metrics.items()
            if all(Status(status).is_failure for status in tally.judgings)
        ]
