"""JSON Lines: an object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from ragaliq.datasets.formats.json_document import parse_json
from ragaliq.datasets.formats.text import MAX_LINE_BYTES, decode, open_binary
from ragaliq.datasets.row import Row, RowError, fault
from ragaliq.errors import DatasetError

__all__ = ["jsonl_rows"]


def jsonl_rows(path: Path) -> Iterator[Row | RowError]:
    """The rows of a file; blank lines are passed over."""
    with open_binary(path) as file:
        number = 0
        while line := file.readline(MAX_LINE_BYTES):
            number += 1
            if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
                _pass_over(file)
                yield fault(f"line {number}", f"it is longer than {MAX_LINE_BYTES} bytes")
            elif line.strip():
                yield _row(line, f"line {number}")


def _pass_over(file: object) -> None:
    while (rest := file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):  # type: ignore[attr-defined]
        pass


def _row(line: bytes, where: str) -> Row | RowError:
    try:
        value = parse_json(decode(line))
    except json.JSONDecodeError as error:
        return fault(where, f"it is not JSON: {error.msg} in column {error.colno}")
    except DatasetError as error:
        return fault(where, str(error))
    if not isinstance(value, dict):
        return fault(where, f"it holds a {type(value).__name__}, not an object")
    return Row(where, value)
