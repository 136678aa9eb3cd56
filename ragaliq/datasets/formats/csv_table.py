"""Comma, semicolon or tab separated values with a header."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from ragaliq.datasets.formats.text import MAX_LINE_BYTES, decode, open_binary
from ragaliq.datasets.row import Row, RowError, fault
from ragaliq.errors import DatasetError

__all__ = ["csv_rows"]

_NUMBERED = re.compile(
    r"^(contexts?|chunks?|documents?|passages?)[ _\[.-]*(\d+)\]?$", re.IGNORECASE
)


def csv_rows(path: Path) -> Iterator[Row | RowError]:
    """The rows of a file; columns such as `context_1`, `context_2` make one list.

    Raises:
        DatasetError: There is no usable header, or the file is not UTF-8 or not CSV.
    """
    # The module's own limit, 128 KiB, is shorter than some contexts.
    csv.field_size_limit(MAX_LINE_BYTES)
    with open_binary(path) as file:
        lines = _lines(file)
        first = next(lines, "")
        table = csv.reader(
            chain([first] if first else [], lines), delimiter=_delimiter(first, path), strict=True
        )
        try:
            header = _header(next(table, []))
            for cells in table:
                if any(cell.strip() for cell in cells):
                    yield _row(header, cells, f"line {table.line_num}")
        except csv.Error as error:
            raise DatasetError(
                f"line {table.line_num}: it is not CSV: {error}; quote cells that hold line "
                "breaks or quotes"
            ) from None


def _lines(file: BinaryIO) -> Iterator[str]:
    number = 0
    while line := file.readline(MAX_LINE_BYTES):
        number += 1
        try:
            yield decode(line)
        except DatasetError as error:
            raise DatasetError(f"line {number}: {error} (in Excel: CSV UTF-8)") from None


def _delimiter(header: str, path: Path) -> str:
    if ".tsv" in [suffix.lower() for suffix in path.suffixes]:
        return "\t"
    return max(",;\t", key=header.count)


def _header(cells: Sequence[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    if not any(names):
        if cells:
            raise DatasetError("line 1: the header is empty; name the columns there")
        return []
    twice = sorted(name for name, count in Counter(names).items() if name and count > 1)
    if twice:
        raise DatasetError(f"line 1: two columns are called {twice[0][:40]!r}; rename one")
    return names


def _row(header: Sequence[str], cells: Sequence[str], where: str) -> Row | RowError:
    if len(cells) != len(header):
        return fault(
            where,
            f"it has {len(cells)} cells, the header {len(header)}",
            "quote cells that hold the separator",
        )
    if [cell.strip().removeprefix("\ufeff") for cell in cells] == header:
        return fault(where, "it is the header again", "join files without their headers")
    data: dict[str, Any] = {}
    for name, cell in zip(header, cells, strict=True):
        numbered = _NUMBERED.match(name)
        if not numbered:
            data[name] = cell
        elif cell.strip():
            data.setdefault(numbered[1].lower().rstrip("s") + "s", []).append(cell)
    _join_numbered(data)
    data.pop("", None)
    return Row(where, data)


def _join_numbered(data: dict[str, Any]) -> None:
    """Put `context` before `context.1`, `context.2`: so pandas names columns of one name."""
    for name in [key for key, cell in data.items() if isinstance(cell, str) and cell.strip()]:
        numbered = data.get(name.lower().rstrip("s") + "s")
        if isinstance(numbered, list):
            numbered.insert(0, data.pop(name))
