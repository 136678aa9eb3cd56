"""Replacement of the answer in an output, or a note next to it.

Nothing is changed in place: the output may be an object of the application's own.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import BaseMessage

from langchain_ragaliq.reading import READER

KEY = "ragaliq"


def answer_of(output: Any) -> str | None:
    """Text of the answer in a chain's output, or None."""
    found = READER.answer(output)
    return None if found is None else found.text


def replaced(output: Any, answer: str, other: Any) -> Any:
    """Replace the answer in the output by `other`; return `other` if it is not in it."""
    changed = _throughout(output, answer.strip(), other)
    return other if changed is output else changed


def _throughout(value: Any, answer: str, other: Any) -> Any:
    """Replace every answer in a value; return the same object if there is none."""
    if isinstance(value, Mapping):
        items = {key: _throughout(each, answer, other) for key, each in value.items()}
        return items if any(items[key] is not value[key] for key in items) else value
    if isinstance(value, list):
        listed = [_throughout(each, answer, other) for each in value]
        return listed if any(map(operator.is_not, listed, value)) else value
    found = READER.answer_text(value)
    if found is None or found.text.strip() != answer:
        return value
    if isinstance(value, BaseMessage) and isinstance(other, str):
        return value.model_copy(update={"content": other})
    return other


def annotated(output: Any, note: str, summary: Mapping[str, Any]) -> Any:
    """Add a note to the output: next to the answer if there is room, else after its text.

    Args:
        output: What a chain returned.
        note: For an output that is nothing but text.
        summary: For messages (`response_metadata["ragaliq"]`) and dictionaries (`["ragaliq"]`).
    """
    if isinstance(output, str):
        return f"{output}\n\n{note}"
    if isinstance(output, BaseMessage):
        metadata = {**output.response_metadata, KEY: dict(summary)}
        return output.model_copy(update={"response_metadata": metadata})
    return {**output, KEY: dict(summary)} if isinstance(output, Mapping) else output
