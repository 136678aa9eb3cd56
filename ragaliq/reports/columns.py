"""What is kept of each record while they are read: numbers in arrays, and counts.

A score takes 35 bytes, so that a million results fit into memory that nobody notices.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ragaliq.core.results import Status
from ragaliq.reports.embedding import finite
from ragaliq.sinks.record import EvaluationRecord, MetricRecord

__all__ = ["KINDS", "OTHER_PIPELINES", "Pipelines", "Series", "SeriesKey"]

OTHER_PIPELINES = "(other pipelines)"
"""Where runs are counted once there are many pipelines."""

KINDS = tuple(status.value for status in Status)
"""All statuses, each with its number."""

_MAX_PIPELINES = 30


class SeriesKey(NamedTuple):
    """What may be averaged: one metric as one judge decides it. Judges do not agree."""

    metric: str
    judge: str
    model: str | None

    @classmethod
    def of(cls, metric: MetricRecord) -> SeriesKey:
        """The series a result belongs to."""
        return cls(metric.name, metric.judge, metric.model)


@dataclass
class Unmeasured:
    """Results without a score: what each is an observation of, its pipeline and its status."""

    cases: array[int] = field(default_factory=lambda: array("q"))
    pipelines: array[int] = field(default_factory=lambda: array("H"))
    kinds: array[int] = field(default_factory=lambda: array("B"))

    def add(self, case: int, pipeline: int, status: str) -> None:
        """Take in one result."""
        self.cases.append(case)
        self.pipelines.append(pipeline)
        self.kinds.append(KINDS.index(status))

    def __iter__(self) -> Iterator[tuple[int, int, str]]:
        rows = zip(self.cases, self.pipelines, self.kinds, strict=True)
        return ((case, pipeline, KINDS[kind]) for case, pipeline, kind in rows)


@dataclass
class Series:
    """The results of one metric by one judge.

    Attributes:
        key: Which.
        threshold: The score from which on the latest case passes.
        higher_is_better: False for metrics where a low score is good.
        times: Unix time of each measured score.
        scores: The measured scores.
        weights: How many runs of all traffic each stands for; 0 for none.
        pipelines: Position of each score's pipeline in `Pipelines.names`.
        cases: A number for what each score is an observation of, see `sinks.repeats.case_of`.
        kinds: Position of each score's status in `KINDS`.
        unmeasured: The same three of the results without a score.
        statuses: Results by pipeline and status.
        passed: Passed results by pipeline.
        spread: How far a case's score spreads over its judgings; None where each has one.
    """

    key: SeriesKey
    threshold: float = 0.0
    higher_is_better: bool = True
    times: array[float] = field(default_factory=lambda: array("d"))
    scores: array[float] = field(default_factory=lambda: array("d"))
    weights: array[float] = field(default_factory=lambda: array("d"))
    pipelines: array[int] = field(default_factory=lambda: array("H"))
    cases: array[int] = field(default_factory=lambda: array("q"))
    kinds: array[int] = field(default_factory=lambda: array("B"))
    unmeasured: Unmeasured = field(default_factory=Unmeasured)
    statuses: Counter[tuple[int, str]] = field(default_factory=Counter)
    passed: Counter[int] = field(default_factory=Counter)
    spread: float | None = None

    def add(
        self, metric: MetricRecord, *, time: float, weight: float, pipeline: int, case: int = 0
    ) -> None:
        """Take in one result."""
        self.threshold = min(1.0, max(0.0, finite(metric.threshold) or 0.0))
        self.higher_is_better = metric.higher_is_better
        self.statuses[pipeline, metric.status.value] += 1
        if not metric.is_measured or metric.score is None:
            self.unmeasured.add(case, pipeline, metric.status.value)
            return
        self.passed[pipeline] += bool(metric.passed)
        self.times.append(time)
        self.scores.append(metric.score)
        self.weights.append(weight)
        self.pipelines.append(pipeline)
        self.cases.append(case)
        self.kinds.append(KINDS.index(metric.status.value))

    def statuses_of(self, pipeline: int | None = None) -> dict[str, int]:
        """Results by status, of one pipeline or of all."""
        counts: Counter[str] = Counter()
        for (owner, status), count in self.statuses.items():
            if pipeline is None or owner == pipeline:
                counts[status] += count
        return dict(counts)

    def passed_of(self, pipeline: int | None = None) -> int:
        """Passed results, of one pipeline or of all."""
        return self.passed.total() if pipeline is None else self.passed[pipeline]


@dataclass
class PipelineCosts:
    """What the answers of one pipeline cost to judge.

    Attributes:
        name: The application's name for the chain; may be empty.
        answers: Number of answers.
        judgings: Number of results: as many, unless an answer is judged several times.
        tokens: Tokens of all judges.
        requests: Calls that got a reply.
        cost: US dollars, as far as known.
        saved: US dollars by which that is below the list price.
        unknown_costs: Judgings whose cost is not known, and not in the sum.
    """

    name: str
    answers: int = 0
    judgings: int = 0
    tokens: int = 0
    requests: int = 0
    cost: float = 0.0
    saved: float = 0.0
    unknown_costs: int = 0


class Pipelines:
    """The pipelines met so far, each with a number; past a limit they share the last one."""

    def __init__(self) -> None:
        self.all: list[PipelineCosts] = []
        self._positions: dict[str, int] = {}

    @property
    def names(self) -> list[str]:
        """Their names by number."""
        return [pipeline.name for pipeline in self.all]

    def add(self, record: EvaluationRecord) -> int:
        """Count an answer under its pipeline; returns the pipeline's number."""
        name, usage = record.run.pipeline, record.usage
        if name not in self._positions and len(self.all) >= _MAX_PIPELINES:
            name = OTHER_PIPELINES
        position = self._positions.setdefault(name, len(self.all))
        if position == len(self.all):
            self.all.append(PipelineCosts(name))
        costs = self.all[position]
        costs.answers += 1
        costs.judgings += 1
        costs.tokens += usage.total_tokens
        costs.requests += usage.requests
        cost = finite(usage.cost_usd)
        costs.cost += cost or 0.0
        costs.saved += finite(usage.saved_usd) or 0.0
        costs.unknown_costs += cost is None
        return position
