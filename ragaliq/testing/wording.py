"""Decisions by wording, for judges and servers that have not been told otherwise."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragaliq.judges.base import ClaimVerdict

__all__ = ["CHARACTERS_PER_TOKEN", "sentences", "shared_words", "tokens", "verdict_by_wording"]

CHARACTERS_PER_TOKEN = 4

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_WORD = re.compile(r"\w+")
_SHORT = 3


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order; good enough for tests, no more."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


def verdict_by_wording(claim: str, context: Sequence[str]) -> ClaimVerdict:
    """SUPPORTED by the first chunk that holds every word, with its closest sentence as evidence."""
    wanted = _words(claim)
    for position, chunk in enumerate(context):
        if wanted and wanted <= _words(chunk):
            return ClaimVerdict(
                verdict="SUPPORTED",
                evidence=max(sentences(chunk), key=lambda part: len(wanted & _words(part))),
                confidence=0.9,
                supporting_chunk_ids=[position],
                reason="One chunk holds every word of the claim.",
            )
    return ClaimVerdict(
        verdict="NOT_ENOUGH_INFO",
        confidence=0.9,
        reason="No chunk holds every word of the claim.",
    )


def shared_words(wanted: str, text: str) -> float:
    """The share of the words of `wanted` that occur in `text`, 0 to 1; 0 where there are none."""
    words = _words(wanted)
    return len(words & _words(text)) / len(words) if words else 0.0


def tokens(text: str) -> int:
    """The tokens of a text, as the loopback servers count them."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def _words(text: str) -> set[str]:
    """Words that carry meaning: longer ones, and numbers of any length."""
    found = (word.casefold() for word in _WORD.findall(text))
    return {word for word in found if len(word) > _SHORT or not word.isalpha()}
