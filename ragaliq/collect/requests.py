"""Export requests of OTLP over HTTP: their spans, and the replies."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from ragaliq.traces.otlp import attributes_of, log_event, otlp_span, request_spans
from ragaliq.traces.span import TraceSpan

PROTOBUF, JSON = "application/x-protobuf", "application/json"
_GZIP = 31


class BadRequestError(ValueError):
    """A request is invalid; the message quotes nothing of it."""


class Request(NamedTuple):
    """Export request as received.

    Attributes:
        signal: `traces` or `logs`.
        is_json: Whether it is JSON, or else protobuf.
        is_gzip: Whether it is compressed.
        body: Its bytes.
    """

    signal: str
    is_json: bool
    is_gzip: bool
    body: bytes


class RawSpan(NamedTuple):
    """Span, or log record of one, that has not been parsed yet.

    Attributes:
        trace_id: 32 lower-case hex digits.
        scope: Name of its instrumentation.
        names: The names of its attributes.
        read: Reads it.
    """

    trace_id: str
    scope: str
    names: Iterator[str]
    read: Callable[[], TraceSpan | None]


def raw_spans(request: Request, *, max_bytes: int) -> Iterator[RawSpan | None]:
    """Spans of a request, None for one that cannot be parsed.

    Raises:
        BadRequestError: It is not an export request, or larger than `max_bytes` when unpacked.
    """
    body = _unpacked(request, max_bytes)
    if request.is_json:
        yield from _in_json(body)
        return
    kind = ExportTraceServiceRequest if request.signal == "traces" else ExportLogsServiceRequest
    try:
        message: Any = kind.FromString(body)
    except DecodeError:
        raise BadRequestError("the body cannot be read as OTLP") from None
    if request.signal == "logs":
        for part in message.resource_logs:
            for of_scope in part.scope_logs:
                yield from map(_raw_log, of_scope.log_records)
        return
    for part in message.resource_spans:
        resource = attributes_of(part.resource)
        for of_scope in part.scope_spans:
            for span in of_scope.spans:
                yield _raw_span(span, of_scope.scope.name, resource)


def _raw_span(span: Any, scope: str, resource: Any) -> RawSpan | None:
    if len(span.trace_id) != 16 or len(span.span_id) != 8:
        return None
    names = (pair.key for pair in span.attributes)
    return RawSpan(span.trace_id.hex(), scope, names, lambda: otlp_span(span, scope, resource))


def _raw_log(record: Any) -> RawSpan | None:
    return RawSpan(record.trace_id.hex(), "", iter(()), lambda: log_event(record))


def _in_json(body: bytes) -> Iterator[RawSpan | None]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise BadRequestError("the body is not JSON") from None
    if not isinstance(document, dict) or not (
        not document or {"resourceSpans", "resourceLogs", "resource_spans"} & document.keys()
    ):
        raise BadRequestError(
            "the body is not an export request with resourceSpans or resourceLogs"
        )
    for _, span in request_spans(document):
        yield None if not isinstance(span, TraceSpan) else _ready(span)


def _ready(span: TraceSpan) -> RawSpan:
    return RawSpan(span.trace_id, span.scope, iter(span.attributes), lambda: span)


def _unpacked(request: Request, max_bytes: int) -> bytes:
    if not request.is_gzip:
        return request.body
    unpacking = zlib.decompressobj(_GZIP)
    try:
        body = unpacking.decompress(request.body, max_bytes + 1)
    except zlib.error:
        raise BadRequestError("the body is not gzip") from None
    if len(body) > max_bytes:
        raise BadRequestError(f"the body has more than {max_bytes} bytes when it is unpacked")
    if not unpacking.eof:
        raise BadRequestError("the body is not complete gzip")
    return body


def answer(request: Request, rejected: int) -> bytes:
    """Body of the reply to an accepted request, in the request's own format."""
    name = "rejectedSpans" if request.signal == "traces" else "rejectedLogRecords"
    said = "they cannot be read" if rejected else ""
    if request.is_json:
        partial = {name: str(rejected), "errorMessage": said} if rejected else None
        return json.dumps({"partialSuccess": partial} if partial else {}).encode()
    response: Any = ExportTraceServiceResponse()
    if request.signal == "logs":
        response = ExportLogsServiceResponse()
    if rejected:
        setattr(response.partial_success, _snake(name), rejected)
        response.partial_success.error_message = said
    return bytes(response.SerializeToString())


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
