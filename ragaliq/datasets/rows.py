"""Rows of files: CSV, JSON, JSON Lines, YAML and Parquet, gzipped or not."""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, cast

from ragaliq.errors import ConfigurationError, DatasetError

__all__ = ["Format", "Row", "RowError", "fault", "format_of", "is_place", "rows_of"]


_PLACE = re.compile(r"(line|row|record) \d+")


class Row(NamedTuple):
    """Where a row is and what it holds.

    `where` completes the sentence "the mistake is in ...": `line 7`, `record 3`.
    """

    where: str
    data: Mapping[str, Any]


class RowError(DatasetError):
    """One row is bad; the rows after it can still be read."""


def is_place(case_id: str) -> bool:
    """Whether a case has the name of its place, as cases of rows without an id have."""
    return _PLACE.fullmatch(case_id) is not None


def fault(where: str, problem: str, advice: str = "") -> RowError:
    """An error about one row, without the file's name, which only the reader knows."""
    return RowError(f"{where}: {problem}" + (f"; {advice}" if advice else ""))


# Opening text files: UTF-8 with or without byte order mark.

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


# Comma, semicolon or tab separated values with a header.

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


# JSON: a list of objects, alone or as the one list in an object.


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


# JSON Lines: an object a line.


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
                yield _row_of_line(line, f"line {number}")


def _pass_over(file: BinaryIO) -> None:
    while (rest := file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
        pass


def _row_of_line(line: bytes, where: str) -> Row | RowError:
    try:
        value = parse_json(decode(line))
    except json.JSONDecodeError as error:
        return fault(where, f"it is not JSON: {error.msg} in column {error.colno}")
    except DatasetError as error:
        return fault(where, str(error))
    if not isinstance(value, dict):
        return fault(where, f"it holds a {type(value).__name__}, not an object")
    return Row(where, value)


# Parquet tables, read batch by batch.

_BATCH_ROWS = 1024


def parquet_rows(path: Path) -> Iterator[Row | RowError]:
    """The rows of a table.

    Raises:
        ConfigurationError: pyarrow is not installed.
        DatasetError: It is no Parquet file, or a value of it cannot be read.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise ConfigurationError(
            "reading Parquet needs pyarrow: pip install 'ragaliq[parquet]'"
        ) from None
    number = 0
    try:
        with parquet.ParquetFile(path) as table:
            _require_distinct(table.schema_arrow.names)
            for batch in table.iter_batches(batch_size=_BATCH_ROWS):
                for data in batch.to_pylist():
                    number += 1
                    yield Row(f"row {number}", data)
    except pa.ArrowException as error:
        raise DatasetError(
            f"it is no Parquet file that can be read ({type(error).__name__})"
        ) from None
    except (ValueError, OverflowError) as error:
        # A text that is not UTF-8, or a date beyond Python's.
        raise DatasetError(
            f"after row {number}: a value cannot be read ({type(error).__name__})"
        ) from None


def _require_distinct(names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise DatasetError(f"two columns are called {name[:40]!r}; rename one")


# YAML: a list of mappings, read without tags and without aliases.


def yaml_rows(path: Path) -> Iterator[Row | RowError]:
    """The rows of a file.

    Raises:
        ConfigurationError: PyYAML is not installed.
        DatasetError: It is not plain YAML, or holds no list of mappings.
    """
    value = _load(read_text(path, at_most=MAX_YAML_BYTES))
    if value is not None:
        yield from rows_in(value)


def _load(text: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise ConfigurationError("reading YAML needs PyYAML: pip install 'ragaliq[cli]'") from None

    class PlainLoader(yaml.SafeLoader):
        """Refuses aliases, whose expansion can take all memory, and keys given twice."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.events.AliasEvent):
                mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
                raise _problem(mark, "aliases (*name) are not read")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002
            seen: set[str] = set()
            for key, _ in node.value:
                if isinstance(key.value, str):
                    if key.value in seen:
                        raise _problem(key.start_mark, "a key is there twice")
                    seen.add(key.value)
            return super().construct_mapping(node, deep=deep)

    try:
        return yaml.load(text, Loader=PlainLoader)  # noqa: S506 - a safe loader
    except yaml.MarkedYAMLError as error:
        what = "tags (!name) are not read" if _is_tag(error) else error.problem or "it is broken"
        raise _problem(error.problem_mark, what) from None
    except (yaml.YAMLError, ValueError) as error:
        reason = getattr(error, "reason", "a value cannot be read")
        raise DatasetError(f"it is not YAML: {reason}") from None
    except RecursionError:
        raise DatasetError("it is nested too deeply") from None


def _is_tag(error: Any) -> bool:
    return "could not determine a constructor" in (error.problem or "")


def _problem(mark: Any, what: str) -> DatasetError:
    where = f"line {mark.line + 1}: " if mark is not None else ""
    return DatasetError(f"{where}it is not YAML that can be read: {what}")


# Which of them a file is.

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
