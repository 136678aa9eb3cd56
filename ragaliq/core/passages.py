"""Retrieved texts, and the chunks of a case made from them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Any, NamedTuple

from ragaliq.core.test_case import ContextChunk
from ragaliq.errors import ConfigurationError

_LONGEST_VALUE = 1_000


class Passage(NamedTuple):
    """A retrieved text.

    Attributes:
        text: The text as a judge reads it.
        id: Its id in the store.
        score: The retriever's score.
        metadata: Metadata from the retriever.
        shown_as: Its form in prompts, where that differs: `[(17,)]` for a database row that a judge
            reads with column names.
    """

    text: str
    id: str | None = None
    score: float | None = None
    metadata: Mapping[str, Any] | None = None
    shown_as: str = ""


TextFetcher = Callable[[Sequence[str]], Mapping[str, str | None]]
"""Gives the texts of documents by their ids; those that it does not know may be missing."""


def require_text_fetcher(resolve: TextFetcher | None, name: str) -> None:
    """Check a function that fetches texts.

    Raises:
        ConfigurationError: It is not a plain function.
    """
    if resolve is not None and (not callable(resolve) or iscoroutinefunction(resolve)):
        kind = "an async one" if callable(resolve) else type(resolve).__name__
        raise ConfigurationError(
            f"{name}: resolve must be a function from a list of document ids to a dictionary of "
            f"their texts, got {kind}"
        )


def context_chunks(passages: Sequence[Passage]) -> list[str | ContextChunk]:
    """Build the chunks of a case in rank order: each text once, no id for two texts."""
    first: dict[str, Passage] = {}
    for passage in passages:
        first.setdefault(passage.text, passage)
    # Pieces of one document often share its id, which then identifies none of them.
    known: set[str | None] = set()
    shared: set[str | None] = set()
    for passage in first.values():
        (shared if passage.id in known else known).add(passage.id)
    return [
        ContextChunk(
            text=text,
            id=None if own_id in shared else own_id,
            score=score,
            metadata=json_safe(metadata) if metadata else {},
        )
        for text, own_id, score, metadata, _ in first.values()
    ]


def json_safe(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata as short texts, numbers and lists of them; other values are skipped.

    Frameworks put whole pages, vectors and unpicklable objects there.
    """
    kept: dict[str, Any] = {}
    for key, value in metadata.items():
        # A lazy object may fail in its own `__str__`, and a mapping may contain itself.
        with contextlib.suppress(Exception):
            kept |= _json_safe({key: value}) or {}
    return kept


def _json_safe(value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_VALUE else None
    if isinstance(value, list | tuple):
        items = [_json_safe(item) for item in value[:20]] if len(value) <= 20 else [None]
        return None if None in items else items
    if isinstance(value, Mapping):
        held = {str(key): _json_safe(each) for key, each in value.items()}
        return {key: each for key, each in held.items() if each is not None} or None
    # Dates, paths and enumerations as text. An object's address means nothing.
    text = "" if value is None else str(value)
    if not text or (text.startswith("<") and " at 0x" in text):
        return None
    return text if len(text) <= _LONGEST_VALUE else None
