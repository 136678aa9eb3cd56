"""Files of traces, recognised by the beginning of their content, not by their names.

Only the annex `traces` reads them: it is imported if a file holds spans.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import cast

from ragaliq.errors import DatasetError

_START = 65_536
_BROKEN_GZIP = (gzip.BadGzipFile, EOFError, zlib.error)
_GZIP, _PARQUET, _ZSTD = b"\x1f\x8b", b"PAR1", b"\x28\xb5\x2f\xfd"
_JSON = re.compile(rb"[\xef\xbb\xbf\s]*[{\[]\s*[\"{}\[\]]")
_NEVER_IN_TEXT = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f]")
_LINE_OF_JSON = re.compile(rb"^[\xef\xbb\xbf \t]*[{\[]", re.MULTILINE)
_TELLING = re.compile(
    rb'"resource_?(?:[sS]pans|[lL]ogs)"\s*:|"context\.trace_id"\s*:|"context"\s*:\s*\{[^{}]*"trace_id"\s*:'
)


def holds_traces(path: Path) -> bool:
    """True if a file holds spans and not a table of cases; False if it cannot be read."""
    try:
        with opened(path) as (_, start):
            form = form_of(start)
        if form == "parquet":
            return _is_table_of_spans(path)
    except OSError:
        return False
    # A log may begin in the middle of a line, or with what its program said before.
    value = _LINE_OF_JSON.search(start) if form == "json" else None
    return form != "json" or (
        value is not None and _TELLING.search(start, value.start()) is not None
    )


@contextmanager
def opened(path: Path) -> Iterator[tuple[io.BufferedReader, bytes]]:
    """Open a file, decompressed, with its beginning, or the readable part of it."""
    with (
        path.open("rb") as packed,
        gzip.open(packed) if packed.peek(2)[:2] == _GZIP else nullcontext(packed) as unpacked,
    ):
        file, start = cast("io.BufferedReader", unpacked), b""
        with suppress(*_BROKEN_GZIP):
            while len(start) < _START and (more := file.read1(_START - len(start))):
                start += more
        file.seek(0)
        try:
            yield file, start
        except _BROKEN_GZIP as error:
            raise DatasetError(f"it is not a complete gzip file ({type(error).__name__})") from None


def form_of(start: bytes) -> str:
    """`parquet`, `zstd`, `json`, for any text, or how messages of protobuf's are framed."""
    if start.startswith(_PARQUET):
        return "parquet"
    if _ZSTD in (start[:4], start[4:8]):  # the collector packs each message, behind its length
        return "zstd"
    # A tag of protobuf's may be a line feed, and a length any letter; but not all tags are text.
    is_text = _JSON.match(start) or not _NEVER_IN_TEXT.search(start)
    return "json" if is_text else _framing(start[:32]) or "json"


_RESOURCE_SPANS = 0x0A  # field 1, with a length
_INSIDE = (0x0A, 0x12, 0x1A)  # what may begin a ResourceSpans


def _framing(start: bytes) -> str | None:
    """`none`, `varint` or `uint32` (the collector's file exporter); None where it is not OTLP."""
    if not start.strip():
        return None
    length, used = varint(start)
    if used and _is_field(start[used:], (_RESOURCE_SPANS,), length):
        return "varint"
    length, used = varint(start[1:])
    if start[0] == _RESOURCE_SPANS and _is_field(start[1 + used :], _INSIDE, length):
        return "none"
    length = int.from_bytes(start[:4], "big")
    return "uint32" if _is_field(start[4:], (_RESOURCE_SPANS,), length) else None


def _is_field(data: bytes, tags: Sequence[int], size: int) -> bool:
    """True if a message of a size may begin like this: with a field whose length fits."""
    length, used = varint(data[1:])
    return bool(data) and data[0] in tags and used > 0 and 1 + used + length <= size


def varint(data: bytes) -> tuple[int, int]:
    """Decode a varint: the number and its bytes; 0 bytes if there is none."""
    number = 0
    for used, byte in enumerate(data[:10]):
        number |= (byte & 0x7F) << (7 * used)
        if byte < 0x80:
            return number, used + 1
    return 0, 0


def _is_table_of_spans(path: Path) -> bool:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        return False
    try:
        with parquet.ParquetFile(path) as table:
            return {"context.trace_id", "context.span_id"} <= set(table.schema_arrow.names)
    except (ArrowException, ValueError, OverflowError):
        return False
