"""Spans one by one: as the SDKs' console exporters and Phoenix write them, and in its tables.

Phoenix keeps no scope. LlamaIndex's spans are known by their names, a class and a method.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ragaliq.traces.files.values import BadSpanError, identifier, nanoseconds
from ragaliq.traces.names import KIND, LLAMA_INDEX_SCOPE
from ragaliq.traces.span import SpanEvent, TraceSpan

__all__ = ["flat_span", "is_flat"]

_PREFIX = "attributes."
_METHOD = re.compile(r"[A-Z]\w*\._{0,2}[a-z]\w*")
# Whose values are objects themselves.
_OBJECTS = ("metadata", "input.value", "output.value", "llm.prompt_template.variables")
_MOST_NESTED = 16


def is_flat(value: Any) -> bool:
    """Whether a JSON value or a table's row is one span."""
    if not isinstance(value, Mapping):
        return False
    context = value.get("context")
    return "context.trace_id" in value or (isinstance(context, Mapping) and "trace_id" in context)


def flat_span(row: Mapping[str, Any]) -> TraceSpan | BadSpanError:
    """Read a span; the reason if it cannot be read."""
    try:
        return _span(row)
    except BadSpanError as error:
        return error


def _span(row: Mapping[str, Any]) -> TraceSpan:
    inner = row.get("context")
    context = inner if isinstance(inner, Mapping) else {}
    parent = row.get("parent_id")
    status = row.get("status")
    code = status.get("status_code") if isinstance(status, Mapping) else row.get("status_code")
    resource = row.get("resource")
    name = row.get("name")
    attributes = dict(_attributes(row))
    kind = row.get("span_kind")
    if isinstance(kind, str) and kind and KIND not in attributes:
        attributes[KIND] = kind
    return TraceSpan(
        trace_id=identifier(
            row.get("context.trace_id", context.get("trace_id")), digits=32, name="trace_id"
        ),
        span_id=identifier(
            row.get("context.span_id", context.get("span_id")), digits=16, name="span_id"
        ),
        parent_id=None if _is_absent(parent) else identifier(parent, digits=16, name="parent_id"),
        name=name if isinstance(name, str) else "",
        start_ns=nanoseconds(row.get("start_time"), name="start_time"),
        end_ns=nanoseconds(row.get("end_time"), name="end_time"),
        is_error=code == "ERROR",
        attributes=attributes,
        events=tuple(_events(row.get("events"))),
        scope=_scope(row, attributes),
        resource=dict(_plain(resource)) if isinstance(resource, Mapping) else {},
    )


def _plain(resource: Mapping[str, Any]) -> Mapping[str, object]:
    attributes = resource.get("attributes")
    return attributes if isinstance(attributes, Mapping) else {}


def _attributes(row: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    held = row.get("attributes")
    if isinstance(held, Mapping):
        yield from _flattened(held, "", 0)
    for name, value in row.items():
        if name.startswith(_PREFIX):
            yield from _flattened({name.removeprefix(_PREFIX): value}, "", 0)


def _flattened(held: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, object]]:
    """Nested attributes by their full names; what is empty in a table's row was never there."""
    if depth > _MOST_NESTED:
        raise BadSpanError("an attribute is nested too deeply")
    for name, value in held.items():
        full = f"{prefix}{name}"
        if isinstance(value, Mapping) and full not in _OBJECTS:
            yield from _flattened(value, f"{full}.", depth + 1)
        elif not _is_absent(value):
            yield full, _without_absent(value, depth)


def _without_absent(value: Any, depth: int) -> Any:
    if depth > _MOST_NESTED:
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
            attributes = event.get("attributes")
            name = event.get("name")
            yield SpanEvent(
                name=name if isinstance(name, str) else "",
                attributes=attributes if isinstance(attributes, Mapping) else {},
            )


def _scope(row: Mapping[str, Any], attributes: Mapping[str, object]) -> str:
    scope = row.get("instrumentation_scope", row.get("scope"))
    named = scope.get("name") if isinstance(scope, Mapping) else scope
    if isinstance(named, str) and named:
        return named
    name = row.get("name")
    is_method = isinstance(name, str) and bool(_METHOD.fullmatch(name))
    return LLAMA_INDEX_SCOPE if is_method and KIND in attributes else ""
