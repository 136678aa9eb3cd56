"""One span, from OTLP (JSON or protobuf) or from a row of an SDK's or Phoenix's own."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ragaliq.traces.conventions import KIND, LLAMA_INDEX_SCOPE
from ragaliq.traces.span import SpanEvent, SpanLink, TraceSpan

if TYPE_CHECKING:
    from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

__all__ = ["BadSpanError", "is_otlp", "is_row", "json_spans", "message_spans", "row_span"]

_MOST_NESTED = 64
_HEX = re.compile(r"[0-9a-f]+")
_BILLION = 1_000_000_000


class BadSpanError(ValueError):
    """What is wrong with a span; names the place in it and quotes none of its text."""


# --- OTLP as JSON ---------------------------------------------------------------------------------
#
# By hand: protobuf's `json_format` takes ten times as long, and takes the hexadecimal ids of
# OTLP's JSON for base64.

_KINDS = ("internal", "internal", "server", "client", "producer", "consumer")
_KIND_NAMES = {f"SPAN_KIND_{name.upper()}": name for name in _KINDS} | dict(enumerate(_KINDS))
_ERRORS = (2, "2", "STATUS_CODE_ERROR")
_NO_ID = "AAAAAAAAAAA="  # eight bytes of zeros, in base64
_PLAIN = ("stringValue", "boolValue", "doubleValue", "bytesValue")

Spans = Iterator[tuple[str, TraceSpan | BadSpanError]]


def is_otlp(document: Any) -> bool:
    """Whether a JSON value is an export request, or what a file exporter writes."""
    return isinstance(document, Mapping) and _member(document, "resourceSpans") is not None


def json_spans(document: Mapping[str, Any]) -> Spans:
    """The spans of an export request in JSON, each with its place in it."""
    try:
        for r, of_resource in enumerate(_objects(document, "resourceSpans")):
            resource = _json_attributes(_object(_member(of_resource, "resource") or {}))
            # Before version 0.19 of the protocol, scopes were called libraries.
            listed, named = "scopeSpans", "scope"
            if _member(of_resource, listed) is None:
                listed, named = "instrumentationLibrarySpans", "instrumentationLibrary"
            for s, of_scope in enumerate(_objects(of_resource, listed)):
                scope = _member(of_scope, named)
                name = _text(scope.get("name")) if isinstance(scope, Mapping) else ""
                for n, span in enumerate(_items(of_scope, "spans")):
                    place = f"resourceSpans[{r}].{listed}[{s}].spans[{n}]"
                    try:
                        yield place, _json_span(_object(span), name, resource)
                    except BadSpanError as error:
                        yield place, error
    except BadSpanError as error:
        yield "resourceSpans", error


def _json_span(span: Mapping[str, Any], scope: str, resource: Mapping[str, object]) -> TraceSpan:
    parent = _member(span, "parentSpanId")
    is_top = parent in (None, _NO_ID) or (isinstance(parent, str) and not parent.strip("0"))
    status = _member(span, "status")
    return TraceSpan(
        trace_id=_id(_member(span, "traceId"), digits=32, name="traceId"),
        span_id=_id(_member(span, "spanId"), digits=16, name="spanId"),
        parent_id=None if is_top else _id(parent, digits=16, name="parentSpanId"),
        name=_text(span.get("name")),
        kind=_KIND_NAMES.get(_member(span, "kind") or 0, "internal"),
        start_ns=_number(span, "startTimeUnixNano"),
        end_ns=_number(span, "endTimeUnixNano"),
        is_error=isinstance(status, Mapping) and status.get("code") in _ERRORS,
        attributes=_json_attributes(span),
        events=tuple(
            SpanEvent(
                name=_text(event.get("name")),
                time_ns=_number(event, "timeUnixNano"),
                attributes=_json_attributes(event),
            )
            for event in _objects(span, "events")
        ),
        links=tuple(
            link
            for held in _objects(span, "links")
            if (link := _link(_member(held, "traceId"), _member(held, "spanId"), held))
        ),
        scope=scope,
        resource=resource,
        dropped_attributes=_number(span, "droppedAttributesCount"),
    )


def _link(trace_id: Any, span_id: Any, held: Mapping[str, Any]) -> SpanLink | None:
    try:
        trace_id = _id(trace_id, digits=32, name="links.traceId")
        span_id = _id(span_id, digits=16, name="links.spanId")
    except BadSpanError:
        return None  # SDKs may write links to nowhere: not a reason to lose the span
    return SpanLink(trace_id=trace_id, span_id=span_id, attributes=_json_attributes(held))


def _json_attributes(held: Mapping[str, Any]) -> dict[str, object]:
    pairs = _objects(held, "attributes")
    return {_text(pair.get("key")): _json_value(pair.get("value"), 0) for pair in pairs}


def _json_value(held: Any, depth: int) -> object:
    if held is None:
        return None
    if depth > _MOST_NESTED:
        raise BadSpanError("an attribute is nested too deeply")
    value = _object(held).get("stringValue")
    if isinstance(value, str):
        return value
    values = _member(held, "arrayValue")
    if values is not None:
        return [_json_value(each, depth + 1) for each in _items(_object(values), "values")]
    pairs = _member(held, "kvlistValue")
    if pairs is not None:
        listed = _objects(_object(pairs), "values")
        return {
            _text(each.get("key")): _json_value(each.get("value"), depth + 1) for each in listed
        }
    if _member(held, "intValue") is not None:
        return _number(held, "intValue", is_signed=True)
    found = (_member(held, name) for name in _PLAIN)
    return next((each for each in found if isinstance(each, str | bool | int | float)), None)


def _number(held: Mapping[str, Any], name: str, *, is_signed: bool = False) -> int:
    """An integer of 64 bits, which OTLP's JSON writes as text; 0 where it is missing."""
    value = _member(held, name)
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            value = None if not value else -math.inf
    if value is None:
        return 0
    is_whole = not isinstance(value, bool) and isinstance(value, int | float) and value % 1 == 0
    if not is_whole or not -(1 << 63 if is_signed else 0) <= value < 1 << 64:
        raise BadSpanError(f"{name} is not a whole number of 64 bits")
    return int(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _member(held: Mapping[str, Any], name: str) -> Any:
    """A member by its name in OTLP's JSON, or by protobuf's own."""
    if name in held:
        return held[name]
    return held.get(_SNAKE[name]) if name in _SNAKE else None


# Worked out once: every span and every value asks for these.
_SNAKE = {
    name: re.sub(r"([A-Z])", lambda capital: "_" + capital[1].lower(), name)
    for name in (
        *("resourceSpans", "scopeSpans", "instrumentationLibrarySpans", "instrumentationLibrary"),
        *("traceId", "spanId", "parentSpanId", "startTimeUnixNano", "endTimeUnixNano"),
        *("timeUnixNano", "droppedAttributesCount", "arrayValue", "kvlistValue", "intValue"),
        *("stringValue", "boolValue", "doubleValue", "bytesValue"),
    )
}


def _items(held: Mapping[str, Any], name: str) -> list[Any]:
    value = _member(held, name)
    if value is not None and not isinstance(value, list):
        raise BadSpanError(f"{name} is not a list")
    return value or []


def _objects(held: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    return [_object(each) for each in _items(held, name)]


def _object(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    raise BadSpanError("something is not an object that must be one")


def _id(value: Any, *, digits: int, name: str) -> str:
    """An id as lower-case hexadecimal digits, from those or, as protobuf's JSON has it, base64."""
    if isinstance(value, str):
        text = value.strip().lower().removeprefix("0x").replace("-", "")
        if len(text) != digits:
            try:
                text = base64.b64decode(value, validate=True).hex()
            except (binascii.Error, ValueError):
                text = ""
        if len(text) == digits and _HEX.fullmatch(text) and text.strip("0"):
            return text
    raise BadSpanError(f"{name} is not an id of {digits} hexadecimal digits")


# --- OTLP as protobuf -----------------------------------------------------------------------------


def message_spans(part: ResourceSpans) -> Spans:
    """The spans of one resource in protobuf, each with its place in it."""
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
        kind=_KIND_NAMES.get(span.kind, "internal"),
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        is_error=span.status.code in _ERRORS,
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


# --- rows -----------------------------------------------------------------------------------------

_PREFIX = "attributes."
_METHOD = re.compile(r"[A-Z]\w*\._{0,2}[a-z]\w*")
# Whose values are objects themselves.
_OBJECTS = ("metadata", "input.value", "output.value", "llm.prompt_template.variables")
_MOST_NESTED_ROW = 16
# The nanoseconds of a unit, and the least number that is in it: 1973 in all of them.
_UNITS = ((1, 10**17), (1_000, 10**14), (1_000_000, 10**11))


def is_row(value: Any) -> bool:
    """Whether a JSON value or a table's row is one span, as console exporters and Phoenix write."""
    if not isinstance(value, Mapping):
        return False
    context = value.get("context")
    return "context.trace_id" in value or (isinstance(context, Mapping) and "trace_id" in context)


def row_span(row: Mapping[str, Any]) -> TraceSpan | BadSpanError:
    """Read such a span; the reason if it cannot be read."""
    try:
        return _row_span(row)
    except BadSpanError as error:
        return error


def _row_span(row: Mapping[str, Any]) -> TraceSpan:
    inner = row.get("context")
    context = inner if isinstance(inner, Mapping) else {}
    parent = row.get("parent_id")
    status = row.get("status")
    code = status.get("status_code") if isinstance(status, Mapping) else row.get("status_code")
    resource = row.get("resource")
    plain = resource.get("attributes") if isinstance(resource, Mapping) else None
    name = row.get("name")
    attributes = dict(_row_attributes(row))
    kind = row.get("span_kind")
    if isinstance(kind, str) and kind and KIND not in attributes:
        attributes[KIND] = kind
    trace_id = row.get("context.trace_id", context.get("trace_id"))
    span_id = row.get("context.span_id", context.get("span_id"))
    return TraceSpan(
        trace_id=_id(trace_id, digits=32, name="trace_id"),
        span_id=_id(span_id, digits=16, name="span_id"),
        parent_id=None if _is_absent(parent) else _id(parent, digits=16, name="parent_id"),
        name=name if isinstance(name, str) else "",
        start_ns=_nanoseconds(row.get("start_time"), name="start_time"),
        end_ns=_nanoseconds(row.get("end_time"), name="end_time"),
        is_error=code == "ERROR",
        attributes=attributes,
        events=tuple(_events(row.get("events"))),
        scope=_scope(row, attributes),
        resource=dict(plain) if isinstance(plain, Mapping) else {},
    )


def _nanoseconds(value: Any, *, name: str) -> int:
    """A time in nanoseconds, from ISO 8601 or a number; 0 where it is missing.

    Numbers are Unix time in the unit that makes a date of this age of them: pandas writes
    milliseconds, others seconds, microseconds or nanoseconds.
    """
    if value is None:
        return 0
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise BadSpanError(f"{name} is not a time") from None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1 << 64:
        unit = next((u for u, least in _UNITS if value >= least), _BILLION)
        return int(value * unit)
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        since = moment - datetime.fromtimestamp(0, UTC)
        return (since.days * 86_400 + since.seconds) * _BILLION + since.microseconds * 1000
    raise BadSpanError(f"{name} is not a time")


def _row_attributes(row: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    held = row.get("attributes")
    if isinstance(held, Mapping):
        yield from _flattened(held, "", 0)
    for name, value in row.items():
        if name.startswith(_PREFIX):
            yield from _flattened({name.removeprefix(_PREFIX): value}, "", 0)


def _flattened(held: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, object]]:
    """Nested attributes by their full names; what is empty in a table's row was never there."""
    if depth > _MOST_NESTED_ROW:
        raise BadSpanError("an attribute is nested too deeply")
    for name, value in held.items():
        full = f"{prefix}{name}"
        if isinstance(value, Mapping) and full not in _OBJECTS:
            yield from _flattened(value, f"{full}.", depth + 1)
        elif not _is_absent(value):
            yield full, _without_absent(value, depth)


def _without_absent(value: Any, depth: int) -> Any:
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


def _events(held: Any) -> Iterator[SpanEvent]:
    for event in held if isinstance(held, list) else ():
        if isinstance(event, Mapping):
            attributes, name = event.get("attributes"), event.get("name")
            yield SpanEvent(
                name=name if isinstance(name, str) else "",
                attributes=attributes if isinstance(attributes, Mapping) else {},
            )


def _scope(row: Mapping[str, Any], attributes: Mapping[str, object]) -> str:
    scope = row.get("instrumentation_scope", row.get("scope"))
    named = scope.get("name") if isinstance(scope, Mapping) else scope
    if isinstance(named, str) and named:
        return named
    # Phoenix keeps no scope. LlamaIndex's spans are known by their names, a class and a method.
    name = row.get("name")
    is_method = isinstance(name, str) and bool(_METHOD.fullmatch(name))
    return LLAMA_INDEX_SCOPE if is_method and KIND in attributes else ""
