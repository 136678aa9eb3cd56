"""Rows of files, one module a format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from ragaliq.datasets.formats.csv_table import csv_rows
from ragaliq.datasets.formats.json_document import json_rows
from ragaliq.datasets.formats.json_lines import jsonl_rows
from ragaliq.datasets.formats.parquet_table import parquet_rows
from ragaliq.datasets.formats.yaml_document import yaml_rows
from ragaliq.datasets.row import Row, RowError
from ragaliq.errors import ConfigurationError, DatasetError

__all__ = ["Format", "format_of", "rows_of"]

Format = Literal["json", "jsonl", "csv", "yaml", "parquet"]

_READERS: dict[str, Callable[[Path], Iterator[Row | RowError]]] = {
    "json": json_rows,
    "jsonl": jsonl_rows,
    "csv": csv_rows,
    "yaml": yaml_rows,
    "parquet": parquet_rows,
}
_SUFFIXES: dict[str, Format] = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".parquet": "parquet",
}


def format_of(path: Path) -> Format:
    """The format a file's name speaks of.

    Raises:
        DatasetError: None is known.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    if suffixes and suffixes[-1] in _SUFFIXES:
        return _SUFFIXES[suffixes[-1]]
    raise DatasetError(
        f"{path}: the name does not tell the format; end it in {', '.join(_SUFFIXES)}, or say "
        f"which it is with file_format"
    )


def rows_of(path: Path, file_format: str) -> Iterator[Row | RowError]:
    """The rows of a file; a row that cannot be read comes as its error, and others follow it.

    Raises:
        DatasetError: The file as a whole cannot be read.
        OSError: The system cannot read it.
    """
    if file_format not in _READERS:
        raise ConfigurationError(f"file_format must be one of {', '.join(_READERS)}")
    return _READERS[file_format](path)
