"""JSON: a list of objects, alone or as the one list in an object."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragaliq.datasets.formats.text import MAX_JSON_BYTES, read_text
from ragaliq.datasets.row import Row, RowError, fault
from ragaliq.errors import DatasetError

__all__ = ["json_rows", "parse_json", "rows_in"]


def json_rows(path: Path) -> Iterator[Row | RowError]:
    """The rows of a file.

    Raises:
        DatasetError: It is not JSON, or holds no list of objects.
    """
    text = read_text(path, at_most=MAX_JSON_BYTES)
    if not text.strip():
        return
    try:
        value = parse_json(text)
    except json.JSONDecodeError as error:
        advice = ""
        if error.msg == "Extra data":
            advice = "; a file with an object on each line is JSON Lines: end its name in .jsonl"
        raise DatasetError(
            f"line {error.lineno}: it is not JSON: {error.msg} in column {error.colno}{advice}"
        ) from None
    yield from rows_in(value)


def parse_json(text: str) -> Any:
    """The value a text holds.

    Raises:
        json.JSONDecodeError: It is not JSON.
        DatasetError: It is nested too deeply, holds a key twice, or a number no computer can.
    """
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise DatasetError("it is nested too deeply") from None
    except ValueError as error:  # an integer of thousands of digits
        raise DatasetError(f"it is not JSON that can be read: {error}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held = dict(pairs)
    if len(held) < len(pairs):
        # Which of the two was meant nobody knows; json would take the last.
        raise DatasetError("an object has a key twice")
    return held


def rows_in(value: Any) -> Iterator[Row | RowError]:
    """The rows of a document that has been read.

    Raises:
        DatasetError: It holds no list of objects.
    """
    if isinstance(value, dict):
        lists = [held for held in value.values() if _is_table(held)]
        if len(lists) != 1:
            raise DatasetError(
                "the file holds one object; expected a list of objects, or an object with one "
                "such list in it"
            )
        [value] = lists
    if not isinstance(value, list):
        raise DatasetError(f"the file holds a {type(value).__name__}, not a list of objects")
    for number, item in enumerate(value, start=1):
        where = f"record {number}"
        if isinstance(item, dict):
            yield Row(where, item)
        else:
            yield fault(where, f"it is a {type(item).__name__}, not an object")


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)
