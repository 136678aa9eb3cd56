"""Several judgings of one case: they say how steady the judge is, and are one observation.

Counted as independent cases they would make every interval narrower than the cases allow.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ragaliq.core.results import Status
from ragaliq.sinks.record import EvaluationRecord
from ragaliq.telemetry.content import sendable

__all__ = ["TOLERANCE", "case_of", "joint_score", "joint_status", "run_id_of"]

TOLERANCE = 1e-9
"""A mean that is below its goal by rounding only has reached it, as for a single case."""


def run_id_of(case_id: str, repeat: int) -> str:
    """Names one judging of a case, as records do: its first by the case's own id."""
    return sendable(case_id if repeat == 0 else f"{case_id}#{repeat + 1}")


def case_of(record: EvaluationRecord) -> str:
    """What a record is an observation of: its case where it is one of the case's judgings.

    Otherwise its run: answers of live traffic may share a case's id and are different answers.
    """
    case_id, run_id = record.case_id, record.run.run_id
    number = run_id.removeprefix(f"{case_id}#")
    return case_id if number != run_id and number.isdecimal() else run_id


def joint_score(scores: Sequence[float]) -> float:
    """The score of a case with these measured ones: their mean."""
    # A steady judge's mean is what it said, to the last digit.
    return scores[0] if min(scores) == max(scores) else statistics.fmean(scores)


def joint_status(statuses: Mapping[str, int] | Iterable[str]) -> str:
    """The status of a case whose judgings ended so: that of a measured one, if there is one.

    A failure says nothing about the answer, so it only stands where there is nothing else.
    """
    counts = Counter(statuses)
    return min(counts, key=lambda status: (_rank(Status(status)), -counts[status]))


def _rank(status: Status) -> int:
    if status is Status.SCORED:
        return 0
    if status.is_measured:
        return 1
    return 3 if status.is_failure else 2
