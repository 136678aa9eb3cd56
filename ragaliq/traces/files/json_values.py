"""JSON values of a file one by one: a line each, or after each other, or in one list."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from ragaliq.errors import DatasetError

__all__ = ["MAX_DOCUMENT_BYTES", "MAX_LINE_BYTES", "json_values"]

MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is left out; reading it might take all memory."""

MAX_DOCUMENT_BYTES = 512 * 1024 * 1024
"""A larger document is not read as a whole: it would take several times as much memory."""


def json_values(file: BinaryIO) -> Iterator[tuple[str, Any | DatasetError]]:
    """The values of a file, each with its place, or the reason why one cannot be read.

    A file whose first line is a whole value is read line by line.

    Raises:
        DatasetError: It is no JSON, or too large to be read as a whole.
    """
    first = file.readline(MAX_LINE_BYTES)
    if first.strip() and not isinstance(_parsed(first), DatasetError):
        yield from _lines(first, file)
    else:
        yield from _document(first, file)


def _lines(first: bytes, file: BinaryIO) -> Iterator[tuple[str, Any | DatasetError]]:
    number, line = 1, first
    while line:
        where = f"line {number}"
        if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
            while (rest := file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield where, DatasetError(f"it is longer than {MAX_LINE_BYTES} bytes")
        elif line.strip():
            yield where, _parsed(line)
        number, line = number + 1, file.readline(MAX_LINE_BYTES)


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
    decoder, at, number = json.JSONDecoder(), 0, 0
    while at < len(text):
        if text[at] in " \t\r\n,":
            at += 1
            continue
        number += 1
        try:
            value, at = decoder.raw_decode(text, at)
        except RecursionError:
            raise DatasetError(f"value {number}: it is nested too deeply") from None
        except ValueError as error:
            where = error.lineno if isinstance(error, json.JSONDecodeError) else number
            raise DatasetError(f"line {where}: it is not JSON") from None
        yield f"value {number}", value


def _parsed(line: bytes) -> Any | DatasetError:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except RecursionError:
        return DatasetError("it is nested too deeply")
    except UnicodeDecodeError as error:
        return DatasetError(
            f"byte {line[error.start]:#04x} in column {error.start + 1} is no UTF-8"
        )
    except json.JSONDecodeError as error:
        return DatasetError(f"it is not JSON: {error.msg} in column {error.colno}")
    except ValueError:
        return DatasetError("it holds a number of too many digits")
