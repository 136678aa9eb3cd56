"""Spans in OTLP's protobuf: one message, several after each other, or each after its length."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.traces.files.values import BadSpanError
from ragaliq.traces.span import SpanEvent, SpanLink, TraceSpan

if TYPE_CHECKING:
    from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

__all__ = ["is_protobuf", "protobuf_spans"]

MAX_MESSAGE_BYTES = 256 * 1024 * 1024
"""A longer message is no export request; reading it might take all memory."""

_RESOURCE_SPANS = 0x0A  # field 1, with a length
_INSIDE = (0x0A, 0x12, 0x1A)  # what may begin a ResourceSpans
_KINDS = ("internal", "internal", "server", "client", "producer", "consumer")
_ERROR = 2
_MOST_NESTED = 64


def is_protobuf(start: bytes) -> bool:
    """Whether a file that begins so holds export requests."""
    return _framing(start) is not None


def protobuf_spans(file: BinaryIO) -> Iterator[tuple[str, TraceSpan | BadSpanError]]:
    """The spans of a file, each with its place in it; one part of it is in memory at a time.

    Raises:
        ConfigurationError: opentelemetry-proto is not installed.
        DatasetError: The file breaks off, or is something else.
    """
    try:
        from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, TracesData
    except ImportError:
        raise ConfigurationError(
            "reading traces in protobuf needs opentelemetry-proto: pip install 'ragaliq[otlp]'"
        ) from None
    from google.protobuf.message import DecodeError

    start = file.read(32)
    framing = _framing(start)
    stream = io.BufferedReader(_Rest(start, file))
    number = 0
    for number, message in enumerate(_messages(stream, framing), start=1):
        try:
            if framing == "none":
                parts: list[Any] = [ResourceSpans.FromString(message)]
            else:
                parts = list(TracesData.FromString(message).resource_spans)
        except DecodeError:
            raise DatasetError(f"message {number}: it is no OTLP that can be read") from None
        for part in parts:
            for name, span in _spans(part):
                yield f"message {number}, {name}", span


class _Rest(io.RawIOBase):
    """What was read already, and the rest of the file."""

    def __init__(self, start: bytes, file: BinaryIO) -> None:
        self._start = start
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._start or self._file.read(len(buffer))
        taken = data[: len(buffer)]
        self._start = data[len(taken) :] if self._start else b""
        buffer[: len(taken)] = taken
        return len(taken)


def _framing(start: bytes) -> str | None:
    """`none`, `varint` or `uint32` (as the collector's file exporter frames), or no OTLP."""
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


def _messages(stream: io.BufferedReader[_Rest], framing: str | None) -> Iterator[bytes]:
    number = 0
    while stream.peek(1):
        number += 1
        if framing == "none" and stream.read(1) != b"\x0a":
            raise DatasetError(f"message {number}: it is no OTLP that can be read")
        length = _length(stream, framing)
        if length > MAX_MESSAGE_BYTES:
            raise DatasetError(f"message {number}: it is longer than {MAX_MESSAGE_BYTES} bytes")
        message = stream.read(length)
        if len(message) < length:
            raise DatasetError(f"message {number}: the file breaks off in it")
        yield message


def _length(stream: io.BufferedReader[_Rest], framing: str | None) -> int:
    if framing == "uint32":
        head = stream.read(4)
        return int.from_bytes(head, "big") if len(head) == 4 else MAX_MESSAGE_BYTES + 1
    data = b""
    while len(data) < 10:
        data += stream.read(1)
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


def _spans(part: ResourceSpans) -> Iterator[tuple[str, TraceSpan | BadSpanError]]:
    resource = _attributes(part.resource.attributes)
    for s, of_scope in enumerate(part.scope_spans):
        for n, span in enumerate(of_scope.spans):
            place = f"scope_spans[{s}].spans[{n}]"
            if len(span.trace_id) != 16 or len(span.span_id) != 8:
                yield place, BadSpanError("its ids are not of 16 and 8 bytes")
            else:
                yield place, _span(span, of_scope.scope.name, resource)


def _span(span: Span, scope: str, resource: dict[str, object]) -> TraceSpan:
    return TraceSpan(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex() if span.parent_span_id.strip(b"\0") else None,
        name=span.name,
        kind=_KINDS[span.kind] if 0 <= span.kind < len(_KINDS) else "internal",
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        is_error=span.status.code == _ERROR,
        attributes=_attributes(span.attributes),
        events=tuple(
            SpanEvent(
                name=event.name,
                time_ns=event.time_unix_nano,
                attributes=_attributes(event.attributes),
            )
            for event in span.events
        ),
        links=tuple(
            SpanLink(
                trace_id=link.trace_id.hex(),
                span_id=link.span_id.hex(),
                attributes=_attributes(link.attributes),
            )
            for link in span.links
            if len(link.trace_id) == 16 and len(link.span_id) == 8
        ),
        scope=scope,
        resource=resource,
        dropped_attributes=span.dropped_attributes_count,
    )


def _attributes(pairs: Any) -> dict[str, object]:
    return {pair.key: _value(pair.value, 0) for pair in pairs}


def _value(held: Any, depth: int) -> object:
    which = held.WhichOneof("value")
    if which is None or depth > _MOST_NESTED:
        return None
    if which == "array_value":
        return [_value(each, depth + 1) for each in held.array_value.values]
    if which == "kvlist_value":
        return {pair.key: _value(pair.value, depth + 1) for pair in held.kvlist_value.values}
    value: object = getattr(held, which)
    return value.hex() if isinstance(value, bytes) else value
