"""The pieces of spans in JSON: ids, times and values, as different encoders write them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

__all__ = [
    "BadSpanError",
    "attributes_of",
    "identifier",
    "items",
    "member",
    "nanoseconds",
    "unix_time",
    "whole_number",
]

_HEX = re.compile(r"[0-9a-f]+")
_MOST_NESTED = 64
_BILLION = 1_000_000_000
# The nanoseconds of a unit, and the least number that is one of it: 1973 in all of them.
_UNITS = ((1, 10**17), (1_000, 10**14), (1_000_000, 10**11))


class BadSpanError(ValueError):
    """What is wrong with a span; says where in it and quotes nothing of it."""


def member(held: Mapping[str, Any], name: str) -> Any:
    """A member by its name in OTLP's JSON, or as protobuf's own encoders may write it."""
    if name in held:
        return held[name]
    return held.get("".join("_" + c.lower() if c.isupper() else c for c in name))


def items(held: Any, name: str) -> list[Any]:
    """A list among the members; empty where it is missing.

    Raises:
        BadSpanError: It is something else.
    """
    value = member(held, name) if isinstance(held, Mapping) else None
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadSpanError(f"{name} is no list")
    return value


def identifier(value: Any, *, digits: int, name: str) -> str:
    """An id as lower-case hex digits, from hex or, as protobuf's JSON has it, from base64.

    Raises:
        BadSpanError: It is neither, or all zeros.
    """
    if isinstance(value, str):
        text = value.strip().lower().removeprefix("0x").replace("-", "")
        if len(text) != digits:
            text = _from_base64(value)
        if len(text) == digits and _HEX.fullmatch(text) and text.strip("0"):
            return text
    raise BadSpanError(f"{name} is not an id of {digits} hexadecimal digits")


def whole_number(value: Any, *, name: str) -> int:
    """An integer; OTLP's JSON writes large ones as text.

    Raises:
        BadSpanError: It is none.
    """
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            value = None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadSpanError(f"{name} is no whole number")
    return value


def unix_time(value: Any, *, name: str) -> int:
    """Nanoseconds since 1970 as the protocol counts them; 0 where they are missing.

    Raises:
        BadSpanError: It is no such number.
    """
    found = 0 if value is None else whole_number(value, name=name)
    if not 0 <= found < 1 << 64:
        raise BadSpanError(f"{name} is no time in nanoseconds")
    return found


def nanoseconds(value: Any, *, name: str) -> int:
    """A time in nanoseconds, from one written as in ISO 8601 or as a number; 0 where it is missing.

    Numbers are Unix time in the unit that makes a date of this age of them: pandas writes
    milliseconds, others seconds, microseconds or nanoseconds.

    Raises:
        BadSpanError: It is no time.
    """
    if value is None:
        return 0
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise BadSpanError(f"{name} is no time") from None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1 << 64:
        unit = next((u for u, least in _UNITS if value >= least), _BILLION)
        return int(value * unit)
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        since = moment - datetime.fromtimestamp(0, UTC)
        return (since.days * 86_400 + since.seconds) * _BILLION + since.microseconds * 1000
    raise BadSpanError(f"{name} is no time")


def attributes_of(held: Any) -> dict[str, object]:
    """OTLP's list of keys and values as a mapping.

    Raises:
        BadSpanError: It is something else.
    """
    found: dict[str, object] = {}
    for pair in items(held, "attributes"):
        key = pair.get("key") if isinstance(pair, Mapping) else None
        if not isinstance(key, str):
            raise BadSpanError("an attribute has no key")
        found[key] = _value(pair.get("value"), 0)
    return found


def _value(held: Any, depth: int) -> object:
    if held is None:
        return None
    if depth > _MOST_NESTED:
        raise BadSpanError("an attribute is nested too deeply")
    if not isinstance(held, Mapping):
        raise BadSpanError("an attribute's value is no object")
    values = member(held, "arrayValue")
    if values is not None:
        return [_value(each, depth + 1) for each in items(values, "values")]
    pairs = member(held, "kvlistValue")
    if pairs is not None:
        listed = [pair for pair in items(pairs, "values") if isinstance(pair, Mapping)]
        return {str(pair.get("key")): _value(pair.get("value"), depth + 1) for pair in listed}
    number = member(held, "intValue")
    if number is not None:
        return whole_number(number, name="intValue")
    for name in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
        value = member(held, name)
        if isinstance(value, str | bool | int | float):
            return value
    return None


def _from_base64(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).hex()
    except (binascii.Error, ValueError):
        return ""
