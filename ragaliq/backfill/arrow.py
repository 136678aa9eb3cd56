"""Arrow, loaded when a table is scored and not before."""

from __future__ import annotations

from typing import Any

from ragaliq.errors import ConfigurationError

__all__ = ["UNREADABLE", "load_arrow", "valid_text", "values_of"]

UNREADABLE = object()
"""In the place of a value that its column holds and Python cannot read."""


def load_arrow() -> Any:
    """The module `pyarrow`.

    Raises:
        ConfigurationError: It is not installed.
    """
    try:
        import pyarrow as pa
    except ImportError:
        raise ConfigurationError(
            "scoring tables needs pyarrow: pip install 'ragaliq[parquet]'"
        ) from None
    return pa


def values_of(column: Any) -> list[Any]:
    """A column's values as Python's; `UNREADABLE` for one that cannot be read.

    Engines check neither that a text is UTF-8 nor that a date is one of Python's.
    """
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):
        return [_value(scalar) for scalar in column]


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        return UNREADABLE


def valid_text(text: str) -> str:
    """`text` as Arrow can hold it: half of a surrogate pair, which is no character, is replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
