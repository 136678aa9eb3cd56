"""Spans and log records of OTLP, in JSON or as messages of protobuf's, as plain data."""

from __future__ import annotations

import base64
import binascii
import functools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from ragaliq.traces.span import SpanEvent, TraceSpan


class BadSpanError(ValueError):
    """A span is invalid; the message names the place and quotes nothing."""


Parts = Iterator[tuple[str, TraceSpan | Exception]]
"""Spans, each with its place; or what is wrong with one."""

# By hand: protobuf's `json_format` takes the hexadecimal ids of OTLP's JSON for base64, and the
# other way it takes three times as long and makes texts of NaN and infinity.

_MOST_NESTED = 64
_HEX = re.compile(r"[0-9a-f]+")
_ERRORS = (2, "2", "STATUS_CODE_ERROR")
_NO_ID = "AAAAAAAAAAA="  # eight bytes of zeros, in base64
_VALUES = (
    *("string_value", "array_value", "kvlist_value", "int_value"),
    *("bool_value", "double_value", "bytes_value"),
)


@functools.cache
def camel(name: str) -> str:
    """Convert a member's name to OTLP's JSON."""
    return re.sub(r"_(.)", lambda match: match[1].upper(), name)


def member(held: Any, name: str) -> Any:
    """Member of a JSON object, by OTLP's or protobuf's name, or of a protobuf message.

    Bytes are given as hexadecimal digits.
    """
    if isinstance(held, dict):
        value = held.get(camel(name))
        return held.get(name) if value is None else value
    if isinstance(held, _NO_MEMBERS):
        raise BadSpanError("something is not an object that must be one")
    value = getattr(held, name, None)
    return value.hex() if isinstance(value, bytes) else value


_NO_MEMBERS = (str, int, float, list, type(None))


def _items(held: Any, name: str) -> Iterable[Any]:
    value = member(held, name)
    if isinstance(value, str | int | float | Mapping):
        raise BadSpanError(f"{name} is not a list")
    return value or ()


def request_spans(document: Mapping[str, Any]) -> Parts:
    """The spans and logs of an export request in JSON, each with its place in it."""
    for name, read in (("resource_spans", resource_spans), ("resource_logs", resource_logs)):
        try:
            for number, part in enumerate(_items(document, name)):
                for place, span in read(part):
                    yield f"{camel(name)}[{number}].{place}", span
        except BadSpanError as error:
            yield camel(name), error


def resource_logs(part: Any) -> Parts:
    """The log records of one service that belong to spans, each as a span with its event only."""
    for s, of_scope in enumerate(_items(part, "scope_logs")):
        for n, record in enumerate(_items(of_scope, "log_records")):
            place = f"scopeLogs[{s}].logRecords[{n}]"
            try:
                if (event := log_event(record)) is not None:
                    yield place, event
            except BadSpanError as error:
                yield place, error


def log_event(record: Any) -> TraceSpan | None:
    """Convert a log record to a span with only its event; None without a span id.

    Raises:
        BadSpanError: It is not one.
    """
    attributes = attributes_of(record)
    name = text_of(member(record, "event_name")) or attributes.get("event.name")
    trace_id, span_id = member(record, "trace_id"), member(record, "span_id")
    if not isinstance(name, str) or not trace_id or not span_id:
        return None
    body = _value(member(record, "body"), 0)
    if isinstance(body, str) and body.startswith("{"):
        with suppress(ValueError, RecursionError):  # Semantic Kernel's, a message as JSON
            body = json.loads(body)
    held = {**attributes, **body} if isinstance(body, Mapping) else {"content": body, **attributes}
    event = SpanEvent(name, held)
    return TraceSpan(id_of(trace_id, 32, "traceId"), id_of(span_id, 16, "spanId"), events=(event,))


def resource_spans(part: Any) -> Parts:
    """The spans of one service in an export request, each with its place in it."""
    resource = attributes_of(member(part, "resource") or {})
    # Before version 0.19 of the protocol, scopes were called libraries.
    listed, named = "scope_spans", "scope"
    if member(part, listed) is None:
        listed, named = "instrumentation_library_spans", "instrumentation_library"
    for s, of_scope in enumerate(_items(part, listed)):
        scope = text_of(member(member(of_scope, named) or {}, "name"))
        for n, span in enumerate(_items(of_scope, "spans")):
            place = f"{camel(listed)}[{s}].spans[{n}]"
            try:
                yield place, otlp_span(span, scope, resource)
            except BadSpanError as error:
                yield place, error


def otlp_span(span: Any, scope: str, resource: Mapping[str, object]) -> TraceSpan:
    """A span as plain data.

    Raises:
        BadSpanError: It is not one.
    """
    parent = member(span, "parent_span_id")
    is_root = not parent or parent == _NO_ID or not str(parent).strip("0")
    return TraceSpan(
        trace_id=id_of(member(span, "trace_id"), 32, "traceId"),
        span_id=id_of(member(span, "span_id"), 16, "spanId"),
        parent_id=None if is_root else id_of(parent, 16, "parentSpanId"),
        name=text_of(member(span, "name")),
        start_ns=_number(span, "start_time_unix_nano"),
        end_ns=_number(span, "end_time_unix_nano"),
        is_error=member(member(span, "status") or {}, "code") in _ERRORS,
        attributes=attributes_of(span),
        events=tuple(
            SpanEvent(text_of(member(event, "name")), attributes_of(event))
            for event in _items(span, "events")
        ),
        scope=scope,
        resource=resource,
        dropped_attributes=_number(span, "dropped_attributes_count"),
    )


def attributes_of(held: Any) -> dict[str, object]:
    """The attributes of a span, an event, a resource or a record."""
    pairs = _items(held, "attributes")
    return {text_of(member(pair, "key")): _value(member(pair, "value"), 0) for pair in pairs}


def _value(held: Any, depth: int) -> object:
    if depth > _MOST_NESTED:
        raise BadSpanError("an attribute is nested too deeply")
    names: Iterable[str] = _VALUES
    if hasattr(held, "WhichOneof"):  # a message, which has all of them, though only one is set
        names = filter(None, [held.WhichOneof("value")])
    found = () if held is None else ((name, member(held, name)) for name in names)
    which, value = next(((name, value) for name, value in found if value is not None), ("", None))
    if which == "array_value":
        return [_value(each, depth + 1) for each in _items(value, "values")]
    if which == "kvlist_value":
        pairs = _items(value, "values")
        return {
            text_of(member(each, "key")): _value(member(each, "value"), depth + 1) for each in pairs
        }
    if which == "int_value":
        return _number(held, which, is_signed=True)
    return value if isinstance(value, str | bool | int | float) else None


def _number(held: Any, name: str, *, is_signed: bool = False) -> int:
    """An integer of 64 bits, which OTLP's JSON writes as text; 0 where it is missing."""
    value = member(held, name)
    if isinstance(value, str):
        try:
            value = int(value or 0)
        except ValueError:
            value = math.inf
    if value is None:
        return 0
    is_whole = not isinstance(value, bool) and isinstance(value, int | float) and value % 1 == 0
    if not is_whole or not -(1 << 63 if is_signed else 0) <= value < 1 << 64:
        raise BadSpanError(f"{camel(name)} is not a whole number of 64 bits")
    return int(value)


def text_of(value: Any) -> str:
    """A text; empty for anything else."""
    return value if isinstance(value, str) else ""


def id_of(value: Any, digits: int, name: str) -> str:
    """An id as lower-case hexadecimal digits, from those or, as protobuf has it, from base64."""
    text = ""
    if isinstance(value, str):
        text = value.strip().lower().removeprefix("0x").replace("-", "")
        if len(text) != digits:
            with suppress(binascii.Error, ValueError):
                text = base64.b64decode(value, validate=True).hex()
    if len(text) == digits and _HEX.fullmatch(text) and text.strip("0"):
        return text
    raise BadSpanError(f"{name} is not an id of {digits} hexadecimal digits")
