"""JSON values of a file one by one: a line each, or after each other, or in one list."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from ragaliq.errors import DatasetError

__all__ = ["MAX_DOCUMENT_BYTES", "MAX_LINE_BYTES", "json_values"]

MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is left out; reading it might take all memory."""

MAX_DOCUMENT_BYTES = 512 * 1024 * 1024
"""A larger document is not read as a whole: it would take several times as much memory."""
_NOT_JSON = "it is not JSON"
_DECODER = json.JSONDecoder()
_BETWEEN = re.compile(r"[ \t\r\n,]*")
_NEXT_VALUE = re.compile(r"^[{\[]", re.MULTILINE)


def json_values(file: BinaryIO) -> Iterator[tuple[str, Any | DatasetError]]:
    """The values of a file, each with its place, or the reason why one cannot be read.

    A file whose first line is a whole value is read line by line.

    Raises:
        DatasetError: It is too large to be read as a whole, or no UTF-8.
    """
    first = file.readline(MAX_LINE_BYTES)
    value = _parsed(first)
    if not first.strip() or (isinstance(value, DatasetError) and _NOT_JSON in str(value)):
        yield from _document(first, file)
    else:
        yield "line 1", value
        yield from _lines(file)


def _lines(file: BinaryIO) -> Iterator[tuple[str, Any | DatasetError]]:
    number = 1
    while line := file.readline(MAX_LINE_BYTES):
        number += 1
        where = f"line {number}"
        if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
            while (rest := file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield where, DatasetError(f"it is longer than {MAX_LINE_BYTES} bytes")
        elif line.strip():
            yield from _of_line(where, line)


def _of_line(where: str, line: bytes) -> Iterator[tuple[str, Any | DatasetError]]:
    value = _parsed(line)
    if isinstance(value, DatasetError) and "Extra data" in str(value):
        # Files put after each other whose last line was not ended.
        for _, each in _values(line.decode("utf-8-sig")):
            yield where, each
    else:
        yield where, value


def _document(first: bytes, file: BinaryIO) -> Iterator[tuple[str, Any | DatasetError]]:
    """Values written over several lines each."""
    data = first + file.read(MAX_DOCUMENT_BYTES + 1 - len(first))
    if len(data) > MAX_DOCUMENT_BYTES:
        raise DatasetError(
            f"it is larger than {MAX_DOCUMENT_BYTES} bytes, and JSON over several lines is read as "
            "a whole; write a request a line (.jsonl), as the collector's file exporter does"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DatasetError(f"line {line}: byte {data[error.start]:#04x} is not UTF-8") from None
    del data
    yield from _values(text)


def _values(text: str) -> Iterator[tuple[str, Any | DatasetError]]:
    """Values after each other; behind one that cannot be read, the next that begins a line."""
    at, number, counted, line = 0, 0, 0, 1
    while (at := _after(text, at)) < len(text):
        number += 1
        value, end = _value(text, at)
        if isinstance(value, DatasetError):
            line, counted = line + text.count("\n", counted, at), at
            yield f"line {line + text.count(chr(10), at, end)}", value
            following = _NEXT_VALUE.search(text, at + 1)
            at = following.start() if following else len(text)
        else:
            yield f"value {number}", value
            at = end


def _value(text: str, at: int) -> tuple[Any | DatasetError, int]:
    """A value and where it ends, or why there is none and where that shows."""
    if text[at] not in "{[":  # another output of the program
        return DatasetError(_NOT_JSON), at
    try:
        return _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError) as error:
        end = error.pos if isinstance(error, json.JSONDecodeError) else at
        return DatasetError(_problem(error)), end


def _after(text: str, at: int) -> int:
    found = _BETWEEN.match(text, at)
    return found.end() if found else at


def _parsed(line: bytes) -> Any | DatasetError:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        byte, column = line[error.start], error.start + 1
        return DatasetError(f"byte {byte:#04x} in column {column} is no UTF-8")
    except json.JSONDecodeError as error:
        return DatasetError(f"{_problem(error)}: {error.msg} in column {error.colno}")
    except (ValueError, RecursionError) as error:
        return DatasetError(_problem(error))


def _problem(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, json.JSONDecodeError):
        return _NOT_JSON
    return "it holds a number of too many digits"
