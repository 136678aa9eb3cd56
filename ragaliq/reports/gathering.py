"""One pass over the records: what the page will say of all, and which it will show in full."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable
from typing import Any

from ragaliq.reports.answers import claim_sets
from ragaliq.reports.columns import Pipelines, Series, SeriesKey
from ragaliq.reports.embedding import finite
from ragaliq.reports.merging import by_case
from ragaliq.reports.worst import Worst, badness, take_in_turn
from ragaliq.sinks.record import EvaluationRecord
from ragaliq.sinks.repeats import case_of

__all__ = ["VERDICTS", "Gathering", "Row"]

VERDICTS = ("SUPPORTED", "CONTRADICTED", "NOT_ENOUGH_INFO", None)
"""The order in which the page counts verdicts; None is a claim without one."""

Row = list[Any]
"""`[id, run id, time, pipeline, [claims by verdict], [series, score, status], ...]`."""

_MAX_SERIES = 40
_MAX_ID = 48
_LAST_TIME = 253_402_300_799.0  # the end of the year 9999
_NOT_MEASURED = (-math.inf, 0, 0)


class Gathering:
    """What is known of the records read so far.

    Args:
        in_full: How many answers are kept whole.
        in_rows: How many are kept as a row of numbers.
    """

    def __init__(self, *, in_full: int, in_rows: int) -> None:
        self.records = 0
        self.with_text = 0
        self.standing_for_nothing = 0
        self.results_left_out = 0
        self.first, self.last = math.inf, -math.inf
        self.pipelines = Pipelines()
        self.series: dict[SeriesKey, Series] = {}
        self.claims: Counter[tuple[str, str | None]] = Counter()
        self.statuses: list[str] = []
        self._positions: dict[SeriesKey, int] = {}
        self._is_repeated = False
        self._cases = array("q")
        self._owners = array("H")
        self._in_full = in_full
        self._worst: dict[SeriesKey, Worst[EvaluationRecord]] = {}
        self._unmeasured: Worst[EvaluationRecord] = Worst(in_full)
        self._rows: Worst[Row] = Worst(in_rows)

    def read(self, records: Iterable[EvaluationRecord]) -> None:
        """Take in all records."""
        for record in records:
            self._add(record)
        if self._is_repeated:
            self._count_by_case()

    @property
    def answers_judged(self) -> int:
        """How many answers the records are about."""
        return sum(pipeline.answers for pipeline in self.pipelines.all)

    def rows(self) -> list[tuple[int, Row]]:
        """The rows with the numbers of their records, worst first."""
        return self._rows.worst_first()

    def answers(self) -> list[tuple[int, EvaluationRecord]]:
        """The records to show whole: the worst by each metric in turn, then unmeasured ones."""
        measured = take_in_turn([worst.worst_first() for worst in self._worst.values()])
        chosen = [*measured, *self._unmeasured.worst_first()]
        return chosen[: self._in_full]

    def _add(self, record: EvaluationRecord) -> None:
        number, self.records = self.records, self.records + 1
        self.with_text += record.case is not None
        self.standing_for_nothing += not record.run.represents_traffic
        time = _time_of(record)
        self.first, self.last = min(self.first, time), max(self.last, time)
        pipeline = self.pipelines.add(record)
        case = self._case(record, pipeline)
        for metric in record.metrics:
            key = SeriesKey.of(metric)
            if key not in self.series:
                if len(self.series) >= _MAX_SERIES:
                    self.results_left_out += 1
                    continue
                self._positions[key] = len(self.series)
                self.series[key] = Series(key)
            weight = record.run.weight(metric.name)
            self.series[key].add(metric, time=time, weight=weight, pipeline=pipeline, case=case)
            how_bad = badness(record, metric)
            if how_bad is not None:
                self._worst.setdefault(key, Worst(self._in_full)).add(how_bad, number, record)
        how_bad = badness(record)
        if how_bad is None:
            self._unmeasured.add(_NOT_MEASURED, number, record)
        self._rows.add(how_bad or _NOT_MEASURED, number, self._row(record, pipeline))

    def _case(self, record: EvaluationRecord, pipeline: int) -> int:
        """A number for what the record is an observation of, in eight bytes."""
        name = case_of(record)
        self._is_repeated |= name != record.run.run_id
        case = hash((record.run.pipeline, name))
        self._cases.append(case)
        self._owners.append(pipeline)
        return case

    def _count_by_case(self) -> None:
        for key, series in self.series.items():
            self.series[key] = by_case(series)
        owners = Counter(dict(zip(self._cases, self._owners, strict=True)).values())
        for position, pipeline in enumerate(self.pipelines.all):
            pipeline.answers = owners[position]

    def _row(self, record: EvaluationRecord, pipeline: int) -> Row:
        verdicts: Counter[str | None] = Counter()
        for found in claim_sets(record):
            verdicts.update(claim.verdict for claim in found.claims)
            judge = found.metrics[0].judge
            self.claims.update((claim.decided_by or judge, claim.verdict) for claim in found.claims)
        return [
            record.evaluation_id[:_MAX_ID],
            record.run.run_id[:_MAX_ID],
            round(_time_of(record)),
            pipeline,
            [verdicts[verdict] for verdict in VERDICTS],
            *(
                [
                    self._positions[SeriesKey.of(metric)],
                    None if metric.score is None else round(metric.score, 3),
                    self._status(metric.status.value),
                ]
                for metric in record.metrics
                if SeriesKey.of(metric) in self._positions
            ),
        ]

    def _status(self, status: str) -> int:
        if status not in self.statuses:
            self.statuses.append(status)
        return self.statuses.index(status)


def _time_of(record: EvaluationRecord) -> float:
    """When the answer was evaluated, as a time that has a date."""
    return min(_LAST_TIME, max(0.0, finite(record.created_at) or 0.0))
