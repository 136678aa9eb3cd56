"""What a run's summary says, counted record by record in little memory."""

from __future__ import annotations

import statistics
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator

from ragaliq.core.results import JudgeUsage
from ragaliq.sinks import EvaluationRecord

__all__ = ["MetricTally", "RunTally"]


class MetricTally:
    """One metric over all records.

    Attributes:
        scores: Of the cases that have a measured one, in the order they came.
        statuses: Records by status.
        passed: Records that reached the threshold.

    Args:
        repeated: Whether cases are judged several times. Only then are scores kept by case, which
            takes a multiple of the memory.
    """

    def __init__(self, *, repeated: bool = False) -> None:
        self.scores = array("d")
        self.statuses: Counter[str] = Counter()
        self.passed = 0
        self._repeated = repeated
        self._by_case: dict[str, array[float]] = defaultdict(lambda: array("d"))

    def add(self, case: str, status: str, score: float | None, *, passed: bool) -> None:
        """Take in one result; `score` is None where nothing was measured."""
        self.statuses[status] += 1
        self.passed += passed
        if score is not None:
            self.scores.append(score)
            if self._repeated:
                self._by_case[case].append(score)

    @property
    def spread(self) -> float | None:
        """Mean standard deviation of a case's score over its repeats; None without repeats."""
        spreads = [statistics.stdev(scores) for scores in self._by_case.values() if len(scores) > 1]
        return statistics.fmean(spreads) if spreads else None


class RunTally:
    """All metrics of a run, its cost, and which judgings are in it.

    Attributes:
        records: How many there are.
        usage: Tokens, requests and money.
        metrics: By name.
        done: The run id of each record of an earlier part.

    Args:
        repeated: Whether cases are judged several times.
    """

    def __init__(self, *, repeated: bool = False) -> None:
        self._repeated = repeated
        self.records = 0
        self.usage = JudgeUsage()
        self.metrics: dict[str, MetricTally] = {}
        self.done: set[str] = set()

    def add(self, record: EvaluationRecord) -> None:
        """Take in a record."""
        self.records += 1
        self.usage += record.usage
        for metric in record.metrics:
            tally = self.metrics.get(metric.name)
            if tally is None:
                tally = self.metrics[metric.name] = MetricTally(repeated=self._repeated)
            score = metric.score if metric.is_measured else None
            tally.add(record.case_id, metric.status.value, score, passed=bool(metric.passed))

    def add_earlier(self, record: EvaluationRecord) -> None:
        """Take in a record that was there before this run, and remember not to judge it again."""
        self.done.add(record.run.run_id)
        self.add(record)

    def unjudged(self) -> Iterator[str]:
        """Metrics for which not one record has a score."""
        for name, tally in self.metrics.items():
            if not tally.scores:
                yield name
