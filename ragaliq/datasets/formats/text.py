"""Opening text files: UTF-8 with or without byte order mark, gzipped or not."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from ragaliq.errors import DatasetError

__all__ = ["MAX_LINE_BYTES", "decode", "open_binary", "read_text"]

MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is no row of a data set; reading it might take all memory."""

MAX_JSON_BYTES = 512 * 1024 * 1024
"""A larger document is read as a whole no more: it would take several times as much memory."""

MAX_YAML_BYTES = 32 * 1024 * 1024
"""YAML takes minutes and gigabytes at that size."""

_FOREIGN_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}

_NO_TEXT = {
    b"PK\x03\x04": "it is a zip archive or an Excel workbook; save the table as CSV (UTF-8)",
    b"\x1f\x8b": "it is compressed with gzip; end its name in .gz",
    b"PAR1": "it is a Parquet file; end its name in .parquet",
}


@contextmanager
def open_binary(path: Path) -> Iterator[BinaryIO]:
    """The file's bytes after any UTF-8 byte order mark.

    Raises:
        DatasetError: It is written in UTF-16 or UTF-32, is no text, or no valid gzip file.
    """
    is_gzip = path.suffix.lower() == ".gz"
    with cast("BinaryIO", gzip.open(path)) if is_gzip else path.open("rb") as file:
        try:
            start = file.read(4)
            for mark, encoding in _FOREIGN_MARKS.items():
                if start.startswith(mark):
                    raise DatasetError(f"it is written in {encoding}; save it as UTF-8")
            for magic, advice in _NO_TEXT.items():
                if start.startswith(magic):
                    raise DatasetError(advice)
            file.seek(3 if start.startswith(codecs.BOM_UTF8) else 0)
            yield file
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise DatasetError(f"it is no complete gzip file ({error})") from None


def decode(data: bytes) -> str:
    """UTF-8 text.

    Raises:
        DatasetError: It is something else.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"byte {data[error.start]:#04x} in column {error.start + 1} is not UTF-8; save the "
            "file as UTF-8"
        ) from None


def read_text(path: Path, *, at_most: int) -> str:
    """A whole file's text.

    Args:
        path: The file.
        at_most: Bytes, after any decompression: a small archive may hold a very large file.

    Raises:
        DatasetError: It is larger, or not UTF-8; the message names the line.
    """
    with open_binary(path) as file:
        data = file.read(at_most + 1)
    if len(data) > at_most:
        raise DatasetError(
            f"it is larger than {at_most} bytes, and this format is read as a whole; write it as "
            "JSON Lines (.jsonl), which is read line by line"
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DatasetError(
            f"line {line}: byte {data[error.start]:#04x} is not UTF-8; save the file as UTF-8"
        ) from None
