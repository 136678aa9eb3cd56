"""The spans of a file: OTLP as JSON or protobuf, the SDKs' own JSON, Phoenix's exports, a table.

What a file holds is recognised by its content, not by its name.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from sys import getsizeof
from typing import Any, NamedTuple, cast

from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.traces.encodings import (
    BadSpanError,
    is_otlp,
    is_row,
    json_spans,
    message_spans,
    row_span,
)
from ragaliq.traces.span import TraceSpan

__all__ = ["SpanProblem", "TraceGroups", "holds_traces", "spans_in"]

MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is skipped; reading it might take all memory."""
MAX_DOCUMENT_BYTES = 512 * 1024 * 1024
"""A larger document is not read as a whole: it would take several times as much memory."""
MAX_MESSAGE_BYTES = 256 * 1024 * 1024
"""A longer message is not an export request; reading it might take all memory."""

_START = 65_536
_GZIP, _PARQUET, _ZSTD = b"\x1f\x8b", b"PAR1", b"\x28\xb5\x2f\xfd"
_JSON = re.compile(rb"[\xef\xbb\xbf\s]*[{\[]\s*[\"{}\[\]]")
_LINE_OF_JSON = re.compile(rb"^[\xef\xbb\xbf \t]*[{\[]", re.MULTILINE)
_TELLING = re.compile(
    rb'"resource_?[sS]pans"\s*:|"context\.trace_id"\s*:|"context"\s*:\s*\{[^{}]*"trace_id"\s*:'
)

_Found = Iterator[tuple[str, TraceSpan | Exception]]


class SpanProblem(NamedTuple):
    """A part of a file that cannot be read: where it is, and why, without any of its text."""

    where: str
    problem: str


def holds_traces(path: Path) -> bool:
    """Whether a file holds spans and not a table of cases; False for what cannot be read."""
    try:
        with _opened(path) as file:
            start = _start_of(file)
    except OSError:
        return False
    if start.startswith(_PARQUET):
        return _is_table_of_spans(path)
    if not _JSON.match(start) and (_framing(start[:32]) or _is_zstd(start)):
        return True
    # A log may begin in the middle of a line, or with what its program said before.
    value = _LINE_OF_JSON.search(start)
    return value is not None and _TELLING.search(start, value.start()) is not None


def spans_in(path: Path) -> Iterator[TraceSpan | SpanProblem]:
    """The spans of a file; a part that cannot be read comes as a problem, and others follow.

    Raises:
        ConfigurationError: A library is missing that reads this kind of file.
        DatasetError: The file as a whole cannot be read.
        OSError: The system cannot read it.
    """
    for where, found in _found(path):
        yield found if isinstance(found, TraceSpan) else SpanProblem(where, str(found))


def _found(path: Path) -> _Found:
    with _opened(path) as file:
        try:
            start = _start_of(file)
            file.seek(0)
            if start.startswith(_PARQUET):
                yield from _table_spans(path)
            elif _is_zstd(start):
                raise DatasetError("it is compressed with zstd; unpack it, or pack it with gzip")
            elif not _JSON.match(start) and (framing := _framing(start[:32])):
                yield from _protobuf_spans(file, framing)
            else:
                for where, value in _json_values(file):
                    if isinstance(value, DatasetError):
                        yield where, value
                    else:
                        for place, span in _spans_of(value):
                            yield f"{where}, {place}" if place else where, span
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise DatasetError(f"it is not a complete gzip file ({type(error).__name__})") from None


def _start_of(file: io.BufferedReader) -> bytes:
    """The beginning of a file, or as much of it as there is where it breaks off."""
    start = b""
    with suppress(gzip.BadGzipFile, EOFError, zlib.error):
        while len(start) < _START and (more := file.read1(_START - len(start))):
            start += more
    return start


def _is_zstd(start: bytes) -> bool:
    # The collector packs each message by itself, behind its length.
    return _ZSTD in (start[:4], start[4:8])


@contextmanager
def _opened(path: Path) -> Iterator[io.BufferedReader]:
    with path.open("rb") as file:
        is_gzip = file.read(2) == _GZIP
        file.seek(0)
        if not is_gzip:
            yield file
            return
        with gzip.open(file) as unpacked:
            yield cast("io.BufferedReader", unpacked)


# --- JSON -----------------------------------------------------------------------------------------

_STRANGE = BadSpanError("it is neither a span nor an export request with spans")
_NOT_JSON = "it is not JSON"
_DECODER = json.JSONDecoder()
_BETWEEN = re.compile(r"[ \t\r\n,]*")
_NEXT_VALUE = re.compile(r"^[{\[]", re.MULTILINE)

_Values = Iterator[tuple[str, Any | DatasetError]]


def _spans_of(value: Any) -> _Found:
    if is_otlp(value):
        yield from json_spans(value)
        return
    if is_row(value):
        yield "", row_span(value)
        return
    if isinstance(value, Mapping):
        value = value.get("data")  # what Phoenix's server answers
    if not isinstance(value, list):
        yield "", _STRANGE
        return
    for number, item in enumerate(value, start=1):
        for place, found in _spans_of(item) if isinstance(item, Mapping) else [("", _STRANGE)]:
            yield f"record {number}" + (f", {place}" if place else ""), found


def _json_values(file: io.BufferedReader) -> _Values:
    """The values of a file, each with its place, or the reason why one cannot be read.

    A file whose first line is a whole value is read line by line; others as a whole, up to
    `MAX_DOCUMENT_BYTES`.
    """
    first = file.readline(MAX_LINE_BYTES)
    value = _parsed(first)
    if first.strip() and not (isinstance(value, DatasetError) and _NOT_JSON in str(value)):
        yield "line 1", value
        yield from _lines(file)
        return
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


def _lines(file: io.BufferedReader) -> _Values:
    number = 1
    while line := file.readline(MAX_LINE_BYTES):
        number += 1
        where = f"line {number}"
        if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
            while (rest := file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield where, DatasetError(f"it is longer than {MAX_LINE_BYTES} bytes")
        elif line.strip():
            value = _parsed(line)
            if isinstance(value, DatasetError) and "Extra data" in str(value):
                # Files put after each other whose last line was not ended.
                yield from ((where, each) for _, each in _values(line.decode("utf-8-sig")))
            else:
                yield where, value


def _values(text: str) -> _Values:
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
        return DatasetError(f"byte {byte:#04x} in column {column} is not UTF-8")
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


# --- protobuf: one message, several after each other, or each after its length --------------------

_RESOURCE_SPANS = 0x0A  # field 1, with a length
_INSIDE = (0x0A, 0x12, 0x1A)  # what may begin a ResourceSpans


def _protobuf_spans(file: io.BufferedReader, framing: str) -> _Found:
    """The spans of a file, each with its place in it; one part of it is in memory at a time."""
    try:
        from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, TracesData
    except ImportError:
        raise ConfigurationError(
            "reading traces in protobuf needs opentelemetry-proto: pip install 'ragaliq[otlp]'"
        ) from None
    from google.protobuf.message import DecodeError

    for number, message in enumerate(_messages(file, framing), start=1):
        try:
            if framing == "none":
                parts: list[Any] = [ResourceSpans.FromString(message)]
            else:
                parts = list(TracesData.FromString(message).resource_spans)
        except DecodeError:
            raise DatasetError(f"message {number}: it cannot be read as OTLP") from None
        for part in parts:
            for place, span in message_spans(part):
                yield f"message {number}, {place}", span


def _framing(start: bytes) -> str | None:
    """`none`, `varint` or `uint32` (the collector's file exporter); None where it is not OTLP."""
    if not start.strip():
        return None
    length, used = _varint(start)
    if used and _is_field(start[used:], (_RESOURCE_SPANS,), length):
        return "varint"
    length, used = _varint(start[1:])
    if start[0] == _RESOURCE_SPANS and _is_field(start[1 + used :], _INSIDE, length):
        return "none"
    length = int.from_bytes(start[:4], "big")
    return "uint32" if _is_field(start[4:], (_RESOURCE_SPANS,), length) else None


def _is_field(data: bytes, tags: Sequence[int], size: int) -> bool:
    """Whether a message of a size may begin so: with a field that has a length and fits into it."""
    length, used = _varint(data[1:])
    return bool(data) and data[0] in tags and used > 0 and 1 + used + length <= size


def _messages(file: io.BufferedReader, framing: str) -> Iterator[bytes]:
    number = 0
    while file.peek(1):
        number += 1
        if framing == "none" and file.read(1) != b"\x0a":
            raise DatasetError(f"message {number}: it cannot be read as OTLP")
        length = _length(file, framing)
        if length > MAX_MESSAGE_BYTES:
            raise DatasetError(f"message {number}: it is longer than {MAX_MESSAGE_BYTES} bytes")
        message = file.read(length)
        if len(message) < length:
            raise DatasetError(f"message {number}: the file breaks off in it")
        yield message


def _length(file: io.BufferedReader, framing: str) -> int:
    if framing == "uint32":
        head = file.read(4)
        return int.from_bytes(head, "big") if len(head) == 4 else MAX_MESSAGE_BYTES + 1
    data = b""
    while len(data) < 10:
        data += file.read(1)
        if not data or data[-1] < 0x80:
            break
    return _varint(data)[0]


def _varint(data: bytes) -> tuple[int, int]:
    """A number and the bytes it takes; 0 where there is none."""
    number = 0
    for used, byte in enumerate(data[:10]):
        number |= (byte & 0x7F) << (7 * used)
        if byte < 0x80:
            return number, used + 1
    return 0, 0


# --- Parquet, as Phoenix's data frames are written ------------------------------------------------

_BATCH_ROWS = 256


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


def _table_spans(path: Path) -> _Found:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise ConfigurationError(
            "reading Parquet needs pyarrow: pip install 'ragaliq[parquet]'"
        ) from None
    try:
        with parquet.ParquetFile(path) as table:
            number = 0
            for batch in table.iter_batches(batch_size=_BATCH_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    yield f"row {number}", row_span(row)
    except (ArrowException, ValueError, OverflowError) as error:
        raise DatasetError(f"it cannot be read as Parquet ({type(error).__name__})") from None


# --- putting traces together ----------------------------------------------------------------------

_SPAN_BYTES = 1_000
"""About what a span takes without its texts."""


class TraceGroups:
    """Holds the spans of traces that may not be complete yet, in bounded memory.

    Spans of one trace may be anywhere in a file. As long as all of them fit, every trace is held to
    the end; then the traces that got no span for the longest time are given out first, and what
    comes of them afterwards is late.

    Args:
        max_bytes: About how much is held.

    Attributes:
        spans: How many spans it was given.
        late: Those of traces that had been given out.
    """

    def __init__(self, *, max_bytes: int = 512 * 1024 * 1024) -> None:
        self.spans = 0
        self.late = 0
        self._max_bytes = max_bytes
        self._held: OrderedDict[str, list[TraceSpan]] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._bytes = 0
        self._gone: set[bytes] = set()

    def add(self, span: TraceSpan) -> Iterator[list[TraceSpan]]:
        """Take a span; yields the traces that are given out for it."""
        self.spans += 1
        trace = span.trace_id
        if bytes.fromhex(trace) in self._gone:
            self.late += 1
            return
        size = _size(span)
        self._held.setdefault(trace, []).append(span)
        self._held.move_to_end(trace)
        self._sizes[trace] = self._sizes.get(trace, 0) + size
        self._bytes += size
        while self._bytes > self._max_bytes:
            yield self._given_out(next(iter(self._held)))

    def rest(self) -> Iterator[list[TraceSpan]]:
        """Everything that is held, when no more spans come."""
        while self._held:
            yield self._given_out(next(iter(self._held)))

    def _given_out(self, trace: str) -> list[TraceSpan]:
        self._bytes -= self._sizes.pop(trace)
        self._gone.add(bytes.fromhex(trace))
        return self._held.pop(trace)


def _size(span: TraceSpan) -> int:
    events = [(event, event.name, event.attributes) for event in span.events]
    links = [(link, link.trace_id, link.span_id, link.attributes) for link in span.links]
    todo: list[object] = [[span.name, span.attributes, events, links]]
    total = _SPAN_BYTES
    while todo:
        held = todo.pop()
        total += getsizeof(held)
        if isinstance(held, Mapping):
            todo += held
            todo += held.values()
        elif isinstance(held, list | tuple):
            todo += held
    return total
