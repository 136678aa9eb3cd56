"""Values of a row as a case needs them: texts, lists of texts, chunks."""

from __future__ import annotations

import ast
import io
import itertools
import json
import math
import re
import tokenize
from collections.abc import Mapping
from typing import Any

from ragaliq.core.test_case import ContextChunk
from ragaliq.datasets.row import fault

__all__ = ["as_chunks", "as_mapping", "as_text", "as_texts"]

_TEXT_KEYS = ("text", "page_content", "content", "chunk", "passage")
_ID_KEYS = ("id", "chunk_id", "doc_id", "document_id")
_QUOTES_WITHOUT_COMMA = re.compile(r"""['"]\s+['"]""")
_SCORE_KEYS = ("score", "similarity", "relevance_score")


def as_text(value: Any, *, where: str, field: str) -> str:
    """A text; numbers are written out, and a list of one text is that text."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        raise fault(where, f"field {field!r} must be a text, not {value}")
    if isinstance(value, bool | int | float):
        try:
            return str(value)
        except ValueError:  # YAML has hexadecimal numbers, which may be longer than Python writes
            raise fault(where, f"field {field!r} is a number of too many digits") from None
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return value[0]
    raise fault(where, f"field {field!r} must be a text, not {_kind(value)}")


def as_texts(value: Any, *, where: str, field: str) -> list[str]:
    """A list of texts; from a table's cell, also written as JSON or as Python writes lists."""
    items = _items(value)
    return [as_text(item, where=where, field=f"{field}[{i}]") for i, item in enumerate(items)]


def as_chunks(value: Any, *, where: str) -> list[str | ContextChunk]:
    """Context chunks, from texts or from objects with a text, an id, a score, metadata."""
    held = value.tolist() if hasattr(value, "tolist") else value
    # 42 or true is a mistake in the file: as a text, it would be a context that supports nothing.
    if not isinstance(held, str | Mapping | list | tuple):
        raise fault(where, f"field 'context' must be a text or a list of them, not {_kind(held)}")
    return [_chunk(item, where=where, field=f"context[{i}]") for i, item in enumerate(_items(held))]


def as_mapping(value: Any, *, where: str, field: str) -> dict[str, Any]:
    """A JSON object; from a table's cell, also written as text."""
    if isinstance(value, str):
        value = _written(value)
    if isinstance(value, Mapping):
        return {str(key): held for key, held in value.items()}
    raise fault(where, f"field {field!r} must be an object, not {_kind(value)}")


def _items(value: Any) -> list[Any]:
    if isinstance(value, str):
        written = _written(value)
        return written if isinstance(written, list) else [value]
    if isinstance(value, list | tuple):
        return list(value)
    if hasattr(value, "tolist"):  # arrays, as tables hold them
        held = value.tolist()
        return held if isinstance(held, list) else [held]
    return [value]


def _written(text: str) -> Any:
    """What a cell holds that was written as JSON or with Python's `str`; else the text itself."""
    stripped = text.strip()
    if not stripped.startswith(("[", "{")):
        return text
    for read in (json.loads, _as_python):
        try:
            return read(stripped)
        except (ValueError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError):
            continue
    return text


def _as_python(text: str) -> Any:
    """What Python's `str` wrote, also of a numpy array.

    Such an array has no commas, and Python's grammar would make one text of all its texts.
    """
    if not _QUOTES_WITHOUT_COMMA.search(text):
        return ast.literal_eval(text)
    pieces = list(tokenize.generate_tokens(io.StringIO(text).readline))
    skipped = (tokenize.NL, tokenize.NEWLINE)
    pieces = [piece for piece in pieces if piece.type not in skipped]
    spaced = [
        "," + piece.string if before.type == piece.type == tokenize.STRING else piece.string
        for before, piece in itertools.pairwise(pieces)
    ]
    return ast.literal_eval(pieces[0].string + " ".join(spaced))


def _chunk(item: Any, *, where: str, field: str) -> str | ContextChunk:
    if not isinstance(item, Mapping):
        return as_text(item, where=where, field=field)
    text = next((item[key] for key in _TEXT_KEYS if isinstance(item.get(key), str)), None)
    if text is None:
        raise fault(where, f"{field} has no text", f"name it one of {', '.join(_TEXT_KEYS)}")
    metadata = item.get("metadata")
    return ContextChunk(
        text=text,
        id=_identifier(next((item[k] for k in _ID_KEYS if item.get(k) is not None), None)),
        score=_number(next((item[k] for k in _SCORE_KEYS if item.get(k) is not None), None)),
        metadata=dict(metadata) if isinstance(metadata, Mapping) else {},
    )


def _identifier(value: Any) -> int | str | None:
    if value is None or (isinstance(value, int | str) and not isinstance(value, bool)):
        return value
    return str(value)


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _kind(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else f"of type {type(value).__name__}"
