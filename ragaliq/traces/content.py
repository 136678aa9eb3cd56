"""Attribute values that hold more than a text: JSON, and lists spread over numbered names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ragaliq.traces.names import REDACTED
from ragaliq.traces.span import TraceSpan

__all__ = ["Content", "content_of", "numbered"]

_MOST_NUMBERED = 10_000
"""A list of more is no list of documents or messages."""


class Content:
    """What an attribute holds.

    Attributes:
        value: A text, or what the JSON in it stands for; None where there is nothing.
        is_hidden: Whether its place is taken by a mark that says it was switched off.
        is_cut: Whether it is JSON that stops before its end.
    """

    __slots__ = ("is_cut", "is_hidden", "value")

    def __init__(self, value: Any = None, *, is_hidden: bool = False, is_cut: bool = False) -> None:
        self.value = value
        self.is_hidden = is_hidden
        self.is_cut = is_cut


def content_of(held: object, *, is_json: bool) -> Content:
    """Read an attribute's value.

    Args:
        held: The value.
        is_json: Whether it is known to be JSON, and is cut if it cannot be read.
    """
    if not isinstance(held, str):
        return Content(held)
    if held == REDACTED:
        return Content(is_hidden=True)
    if not is_json:
        return Content(held)
    try:
        return Content(json.loads(held))
    except RecursionError:
        return Content(held, is_cut=True)  # nobody can read it
    except ValueError:
        # A text that begins like JSON is taken for some: it must also have ended like it.
        is_cut = held.lstrip()[:1] in {"{", "["} and held.rstrip()[-1:] not in {"}", "]"}
        return Content(held, is_cut=is_cut)


def numbered(span: TraceSpan, prefix: str) -> list[dict[str, object]]:
    """A list whose items are spread over attributes: `prefix.0.name`, `prefix.1.name`, ...

    Numbers that are missing leave no gap.
    """
    items: dict[int, dict[str, object]] = {}
    start = prefix + "."
    for name, value in span.attributes.items():
        if not name.startswith(start):
            continue
        number, dot, rest = name[len(start) :].partition(".")
        if dot and number.isdecimal() and len(number) < 8 and len(items) < _MOST_NUMBERED:
            items.setdefault(int(number), {})[rest] = value
    if not items:
        return _whole(span.attributes.get(prefix))
    return [items[number] for number in sorted(items)]


def _whole(held: object) -> list[dict[str, object]]:
    """The same list where somebody kept it in one attribute, as JSON or as it is."""
    value = content_of(held, is_json=True).value
    found = value if isinstance(value, list) else []
    return [_flat(item) for item in found[:_MOST_NUMBERED] if isinstance(item, Mapping)]


def _flat(item: Mapping[str, Any]) -> dict[str, object]:
    """`{"document": {"content": ...}}` as `{"document.content": ...}`."""
    flat: dict[str, object] = {}
    for name, value in item.items():
        if isinstance(value, Mapping) and name in {"document", "message"}:
            flat |= {f"{name}.{inner}": held for inner, held in value.items()}
        else:
            flat[str(name)] = value
    return flat
