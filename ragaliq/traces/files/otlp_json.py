"""Spans in OTLP's JSON: what an exporter sends, and what the collector's file exporter writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragaliq.traces.files.values import (
    BadSpanError,
    attributes_of,
    identifier,
    items,
    member,
    unix_time,
    whole_number,
)
from ragaliq.traces.span import SpanEvent, SpanLink, TraceSpan

__all__ = ["is_otlp", "otlp_spans"]

_KINDS = ("internal", "internal", "server", "client", "producer", "consumer")
_KIND_PREFIX = "SPAN_KIND_"
_NO_ID = "AAAAAAAAAAA="  # eight bytes of zeros, in base64
_ERRORS = (2, "2", "STATUS_CODE_ERROR")


def is_otlp(document: Any) -> bool:
    """Whether a JSON value is an export request, or what a file exporter writes."""
    return isinstance(document, Mapping) and member(document, "resourceSpans") is not None


def otlp_spans(document: Mapping[str, Any]) -> Iterator[tuple[str, TraceSpan | BadSpanError]]:
    """The spans of an export request, each with its place in it."""
    try:
        for r, of_resource in enumerate(items(document, "resourceSpans")):
            resource = attributes_of(member(_object(of_resource), "resource"))
            # Before version 0.19 of the protocol, scopes were called libraries.
            listed = "scopeSpans"
            if member(of_resource, listed) is None:
                listed = "instrumentationLibrarySpans"
            for s, of_scope in enumerate(items(of_resource, listed)):
                scope = member(_object(of_scope), "scope") or member(
                    of_scope, "instrumentationLibrary"
                )
                name = scope.get("name") if isinstance(scope, Mapping) else None
                for n, span in enumerate(items(of_scope, "spans")):
                    place = f"resourceSpans[{r}].{listed}[{s}].spans[{n}]"
                    yield place, _read(span, name if isinstance(name, str) else "", resource)
    except BadSpanError as error:
        yield "resourceSpans", error


def _read(span: Any, scope: str, resource: Mapping[str, object]) -> TraceSpan | BadSpanError:
    try:
        return _span(_object(span), scope, resource)
    except BadSpanError as error:
        return error


def _span(span: Mapping[str, Any], scope: str, resource: Mapping[str, object]) -> TraceSpan:
    parent = member(span, "parentSpanId")
    status = member(span, "status")
    name = span.get("name")
    return TraceSpan(
        trace_id=identifier(member(span, "traceId"), digits=32, name="traceId"),
        span_id=identifier(member(span, "spanId"), digits=16, name="spanId"),
        parent_id=identifier(parent, digits=16, name="parentSpanId") if _is_id(parent) else None,
        name=name if isinstance(name, str) else "",
        kind=_kind(span.get("kind")),
        start_ns=_time(span, "startTimeUnixNano"),
        end_ns=_time(span, "endTimeUnixNano"),
        is_error=isinstance(status, Mapping) and status.get("code") in _ERRORS,
        attributes=attributes_of(span),
        events=tuple(_event(_object(event)) for event in items(span, "events")),
        links=tuple(_links(items(span, "links"))),
        scope=scope,
        resource=resource,
        dropped_attributes=_count(member(span, "droppedAttributesCount")),
    )


def _event(event: Mapping[str, Any]) -> SpanEvent:
    name = event.get("name")
    return SpanEvent(
        name=name if isinstance(name, str) else "",
        time_ns=_time(event, "timeUnixNano"),
        attributes=attributes_of(event),
    )


def _links(listed: list[Any]) -> Iterator[SpanLink]:
    for link in map(_object, listed):
        try:
            found = SpanLink(
                trace_id=identifier(member(link, "traceId"), digits=32, name="links.traceId"),
                span_id=identifier(member(link, "spanId"), digits=16, name="links.spanId"),
                attributes=attributes_of(link),
            )
        except BadSpanError:
            continue  # SDKs may write links to nowhere: no reason to lose the span
        yield found


def _object(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    raise BadSpanError("there is something else than an object")


def _is_id(value: Any) -> bool:
    return value not in (None, _NO_ID) and not (isinstance(value, str) and not value.strip("0"))


def _time(held: Mapping[str, Any], name: str) -> int:
    return unix_time(member(held, name), name=name)


def _count(value: Any) -> int:
    return 0 if value is None else whole_number(value, name="droppedAttributesCount")


def _kind(value: Any) -> str:
    if isinstance(value, str) and value.startswith(_KIND_PREFIX):
        return value.removeprefix(_KIND_PREFIX).lower()
    is_known = isinstance(value, int) and 0 <= value < len(_KINDS)
    return _KINDS[value] if is_known else "internal"
