"""The spans of a file, whatever it is written in; found out by what is in it, not by its name."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from ragaliq.errors import DatasetError
from ragaliq.traces.files.flat import flat_span, is_flat
from ragaliq.traces.files.json_values import json_values
from ragaliq.traces.files.otlp_json import is_otlp, otlp_spans
from ragaliq.traces.files.otlp_proto import is_protobuf, protobuf_spans
from ragaliq.traces.files.parquet import parquet_spans
from ragaliq.traces.files.values import BadSpanError
from ragaliq.traces.span import TraceSpan

__all__ = ["SpanProblem", "holds_traces", "spans_in"]

_START = 65_536
_GZIP, _PARQUET, _ZSTD = b"\x1f\x8b", b"PAR1", b"\x28\xb5\x2f\xfd"
_JSON = re.compile(rb"[\xef\xbb\xbf\s]*[{\[]\s*[\"{}\[\]]")
_LINE_OF_JSON = re.compile(rb"^[\xef\xbb\xbf \t]*[{\[]", re.MULTILINE)
_TELLING = re.compile(
    rb'"resource_?[sS]pans"\s*:|"context\.trace_id"\s*:|"context"\s*:\s*\{[^{}]*"trace_id"\s*:'
)


class SpanProblem(NamedTuple):
    """A part of a file that cannot be read: where it is, and why, without any of its text."""

    where: str
    problem: str


def holds_traces(path: Path) -> bool:
    """Whether a file holds spans and no table of cases; False for what cannot be read."""
    try:
        with _opened(path) as file:
            start = _start_of(file)
    except OSError:
        return False
    if start.startswith(_PARQUET):
        return next(parquet_spans(path, look_only=True), None) is not None
    if not _JSON.match(start) and (is_protobuf(start[:32]) or _is_zstd(start)):
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


def _found(path: Path) -> Iterator[tuple[str, TraceSpan | Exception]]:
    with _opened(path) as file:
        try:
            start = _start_of(file)
            file.seek(0)
            if start.startswith(_PARQUET):
                yield from parquet_spans(path)
            elif _is_zstd(start):
                raise DatasetError("it is compressed with zstd; unpack it, or pack it with gzip")
            elif is_protobuf(start[:32]) and not _JSON.match(start):
                yield from protobuf_spans(file)
            else:
                yield from _json_spans(file)
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise DatasetError(f"it is no complete gzip file ({type(error).__name__})") from None


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


def _json_spans(file: BinaryIO) -> Iterator[tuple[str, TraceSpan | Exception]]:
    for where, value in json_values(file):
        if isinstance(value, DatasetError):
            yield where, value
            continue
        for place, found in _spans_of(value):
            yield f"{where}, {place}" if place else where, found


def _spans_of(value: Any) -> Iterator[tuple[str, TraceSpan | Exception]]:
    if is_otlp(value):
        yield from otlp_spans(value)
    elif is_flat(value):
        yield "", flat_span(value)
    elif isinstance(value, list) or _listed(value) is not None:
        listed = value if isinstance(value, list) else _listed(value) or []
        for number, item in enumerate(listed, start=1):
            for place, found in _spans_of(item) if isinstance(item, Mapping) else [("", _STRANGE)]:
                yield f"record {number}" + (f", {place}" if place else ""), found
    else:
        yield "", _STRANGE


_STRANGE = BadSpanError("it is no span, and no export request with spans")


def _listed(value: Any) -> list[Any] | None:
    """The list in what Phoenix's server answers."""
    data = value.get("data") if isinstance(value, Mapping) else None
    return data if isinstance(data, list) else None
