"""Retrieved texts, and the chunks of a case that they make."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ragaliq.core.test_case import ContextChunk

_LONGEST_VALUE = 1_000


class Passage(NamedTuple):
    """A retrieved text.

    Attributes:
        text: As a judge is to read it.
        id: Its id where it came from.
        score: The retriever's score.
        metadata: What the retriever knows of it.
        shown_as: Its form in prompts, where that differs: `[(17,)]` of a row that a judge reads
            with the names of its columns.
    """

    text: str
    id: str | None = None
    score: float | None = None
    metadata: Mapping[str, Any] | None = None
    shown_as: str = ""


def context_chunks(passages: Sequence[Passage]) -> list[str | ContextChunk]:
    """The chunks of a case, in rank order: each text once, no id for two texts."""
    first: dict[str, Passage] = {}
    for passage in passages:
        first.setdefault(passage.text, passage)
    # Pieces of one document often share its id, which then names none of them.
    known: set[str | None] = set()
    shared: set[str | None] = set()
    for passage in first.values():
        (shared if passage.id in known else known).add(passage.id)
    return [
        ContextChunk(
            text=text,
            id=None if own_id in shared else own_id,
            score=score,
            metadata=plain(metadata) if metadata else {},
        )
        for text, own_id, score, metadata, _ in first.values()
    ]


def plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata as plain data: short texts, numbers and lists of them; the rest is skipped.

    Frameworks keep whole pages and vectors there, and objects that no queue carries.
    """
    kept: dict[str, Any] = {}
    for key, value in metadata.items():
        # A lazy object may fail in its own `__str__`, and a mapping hold itself.
        with contextlib.suppress(Exception):
            kept |= _plain({key: value}) or {}
    return kept


def _plain(value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_VALUE else None
    if isinstance(value, list | tuple):
        items = [_plain(item) for item in value[:20]] if len(value) <= 20 else [None]
        return None if None in items else items
    if isinstance(value, Mapping):
        held = {str(key): _plain(each) for key, each in value.items()}
        return {key: each for key, each in held.items() if each is not None} or None
    # Dates, paths, enumerations: what they are as text. An object's address says nothing.
    text = "" if value is None else str(value)
    if not text or (text.startswith("<") and " at 0x" in text):
        return None
    return text if len(text) <= _LONGEST_VALUE else None
