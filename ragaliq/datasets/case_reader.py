"""Reading a file case by case, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from ragaliq.core.test_case import RAGTestCase
from ragaliq.datasets.formats import Format, format_of, rows_of
from ragaliq.datasets.row import Row, RowError, fault
from ragaliq.datasets.rows_to_cases import case_of
from ragaliq.errors import DatasetError

__all__ = ["CaseReader", "OnError", "SkippedRow"]

OnError = Literal["raise", "skip"]

_REMEMBERED = 100


@dataclass(frozen=True)
class SkippedRow:
    """A row that was left out: where it is and what is wrong, without any of its text."""

    where: str
    problem: str


class CaseReader:
    """The cases of a file; can be read several times, each time from the start.

    Attributes:
        path: The file.
        skipped: Rows left out by the last reading; with `on_error="skip"` only.
        skipped_rows: The first 100 of them.
    """

    def __init__(
        self,
        path: Path,
        *,
        file_format: Format | None,
        fields: Mapping[str, str],
        on_error: OnError,
    ) -> None:
        self.path = path
        self.skipped = 0
        self.skipped_rows: list[SkippedRow] = []
        self._format = file_format
        self._fields = dict(fields)
        self._on_error = on_error

    def __iter__(self) -> Iterator[RAGTestCase]:
        self.skipped, self.skipped_rows = 0, []
        seen: dict[bytes, str] = {}
        empty = True
        for row in self._rows():
            empty = False
            case = self._case(row, seen)
            if case is not None:
                yield case
        if empty:
            raise DatasetError(f"{self.path}: there are no rows in it")

    def _rows(self) -> Iterator[Row | RowError]:
        try:
            yield from rows_of(self.path, self._format or format_of(self.path))
        except DatasetError as error:
            raise DatasetError(f"{self.path}: {error}") from None
        except OSError as error:
            raise DatasetError(f"{self.path}: {error.strerror or error}") from None

    def _case(self, row: Row | RowError, seen: dict[bytes, str]) -> RAGTestCase | None:
        try:
            if isinstance(row, RowError):
                raise row
            case = case_of(row, self._fields)
            self._require_new(case.id, row.where, seen)
        except RowError as error:
            if self._on_error == "raise":
                raise DatasetError(f"{self.path}, {error}") from None
            self._skip(error)
            return None
        return case

    @staticmethod
    def _require_new(case_id: str, where: str, seen: dict[bytes, str]) -> None:
        # Eight bytes an id and not the id itself: a file may have many millions of them.
        key = blake2b(case_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        if key in seen:
            raise fault(where, f"its id is also that of {seen[key]}", "give each case its own id")
        seen[key] = where

    def _skip(self, error: RowError) -> None:
        self.skipped += 1
        if len(self.skipped_rows) < _REMEMBERED:
            where, _, problem = str(error).partition(": ")
            self.skipped_rows.append(SkippedRow(where, problem))
