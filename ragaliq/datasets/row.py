"""One row of a file before it is a case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ragaliq.errors import DatasetError

__all__ = ["Row", "RowError", "fault"]


class Row(NamedTuple):
    """Where a row is and what it holds.

    `where` completes the sentence "the mistake is in ...": `line 7`, `record 3`.
    """

    where: str
    data: Mapping[str, Any]


class RowError(DatasetError):
    """One row is bad; the rows after it can still be read."""


def fault(where: str, problem: str, advice: str = "") -> RowError:
    """An error about one row, without the file's name, which only the reader knows."""
    return RowError(f"{where}: {problem}" + (f"; {advice}" if advice else ""))
