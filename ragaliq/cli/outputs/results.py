"""What the forms are made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ragaliq.records import EvaluationRecord

__all__ = ["Results"]


class Results(NamedTuple):
    """The records of a run.

    Attributes:
        name: Of the results file they are from.
        records: In the order in which they were judged.
    """

    name: str
    records: Iterable[EvaluationRecord]
