"""Rows of files: CSV, JSON, JSON Lines and Parquet, gzipped or not."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TextIO, cast

from ragaliq.errors import ConfigurationError, DatasetError, RowError


class Row(NamedTuple):
    """A row: its place for "the mistake is in ...", its values, and its number.

    Rows count from 1, as in pandas and spreadsheets: the header and empty lines do not count, a row
    of empty cells does. If the line has another number, the place names both: `row 7 (line 9)`.
    """

    where: str
    data: Mapping[str, Any]
    number: int = 0


_Read = Iterator[tuple[int, Mapping[str, Any] | RowError | None]]
"""What a format's reader gives of each row: its line, 0 where it has none, and what it holds.

A row that cannot be read is its error, without its place; a blank one that counts is None.
"""


def fault(where: str, problem: str, advice: str = "") -> RowError:
    """Error about one row, without the file's name, which only the reader knows."""
    return RowError(f"{where}: {problem}" + (f"; {advice}" if advice else ""))


def is_place(case_id: str) -> bool:
    """True for an id that names a row, as for cases of rows without an id."""
    return re.fullmatch(r"(.+ )?row \d+", case_id) is not None


# Text files: UTF-8 with or without byte order mark, or what the user says.

MAX_LINE = 64 * 1024 * 1024
"""Most characters of a line; reading a longer one might take all memory."""

MAX_JSON = 512 * 1024 * 1024
"""Characters; a larger document, read as a whole, would take several times as much memory."""

_UTF16 = (
    "it is written in UTF-16 or UTF-32; save the file as UTF-8, or name its encoding "
    "(encoding='utf-16', --encoding utf-16)"
)
_NO_TEXT = {
    codecs.BOM_UTF16_LE: _UTF16,  # UTF-32's mark begins alike
    codecs.BOM_UTF16_BE: _UTF16,
    codecs.BOM_UTF32_BE: _UTF16,
    b"PK\x03\x04": "it is a zip archive or an Excel workbook; save the table as CSV (UTF-8)",
    b"\x1f\x8b": "it is compressed with gzip; end its name in .gz",
    b"PAR1": "it is a Parquet file; end its name in .parquet",
}
_ADVICE = "save the file as UTF-8"
_OR_NAME_IT = ", or name its encoding (encoding='cp1252', --encoding cp1252)"


@contextmanager
def _open_text(path: Path, encoding: str | None) -> Iterator[TextIO]:
    r"""Open the file's text with line ends as `\n`; see `_require_decoded`."""
    is_gzip = path.suffix.lower() == ".gz"
    with cast("io.BufferedReader", gzip.open(path)) if is_gzip else path.open("rb") as file:
        try:
            start = file.read(4)
            for magic, advice in _NO_TEXT.items():
                if start.startswith(magic) and (encoding is None or advice != _UTF16):
                    raise DatasetError(advice)
            file.seek(3 if start.startswith(codecs.BOM_UTF8) else 0)
            encoding = encoding or "utf-8"
            try:
                first = file.peek(1).decode(encoding, "ignore")
                # Some Mac programs end lines with a carriage return; elsewhere it ends none.
                newline = None if "\r" in first and "\n" not in first else "\n"
                text = io.TextIOWrapper(file, encoding, errors="surrogateescape", newline=newline)
            except LookupError:
                raise ConfigurationError(f"there is no encoding {encoding!r}") from None
            yield text
        except UnicodeError:
            raise DatasetError(f"it is not written in {encoding}") from None
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise DatasetError(f"it is not a complete gzip file ({error})") from None


def _undecoded(text: str, file: TextIO) -> tuple[int, str]:
    """Line of a byte outside the file's encoding, and the message; 0 if there is none.

    The byte was read as half a surrogate pair.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        before = text[: error.start]
        line = before.count("\n") + 1
        column, byte = len(before) - before.rfind("\n"), ord(text[error.start]) & 0xFF
        problem = f"byte {byte:#04x} in column {column} is not {file.encoding.upper()}"
        is_utf8 = codecs.lookup(file.encoding).name.startswith("utf-8")
        return line, f"{problem}; {_ADVICE}{_OR_NAME_IT if is_utf8 else ''}"
    return 0, ""


def _whole(path: Path, encoding: str | None, *, at_most: int) -> str:
    # `at_most` counts after any decompression: a small archive may hold a very large file.
    with _open_text(path, encoding) as file:
        text = file.read(at_most + 1)
        if len(text) > at_most:
            raise DatasetError(
                f"it is larger than {at_most} characters, and this format is read as a whole; "
                "write it as JSON Lines (.jsonl), which is read line by line"
            )
        line, problem = _undecoded(text, file)
        if problem:
            raise DatasetError(f"line {line}: {problem}")
        return text


# Comma, semicolon or tab separated values with a header.

_NUMBERED = re.compile(
    r"^(contexts?|chunks?|documents?|passages?)[ _\[.-]*(\d+)\]?$", re.IGNORECASE
)

# A first line that names the separator for Excel; it is not part of the table.
_SEPARATOR = re.compile(r"sep=(\S|\t)\s*", re.IGNORECASE)

_NAME = re.compile(r"[\w .-]*")


def csv_rows(path: Path, encoding: str | None) -> _Read:
    """Read the rows of a file; columns such as `context_1`, `context_2` become one list."""
    # The module's own limit, 128 KiB, is shorter than some contexts.
    csv.field_size_limit(MAX_LINE)
    with _open_text(path, encoding) as file:
        lines = _lines(file)
        first = next(lines, "")
        is_tsv = ".tsv" in [suffix.lower() for suffix in path.suffixes]
        delimiter = "\t" if is_tsv else max(",;\t", key=first.count)
        named = _SEPARATOR.fullmatch(first)
        if named is not None:
            delimiter, first = named[1], next(lines, "")
        above = 1 if named else 0
        table = csv.reader(chain([first] if first else [], lines), delimiter=delimiter, strict=True)
        try:
            header = [cell.strip() for cell in next(table, [])]
            if header and not any(header):
                raise DatasetError(f"line {above + 1}: the header is empty; name the columns there")
            if len(header) == 1 and not _NAME.fullmatch(header[0]):  # other separators
                known = "a tab" if is_tsv else "commas, semicolons or tabs"
                raise DatasetError(
                    f"line {above + 1}: there is one column; put {known} between columns"
                )
            require_distinct([name for name in header if name], f"line {above + 1}: ")
            for cells in filter(None, table):
                is_blank = not any(cell.strip() for cell in cells)
                yield above + table.line_num, None if is_blank else _csv_row(header, cells)
        except csv.Error as error:
            is_bare = str(error).startswith("new-line")  # Python's advice is about its own `open`
            problem = "a carriage return alone ends no line here" if is_bare else error
            raise DatasetError(
                f"line {above + table.line_num}: it is not CSV: {problem}; quote cells that hold "
                "line breaks or quotes"
            ) from None


def _lines(file: TextIO) -> Iterator[str]:
    for number, line in enumerate(iter(lambda: file.readline(MAX_LINE), ""), start=1):
        _, problem = _undecoded(line, file)
        if problem:  # what follows in the table has no known place
            raise DatasetError(f"line {number}: {problem}; in Excel, save it as CSV UTF-8")
        yield line


def _csv_row(header: Sequence[str], cells: Sequence[str]) -> dict[str, Any] | RowError:
    if len(cells) != len(header):
        return RowError(
            f"it has {len(cells)} cells, the header {len(header)}; quote cells that hold the "
            "separator"
        )
    if [cell.strip().removeprefix("\ufeff") for cell in cells] == header:
        return RowError("it is the header again; join files without their headers")
    data: dict[str, Any] = {}
    for name, cell in zip(header, cells, strict=True):
        numbered = _NUMBERED.match(name)
        if numbered is None:
            data[name] = cell
        elif cell.strip():
            together = numbered[1].lower().rstrip("s") + "s"
            if together not in data or isinstance(data[together], str):
                # pandas names columns of one name `context`, `context.1`, `context.2`.
                alone = next((n for n in data if n.lower().rstrip("s") + "s" == together), "")
                before = data.pop(alone, "")
                data[together] = [before] if before.strip() else []
            data[together].append(cell)
    data.pop("", None)
    return data


# JSON: a list of objects, alone or as the one list in an object.

NOT_JSON = "it is not JSON"
_PLACE_FOLLOWS = re.compile(r"( starting)? at$")  # some of Python's messages end so


def json_rows(path: Path, encoding: str | None) -> _Read:
    """Read the rows of a JSON file."""
    text = _whole(path, encoding, at_most=MAX_JSON)
    if not text.strip():
        return
    try:
        value = parse_json(text)
    except json.JSONDecodeError as error:
        advice = ""
        if error.msg == "Extra data":
            advice = "; a file with an object on each line is JSON Lines: end its name in .jsonl"
        raise DatasetError(f"line {error.lineno}: {not_json(error)}{advice}") from None
    yield from rows_in(value)


def not_json(error: json.JSONDecodeError) -> str:
    """Problem of a text, with its column; the caller adds the line."""
    return f"{NOT_JSON}: {_PLACE_FOLLOWS.sub('', error.msg)} in column {error.colno}"


def parse_json(text: str) -> Any:
    """Parse a JSON text."""
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
        # The file is ambiguous; json would take the last value.
        raise DatasetError("an object has a key twice")
    return held


def rows_in(value: Any) -> _Read:
    """Rows of a parsed document."""
    if isinstance(value, dict):
        lists = [
            held
            for held in value.values()
            if isinstance(held, list) and held and all(isinstance(item, dict) for item in held)
        ]
        if len(lists) != 1:
            raise DatasetError(
                "the file holds one object; expected a list of objects, or an object with one "
                "such list in it"
            )
        [value] = lists
    if not isinstance(value, list):
        raise DatasetError(f"expected a list of objects, found {type(value).__name__}")
    for item in value:
        is_row = isinstance(item, dict)
        yield 0, item if is_row else RowError(f"expected an object, found {type(item).__name__}")


# JSON Lines: an object a line.


def jsonl_rows(path: Path, encoding: str | None) -> _Read:
    """Read the rows of a JSON Lines file; blank lines are skipped."""
    with _open_text(path, encoding) as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE), ""), start=1):
            if not line.strip():
                continue
            if len(line) == MAX_LINE and not line.endswith("\n"):
                while (more := file.readline(MAX_LINE)) and not more.endswith("\n"):
                    pass
                yield number, RowError(f"it is longer than {MAX_LINE} characters")
                continue
            _, problem = _undecoded(line, file)
            value: Any = None
            try:
                value = None if problem else parse_json(line.rstrip())
            except json.JSONDecodeError as error:
                problem = not_json(error)
            except DatasetError as error:
                problem = str(error)
            if not problem and not isinstance(value, dict):
                problem = f"expected an object, found {type(value).__name__}"
            yield number, RowError(problem) if problem else value


# Parquet tables.

_BATCH_ROWS = 256


def parquet_rows(path: Path, _: str | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a Parquet table with their numbers, from 1; a batch is in memory at a time."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise ConfigurationError(
            "reading Parquet needs pyarrow: pip install 'ragaliq[parquet]'"
        ) from None
    number = 0
    try:
        with parquet.ParquetFile(path) as table:
            require_distinct(table.schema_arrow.names)
            for batch in table.iter_batches(batch_size=_BATCH_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except ArrowException as error:
        raise DatasetError(f"it is not a readable Parquet file ({type(error).__name__})") from None
    except (ValueError, OverflowError) as error:
        # A text that is not UTF-8, or a date beyond Python's.
        raise DatasetError(
            f"after row {number}: a value cannot be read ({type(error).__name__})"
        ) from None


def require_distinct(names: Sequence[str], where: str = "") -> None:
    """Refuse a table of which two columns have the same name."""
    for name, count in Counter(names).items():
        if count > 1:
            raise DatasetError(f"{where}two columns are called {name[:40]!r}; rename one")


# The format of a file.

_READERS: dict[str, Callable[[Path, str | None], _Read]] = {
    ".json": json_rows,
    ".jsonl": jsonl_rows,
    ".ndjson": jsonl_rows,
    ".csv": csv_rows,
    ".tsv": csv_rows,
    ".parquet": parquet_rows,
}


def reader_of(path: Path) -> Callable[[Path, str | None], _Read]:
    """Reader of the format that the name of a file implies.

    Raises:
        DatasetError: There is no such file, or its name implies no format.
    """
    if not path.exists():
        raise DatasetError(f"{path}: there is no such file")
    if path.is_dir():
        raise DatasetError(f"{path} is a folder; name a file in it")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    if suffix in _READERS:
        return _READERS[suffix]
    if suffix in (".yaml", ".yml"):
        raise DatasetError(f"{path}: YAML is not read; write an object a line as JSON (.jsonl)")
    if suffix in (".xlsx", ".xls", ".ods"):
        raise DatasetError(f"{path}: workbooks are not read; save the table as CSV (UTF-8)")
    raise DatasetError(
        f"{path}: the name does not tell the format; end it in {', '.join(_READERS)}"
    )


def rows_of(path: Path, encoding: str | None = None) -> Iterator[Row | RowError]:
    """Read the rows of a file; an unreadable row comes as an error, and reading continues.

    Args:
        path: The file.
        encoding: Encoding of a text file; by default UTF-8.
    """
    read = reader_of(path)
    try:
        for number, (line, held) in enumerate(read(path, encoding), start=1):
            where = f"row {number}" + (f" (line {line})" if line not in (0, number) else "")
            if isinstance(held, RowError):
                yield RowError(f"{where}: {held}")
            elif held is not None:
                yield Row(where, held, number)
    except DatasetError as error:
        raise DatasetError(f"{path}: {error}") from None
    except OSError as error:
        raise DatasetError(f"{path}: {error.strerror or error}") from None
