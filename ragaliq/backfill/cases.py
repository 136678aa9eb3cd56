"""The rows of a table as cases; a bad one as the reason why it is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragaliq.backfill.arrow import UNREADABLE
from ragaliq.backfill.columns import Place
from ragaliq.backfill.tables import Table
from ragaliq.core.test_case import RAGTestCase
from ragaliq.datasets.cases import case_of, is_absent
from ragaliq.datasets.rows import Row, RowError

__all__ = ["BadRow", "cases_of"]


@dataclass(frozen=True)
class BadRow:
    """A row that is no case.

    Attributes:
        problem: What is wrong, with the column's name and without any of the row's text.
    """

    problem: str


def cases_of(table: Table, places: Mapping[str, Place]) -> Iterator[RAGTestCase | BadRow]:
    """Each row in its order."""
    columns = {field: table.values(place.column) for field, place in places.items()}
    for row in range(table.rows):
        cells = {field: values[row] for field, values in columns.items()}
        try:
            yield _case(row, cells, places)
        except RowError as error:
            yield BadRow(str(error).partition(": ")[2])
        except Exception as error:  # noqa: BLE001 - a cell may be any object: one row, not the batch
            yield BadRow(f"the row cannot be read ({type(error).__name__})")


def _case(row: int, cells: Mapping[str, Any], places: Mapping[str, Place]) -> RAGTestCase:
    where = f"row {row + 1}"
    values = {field: _inside(cell, places[field].path) for field, cell in cells.items()}
    for field, value in values.items():
        if value is UNREADABLE:
            raise RowError(f"{where}: column {places[field].name!r} holds a value that is no text")
    present = {field: value for field, value in values.items() if not is_absent(value)}
    for field in ("query", "response"):
        if field not in present:
            raise RowError(f"{where}: the {field} is empty (column {places[field].name!r})")
    return case_of(Row(where, present), {})


def _inside(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
