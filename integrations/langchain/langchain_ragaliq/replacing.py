"""Putting another answer, or a note, where an output has its answer.

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
    """The answer's text in what a chain returned, or None."""
    found = READER.answer(output)
    return None if found is None else found.text


def replaced(output: Any, answer: str, other: Any) -> Any:
    """The output with `other` wherever it holds the answer; `other` itself where it does not."""
    changed = _throughout(output, answer.strip(), other)
    return other if changed is output else changed


def _throughout(value: Any, answer: str, other: Any) -> Any:
    """A value with every answer in it replaced; the same object where there is none."""
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
    """The output with a note: next to the answer where there is room, else at the end of its text.

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
