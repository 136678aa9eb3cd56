"""One pass over the records: figures of all, and the selection of answers to show."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from ragaliq.core.results import ClaimDetail, EvaluationResult
from ragaliq.records import EvaluationRecord
from ragaliq.records.summary import SeriesKey, Summary
from ragaliq.reports.open_questions import OpenQuestions

T = TypeVar("T")

VERDICTS = ("SUPPORTED", "CONTRADICTED", "NOT_ENOUGH_INFO", None)
"""The order in which the page counts verdicts; None is a claim without one."""

AnswerRow = list[Any]
"""`[id, run id, time, pipeline, [claims by verdict], [series, score, status], ...]`."""

Badness = tuple[float, int, int]
"""Compares as: the lower the score the worse, then contradicted claims, then uncovered ones."""

_MAX_SERIES = 40
_MAX_ID = 48
_NOT_MEASURED = (-math.inf, 0, 0)


class Gathering:
    """Figures and selected answers of the records read so far.

    `in_full` answers are kept whole and `in_rows` as a row of numbers.

    Attributes:
        summary: The results added up, judge by judge.
        with_text: Records that hold texts.
        claims: Claims by judge and verdict.
        open_questions: The questions without a supported answer.
    """

    def __init__(self, *, in_full: int, in_rows: int) -> None:
        self.summary = Summary(by_judge=True, max_series=_MAX_SERIES)
        self.with_text = 0
        self.claims: Counter[tuple[str, str | None]] = Counter()
        self._statuses: dict[str, int] = {}
        self.open_questions = OpenQuestions()
        self._positions: dict[SeriesKey, int] = {}
        self._in_full = in_full
        self._worst: dict[SeriesKey, Worst[EvaluationRecord]] = {}
        self._unmeasured: Worst[EvaluationRecord] = Worst(in_full)
        self._rows: Worst[AnswerRow] = Worst(in_rows)

    @property
    def statuses(self) -> list[str]:
        """Statuses found, each identified by its position."""
        return list(self._statuses)

    def rows(self) -> list[tuple[int, AnswerRow]]:
        """The rows with the numbers of their records, worst first."""
        return self._rows.worst_first()

    def answers(self) -> list[tuple[int, EvaluationRecord]]:
        """Records to show whole: the worst by each metric in turn, then unmeasured ones."""
        measured = take_in_turn([worst.worst_first() for worst in self._worst.values()])
        chosen = [*measured, *self._unmeasured.worst_first()]
        return chosen[: self._in_full]

    def add(self, record: EvaluationRecord) -> None:
        """Add a record."""
        number = self.summary.records
        pipeline = self.summary.add(record)
        self.with_text += record.case is not None
        self.open_questions.add(record)
        for name, result in record.results.items():
            key = SeriesKey.by_judge(name, result)
            if key not in self._positions and len(self._positions) < _MAX_SERIES:
                self._positions[key] = len(self._positions)
            how_bad = badness(result)
            if how_bad is not None and key in self._positions:
                self._worst.setdefault(key, Worst(self._in_full)).add(how_bad, number, record)
        how_bad = badness(*record.results.values())
        if how_bad is None:
            self._unmeasured.add(_NOT_MEASURED, number, record)
        self._rows.add(how_bad or _NOT_MEASURED, number, self._row(record, pipeline))

    def _row(self, record: EvaluationRecord, pipeline: int) -> AnswerRow:
        verdicts: Counter[str | None] = Counter()
        for found in claim_sets(record):
            verdicts.update(claim.verdict for claim in found.claims)
            judge = record.results[found.metrics[0]].judge
            self.claims.update((claim.decided_by or judge, claim.verdict) for claim in found.claims)
        return [
            record.evaluation_id[:_MAX_ID],
            record.run.run_id[:_MAX_ID],
            round(max(0.0, finite(record.created_at) or 0.0)),
            pipeline,
            [verdicts[verdict] for verdict in VERDICTS],
            *(
                [
                    self._positions[SeriesKey.by_judge(name, result)],
                    None if (score := finite(result.score)) is None else round(score, 3),
                    self._statuses.setdefault(result.status.value, len(self._statuses)),
                ]
                for name, result in record.results.items()
                if SeriesKey.by_judge(name, result) in self._positions
            ),
        ]


class ClaimSet(NamedTuple):
    """Claims, with the metrics that share them: faithfulness and hallucination share one check."""

    metrics: list[str]
    claims: tuple[ClaimDetail, ...]


def claim_sets(record: EvaluationRecord) -> list[ClaimSet]:
    """Different claims of a record, in the order of its metrics."""
    sets: list[ClaimSet] = []
    for name, result in record.results.items():
        if not result.claims:
            continue
        same = next((known for known in sets if known.claims == result.claims), None)
        if same is None:
            sets.append(ClaimSet([name], result.claims))
        else:
            same.metrics.append(name)
    return sets


def finite(value: float | None) -> float | None:
    """Value, or None if JSON cannot express it."""
    return value if value is not None and math.isfinite(value) else None


def badness(*results: EvaluationResult) -> Badness | None:
    """Badness of an answer by its lowest metric; None if nothing was measured."""
    qualities = [
        each.score if each.higher_is_better else 1.0 - each.score
        for each in results
        if each.is_measured and each.score is not None
    ]
    if not qualities:
        return None
    verdicts = [claim.verdict for each in results for claim in each.claims]
    return -min(qualities), verdicts.count("CONTRADICTED"), verdicts.count("NOT_ENOUGH_INFO")


class Worst(Generic[T]):
    """Keeps the `limit` worst items."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._heap: list[tuple[Badness, int, T]] = []

    def add(self, how_bad: Badness, number: int, item: T) -> None:
        """Add an item; of equal ones, the one with the higher number is kept."""
        entry = (how_bad, number, item)
        if len(self._heap) < self._limit:
            heapq.heappush(self._heap, entry)
        elif self._limit and entry[:2] > self._heap[0][:2]:
            heapq.heapreplace(self._heap, entry)

    def worst_first(self) -> list[tuple[int, T]]:
        """Items with their unique numbers."""
        return [(number, item) for _, number, item in sorted(self._heap, reverse=True)]


def take_in_turn(lists: list[list[tuple[int, T]]]) -> Iterator[tuple[int, T]]:
    """First of each list, then the second of each, and so on; each number once.

    So a metric whose scores are usually low does not crowd out the others.
    """
    seen: set[int] = set()
    for place in range(max(map(len, lists), default=0)):
        for items in lists:
            if place < len(items) and items[place][0] not in seen:
                seen.add(items[place][0])
                yield items[place]
