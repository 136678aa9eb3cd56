"""Spans of a file: OTLP as JSON or protobuf, SDKs' own JSON, Phoenix's exports, a table.

The format is recognised by the content, not by the file's name.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from sys import getsizeof
from typing import Any

from ragaliq.datasets.rows import NOT_JSON, not_json, parquet_rows
from ragaliq.datasets.trace_files import form_of, opened, varint
from ragaliq.errors import ConfigurationError, DatasetError, RowError
from ragaliq.traces import llama_index
from ragaliq.traces.conventions import KIND
from ragaliq.traces.otlp import (
    BadSpanError,
    Parts,
    id_of,
    member,
    request_spans,
    resource_spans,
    text_of,
)
from ragaliq.traces.span import SpanEvent, TraceSpan

MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is skipped; reading it might take all memory."""
MAX_DOCUMENT_BYTES = 512 * 1024 * 1024
"""A larger document is not read as a whole: it would take several times as much memory."""
MAX_MESSAGE_BYTES = 256 * 1024 * 1024
"""A longer message is not an export request; reading it might take all memory."""


def spans_in(path: Path) -> Iterator[TraceSpan | RowError]:
    """Read the spans of a file; an unreadable part comes as an error, and reading continues.

    The rest of a truncated file comes as an error too.

    Raises:
        ConfigurationError: A library is missing that reads this kind of file.
        DatasetError: Nothing of the file can be read.
    """
    has_spans = False
    try:
        with opened(path) as (file, start):
            for where, each in _found_in(path, file, form_of(start)):
                has_spans = has_spans or isinstance(each, TraceSpan)
                yield each if isinstance(each, TraceSpan) else RowError(f"{where}: {each}")
    except DatasetError as error:
        if not has_spans:
            raise DatasetError(f"{path}: {error}") from None
        yield RowError(f"the rest of the file: {error}")
    except OSError as error:
        raise DatasetError(f"{path}: {error.strerror or error}") from None


def _found_in(path: Path, file: io.BufferedReader, form: str) -> Parts:
    if form == "zstd":
        raise DatasetError("it is compressed with zstd; unpack it, or pack it with gzip")
    if form == "parquet":
        return ((f"row {number}", _row_span(row)) for number, row in parquet_rows(path))
    return _json_file_spans(file) if form == "json" else _protobuf_spans(file, form)


# --- JSON -----------------------------------------------------------------------------------------

_DECODER = json.JSONDecoder()
_BETWEEN = re.compile(r"[ \t\r\n,]*")
_NEXT_VALUE = re.compile(r"^[{\[]", re.MULTILINE)
_SCALAR = re.compile(  # to the end of its line
    r'(?:null|true|false|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|"(?:[^"\\\n]|\\.)*")[ \t\r]*$',
    re.MULTILINE,
)

_Values = Iterator[tuple[str, Any | DatasetError]]


def _json_file_spans(file: io.BufferedReader) -> Parts:
    for where, value in _json_values(file):
        if isinstance(value, DatasetError):
            yield where, value
            continue
        for place, span in _spans_of(value):
            yield f"{where}, {place}" if place else where, span


_REQUESTS = ("resource_spans", "resource_logs")


def _spans_of(value: Any) -> Parts:
    is_object = isinstance(value, Mapping)
    if is_object and any(member(value, name) is not None for name in _REQUESTS):
        yield from request_spans(value)
    elif is_object and _is_row(value):
        yield "", _row_span(value)
    else:
        listed = value.get("data") if is_object else value  # what Phoenix's server answers
        for number, item in enumerate(listed if isinstance(listed, list) else (), start=1):
            for place, found in _spans_of(item if isinstance(item, Mapping) else None):
                yield f"record {number}" + (f", {place}" if place else ""), found
        if not isinstance(listed, list):
            yield "", BadSpanError("it is neither a span nor an export request with spans")


def _json_values(file: io.BufferedReader) -> _Values:
    """Values of a file, each with its place, or an error for an unreadable one.

    A file whose first line is a whole value is read line by line; others as a whole, up to
    `MAX_DOCUMENT_BYTES`.
    """
    first = file.readline(MAX_LINE_BYTES)
    found = list(_values(first))
    if found and not any(NOT_JSON in str(v) for _, v in found if isinstance(v, DatasetError)):
        return chain(found, _lines(file))
    del found
    data = first + file.read(MAX_DOCUMENT_BYTES + 1 - len(first))
    if len(data) > MAX_DOCUMENT_BYTES:
        raise DatasetError(
            f"it is larger than {MAX_DOCUMENT_BYTES} bytes, and JSON over several lines is read as "
            "a whole; write a request a line (.jsonl), as the collector's file exporter does"
        )
    return _values(data)


def _lines(file: io.BufferedReader) -> _Values:
    number = 1
    while line := file.readline(MAX_LINE_BYTES):
        number += 1
        if len(line) < MAX_LINE_BYTES or line.endswith(b"\n"):
            yield from _values(line, number)
            continue
        yield f"line {number}", DatasetError(f"it is longer than {MAX_LINE_BYTES} bytes")
        while line and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE_BYTES)


def _values(data: bytes, line: int = 1) -> _Values:
    """Consecutive values; after an unreadable one, the next that begins a line."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte, before = data[error.start], data[: error.start]
        column = error.start - before.rfind(b"\n")
        problem = f"byte {byte:#04x} in column {column} is not UTF-8"
        if lines := before.count(b"\n"):  # a document over several lines: nothing of it is read
            raise DatasetError(f"line {line + lines}: {problem}") from None
        yield f"line {line}", DatasetError(problem)
        return
    del data
    at = counted = 0
    while between := _BETWEEN.match(text, at):
        start = between.end()
        if start == len(text):
            return
        problem, end = NOT_JSON, start
        try:
            if text[start] in "{[":  # or else another output of the program
                value, at = _DECODER.raw_decode(text, start)
                problem = ""
            elif scalar := _SCALAR.match(text, start):  # JSON as well, though no span
                value, at, problem = None, scalar.end(), ""
        except json.JSONDecodeError as error:
            problem, end = not_json(error), error.pos
        except RecursionError:
            problem = "it is nested too deeply"
        except ValueError:
            problem = "it holds a number of too many digits"
        line, counted = line + text.count("\n", counted, start), start
        if not problem:
            yield f"line {line}", value
            continue
        at_line = line + text.count("\n", start, end)
        yield f"line {at_line}", DatasetError(problem)
        following = _NEXT_VALUE.search(text, start + 1)
        at = following.start() if following else len(text)


# --- protobuf: one message, several after each other, or each after its length --------------------


def _protobuf_spans(file: io.BufferedReader, framing: str) -> Parts:
    """Spans of a protobuf file, each with its place; one part is in memory at a time."""
    try:
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, TracesData
    except ImportError:
        raise ConfigurationError(
            "reading traces in protobuf needs opentelemetry-proto: pip install 'ragaliq[otlp]'"
        ) from None
    for number, message in enumerate(_messages(file, framing), start=1):
        try:
            if framing == "none":
                parts: list[Any] = [ResourceSpans.FromString(message)]
            else:
                parts = list(TracesData.FromString(message).resource_spans)
        except DecodeError:
            raise DatasetError(f"message {number}: it cannot be read as OTLP") from None
        for part in parts:
            for place, span in resource_spans(part):
                yield f"message {number}, {place}", span


def _messages(file: io.BufferedReader, framing: str) -> Iterator[bytes]:
    number = 0
    while file.peek(1):
        number += 1
        if framing == "none" and file.read(1) != b"\x0a":
            raise DatasetError(f"message {number}: it cannot be read as OTLP")
        if framing == "uint32":
            head = file.read(4)
            length = int.from_bytes(head, "big") if len(head) == 4 else MAX_MESSAGE_BYTES + 1
        else:
            head = file.read(1)
            while head and head[-1] >= 0x80 and len(head) < 10 and (more := file.read(1)):
                head += more
            length = varint(head)[0]
        if length > MAX_MESSAGE_BYTES:
            raise DatasetError(f"message {number}: it is longer than {MAX_MESSAGE_BYTES} bytes")
        message = file.read(length)
        if len(message) < length:
            raise DatasetError(f"message {number}: the file breaks off in it")
        yield message


# --- rows: a span as console exporters and Phoenix write it, in JSON or in a table ----------------

_PREFIX = "attributes."
_METHOD = re.compile(r"[A-Z]\w*\._{0,2}[a-z]\w*")
# Whose values are objects themselves.
_OBJECTS = ("metadata", "input.value", "output.value", "llm.prompt_template.variables")
_MOST_NESTED_ROW = 16
_BILLION = 1_000_000_000
# The nanoseconds of a unit, and the least number that is in it: 1973 in all of them.
_UNITS = ((1, 10**17), (1_000, 10**14), (1_000_000, 10**11), (_BILLION, 0))


def _is_row(value: Mapping[str, Any]) -> bool:
    context = value.get("context")
    return "context.trace_id" in value or (isinstance(context, Mapping) and "trace_id" in context)


def _row_span(row: Mapping[str, Any]) -> TraceSpan | BadSpanError:
    try:
        attributes = dict(_row_attributes(row))
        kind = row.get("span_kind")
        if isinstance(kind, str) and kind:
            attributes.setdefault(KIND, kind)
        context, status, resource = (
            held if isinstance(held := row.get(name), Mapping) else {}
            for name in ("context", "status", "resource")
        )
        plain, parent, events = resource.get("attributes"), row.get("parent_id"), row.get("events")
        trace_id = row.get("context.trace_id", context.get("trace_id"))
        span_id = row.get("context.span_id", context.get("span_id"))
        return TraceSpan(
            trace_id=id_of(trace_id, 32, "trace_id"),
            span_id=id_of(span_id, 16, "span_id"),
            parent_id=None if _is_absent(parent) else id_of(parent, 16, "parent_id"),
            name=text_of(row.get("name")),
            start_ns=_nanoseconds(row, "start_time"),
            end_ns=_nanoseconds(row, "end_time"),
            is_error=status.get("status_code", row.get("status_code")) == "ERROR",
            attributes=attributes,
            events=tuple(
                SpanEvent(
                    text_of(event.get("name")),
                    held if isinstance(held := event.get("attributes"), Mapping) else {},
                )
                for event in (events if isinstance(events, list) else ())
                if isinstance(event, Mapping)
            ),
            scope=_row_scope(row, attributes),
            resource=dict(plain) if isinstance(plain, Mapping) else {},
        )
    except BadSpanError as error:
        return error


def _nanoseconds(row: Mapping[str, Any], name: str) -> int:
    """A time in nanoseconds, from ISO 8601 or a number; 0 where it is missing.

    Numbers are Unix time in the unit that makes a date of this age of them: pandas writes
    milliseconds, others seconds, microseconds or nanoseconds.
    """
    value = row.get(name)
    if value is None:
        return 0
    if isinstance(value, str):
        with suppress(ValueError):
            value = datetime.fromisoformat(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1 << 64:
        return int(value * next(unit for unit, least in _UNITS if value >= least))
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        since = moment - datetime.fromtimestamp(0, UTC)
        return (since.days * 86_400 + since.seconds) * _BILLION + since.microseconds * 1000
    raise BadSpanError(f"{name} is not a time")


def _row_attributes(row: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    named = {k.removeprefix(_PREFIX): value for k, value in row.items() if k.startswith(_PREFIX)}
    for held in (row.get("attributes"), named):
        if isinstance(held, Mapping):
            yield from _flattened(_without_absent(held, 0), "")


def _flattened(held: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, object]]:
    """Nested attributes by their full names."""
    for name, value in held.items():
        full = f"{prefix}{name}"
        if isinstance(value, Mapping) and full not in _OBJECTS:
            yield from _flattened(value, f"{full}.")
        else:
            yield full, value


def _without_absent(value: Any, depth: int) -> Any:
    """Remove values of a row that are empty in the table."""
    if depth > _MOST_NESTED_ROW:
        raise BadSpanError("an attribute is nested too deeply")
    if isinstance(value, Mapping):
        kept = {str(k): v for k, v in value.items() if not _is_absent(v)}
        return {name: _without_absent(held, depth + 1) for name, held in kept.items()}
    if isinstance(value, list):
        return [_without_absent(held, depth + 1) for held in value]
    return value


def _is_absent(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _row_scope(row: Mapping[str, Any], attributes: Mapping[str, object]) -> str:
    scope = row.get("instrumentation_scope", row.get("scope"))
    named = text_of(scope.get("name") if isinstance(scope, Mapping) else scope)
    # Phoenix keeps no scope. LlamaIndex's spans are known by their names, a class and a method.
    is_method = _METHOD.fullmatch(text_of(row.get("name"))) is not None and KIND in attributes
    return named or (llama_index.SCOPE if is_method else "")


# --- putting traces together ----------------------------------------------------------------------

_SPAN_BYTES = 1_000
"""About what a span takes without its texts."""


class TraceGroups:
    """Groups spans by trace, in bounded memory.

    Spans of one trace may be anywhere in a file. While all of them fit, every trace is held to the
    end; after that, traces without new spans for the longest time are yielded first, and their
    further spans are late.

    Args:
        max_bytes: Approximate limit.

    Attributes:
        spans: Number of spans added.
        late: Number of late spans.
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
        """Add a span; yield the traces that must go for it."""
        self.spans += 1
        trace = span.trace_id
        if bytes.fromhex(trace) in self._gone:
            self.late += 1
            return
        size = size_of(span)
        self._held.setdefault(trace, []).append(span)
        self._held.move_to_end(trace)
        self._sizes[trace] = self._sizes.get(trace, 0) + size
        self._bytes += size
        yield from self._given_out(self._max_bytes)

    def rest(self) -> Iterator[list[TraceSpan]]:
        """Yield all remaining traces after the last span."""
        yield from self._given_out(-1)

    def _given_out(self, down_to: int) -> Iterator[list[TraceSpan]]:
        while self._held and self._bytes > down_to:
            trace, spans = self._held.popitem(last=False)
            self._bytes -= self._sizes.pop(trace)
            self._gone.add(bytes.fromhex(trace))
            yield spans


def size_of(span: TraceSpan) -> int:
    """Bytes that a span takes, about."""
    todo: list[object] = [[span.name, span.attributes, span.events]]
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
