"""Reading a file case by case, in bounded memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from ragaliq.core.test_case import RAGTestCase
from ragaliq.datasets.fields import names_in, recognised
from ragaliq.datasets.formats import Format, format_of, rows_of
from ragaliq.datasets.row import Row, RowError, fault
from ragaliq.datasets.rows_to_cases import case_of
from ragaliq.errors import DatasetError

__all__ = ["CaseReader", "OnError", "SkippedRow"]

OnError = Literal["raise", "skip"]

_REMEMBERED = 100
_SHOWN = 12
_NAME = 40


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
        columns: The names in the rows of the last reading, the first 100 there are.
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
        self.columns: dict[str, None] = {}
        self._format = file_format
        self._fields = dict(fields)
        self._on_error = on_error

    def __iter__(self) -> Iterator[RAGTestCase]:
        self.skipped, self.skipped_rows, self.columns = 0, [], {}
        seen: dict[bytes, str] = {}
        unseen = set(self._fields.values())
        empty = True
        for row in self._rows():
            empty = False
            if isinstance(row, Row):
                self._note_columns(row, unseen)
            case = self._case(row, seen)
            if case is not None:
                yield case
        if empty:
            raise DatasetError(f"{self.path}: there are no rows in it")
        for field, name in self._fields.items():
            if name in unseen:
                raise DatasetError(
                    f"{self.path}: no row has {name!r}, which was named as the {field}; "
                    f"the rows have {self.named_columns}"
                )

    @property
    def named_columns(self) -> str:
        """The columns for a message, a dozen at most."""
        # A table without a header would be quoted: names are shown where some are known.
        if not any(recognised(name) for name in self.columns):
            return f"{len(self.columns)} columns, none under a known name"
        shown = ", ".join(repr(name) for name in list(self.columns)[:_SHOWN])
        more = len(self.columns) - _SHOWN
        return f"{shown} and {more} more" if more > 0 else shown

    def _note_columns(self, row: Row, unseen: set[str]) -> None:
        """Remember what columns there are, and cross off those the user spoke of."""
        if unseen:
            unseen.difference_update(names_in(row))
        # Two rows with the same keys are the rule; rows may have any keys, though.
        if row.data.keys() - self.columns.keys() and len(self.columns) < _REMEMBERED:
            names = (str(name)[:_NAME] for name in row.data)
            self.columns.update(dict.fromkeys(itertools.islice(names, _REMEMBERED)))

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
