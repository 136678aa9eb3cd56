"""One row of a file before it is a case."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ragaliq.errors import DatasetError

__all__ = ["Row", "RowError", "fault", "is_place"]

_PLACE = re.compile(r"(line|row|record) \d+")


class Row(NamedTuple):
    """Where a row is and what it holds.

    `where` completes the sentence "the mistake is in ...": `line 7`, `record 3`.
    """

    where: str
    data: Mapping[str, Any]


class RowError(DatasetError):
    """One row is bad; the rows after it can still be read."""


def is_place(case_id: str) -> bool:
    """Whether a case has the name of its place, as cases of rows without an id have."""
    return _PLACE.fullmatch(case_id) is not None


def fault(where: str, problem: str, advice: str = "") -> RowError:
    """An error about one row, without the file's name, which only the reader knows."""
    return RowError(f"{where}: {problem}" + (f"; {advice}" if advice else ""))
