"""A series in which a case that was judged several times counts once."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Set

from ragaliq.reports.columns import KINDS, Series
from ragaliq.sinks.repeats import TOLERANCE, joint_score, joint_status

__all__ = ["by_case"]


def by_case(series: Series) -> Series:
    """The series with one row a case: the mean score, at the time of the first judging."""
    made = Series(series.key, series.threshold, series.higher_is_better)
    rows: dict[int, list[int]] = {}
    for row, case in enumerate(series.cases):
        rows.setdefault(case, []).append(row)
    spreads = []
    for case, judgings in rows.items():
        scores = [series.scores[row] for row in judgings]
        first, score = judgings[0], joint_score(scores)
        kind = joint_status(KINDS[series.kinds[row]] for row in judgings)
        if len(scores) > 1:
            spreads.append(statistics.stdev(scores))
        made.times.append(series.times[first])
        made.scores.append(score)
        made.weights.append(series.weights[first])
        made.pipelines.append(series.pipelines[first])
        made.cases.append(case)
        made.kinds.append(KINDS.index(kind))
        made.statuses[series.pipelines[first], kind] += 1
        made.passed[series.pipelines[first]] += score >= series.threshold - TOLERANCE
    made.spread = statistics.fmean(spreads) if spreads else None
    _add_unmeasured(series, made, measured=rows.keys())
    return made


def _add_unmeasured(series: Series, made: Series, *, measured: Set[int]) -> None:
    ended: dict[tuple[int, int], Counter[str]] = {}
    for case, pipeline, status in series.unmeasured:
        if case not in measured:
            ended.setdefault((case, pipeline), Counter())[status] += 1
    for (case, pipeline), statuses in ended.items():
        status = joint_status(statuses)
        made.unmeasured.add(case, pipeline, status)
        made.statuses[pipeline, status] += 1
