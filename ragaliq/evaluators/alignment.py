"""Finding a quote in the text it is quoted from.

Judges resolve pronouns, normalise white space and trim, so a quote is looked for exactly first,
then with white space ignored, then as the best fuzzy match (rapidfuzz's partial ratio). Evidence
that matches only roughly must at least hold the quote's numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rapidfuzz import fuzz

from ragaliq.core.results import EvidenceSpan
from ragaliq.core.test_case import ChunkId

__all__ = ["CLAIM_CUTOFF", "EVIDENCE_CUTOFF", "locate", "locate_evidence"]

CLAIM_CUTOFF = 75.0
"""Least similarity, 0 to 100, at which a reworded claim counts as found in the answer."""

EVIDENCE_CUTOFF = 90.0
"""Least similarity, 0 to 100, at which a quote counts as really occurring in a chunk."""

_SHORTEST_FUZZY = 12
_LONGEST_FUZZY = 20_000
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_LONGEST_NUMBER = 20
_ELLIPSIS = re.compile(r"\s*(?:\[\.\.\.\]|\.\.\.|…)\s*")


def locate(quote: str, text: str, *, cutoff: float, start: int = 0) -> tuple[int, int] | None:
    """Where `quote` stands in `text`.

    Args:
        quote: What is looked for.
        text: Where.
        cutoff: Least similarity of a fuzzy match, 0 to 100.
        start: Preferred start: a match from here on wins over an earlier one.

    Returns:
        `(start, end)` in characters, or None.
    """
    quote = quote.strip().strip('"“”«»')
    if not quote:
        return None
    for begin in (start, 0) if start else (0,):
        position = text.find(quote, begin)
        if position >= 0:
            return position, position + len(quote)
    return _locate_spaced(quote, text, start) or _locate_fuzzy(quote, text, cutoff)


def locate_evidence(
    evidence: str,
    texts: Sequence[str],
    ids: Sequence[ChunkId],
    preferred: Sequence[int] = (),
) -> tuple[EvidenceSpan, ...]:
    """Where the parts of a quote stand in the context.

    Args:
        evidence: A quote; an ellipsis separates parts that may stand apart.
        texts: The chunks.
        ids: Their ids, in the same order.
        preferred: Positions of chunks to look in first.

    Returns:
        One span for each part when every part was found; otherwise nothing, because a quote of
        which a part is made up is not evidence.
    """
    parts = [part for part in _ELLIPSIS.split(evidence) if part.strip()]
    order = [*preferred, *(i for i in range(len(texts)) if i not in preferred)]
    spans = []
    for part in parts:
        span = _first_match(part, texts, ids, order)
        if span is None:
            return ()
        spans.append(span)
    return tuple(spans)


def _first_match(
    part: str, texts: Sequence[str], ids: Sequence[ChunkId], order: Sequence[int]
) -> EvidenceSpan | None:
    for exact in (True, False):
        for position in order:
            text = texts[position]
            found = locate(part, text, cutoff=100.0 if exact else EVIDENCE_CUTOFF)
            if found is not None and (exact or _has_its_numbers(part, text, found)):
                return EvidenceSpan(ids[position], *found)
    return None


def _has_its_numbers(quote: str, text: str, span: tuple[int, int]) -> bool:
    # One digit makes little difference to the similarity and all the difference to a quote. The
    # match may begin or end inside a number, so look a little further.
    near = text[max(0, span[0] - _LONGEST_NUMBER) : span[1] + _LONGEST_NUMBER]
    return set(_NUMBER.findall(quote)) <= set(_NUMBER.findall(near))


def _locate_spaced(quote: str, text: str, start: int) -> tuple[int, int] | None:
    words = quote.split()
    if len(words) < 2 or len(quote) > _LONGEST_FUZZY:
        return None
    pattern = re.compile(r"\s+".join(re.escape(word) for word in words), re.IGNORECASE)
    match = pattern.search(text, start) or pattern.search(text)
    return match.span() if match else None


def _locate_fuzzy(quote: str, text: str, cutoff: float) -> tuple[int, int] | None:
    # Short strings match almost anywhere; very long ones cost more than a highlight is worth.
    if cutoff >= 100.0 or len(quote) < _SHORTEST_FUZZY or len(text) > _LONGEST_FUZZY:
        return None
    if len(quote) > len(text):
        return None
    match = fuzz.partial_ratio_alignment(quote.lower(), text.lower(), score_cutoff=cutoff)
    if match is None or match.dest_end <= match.dest_start:
        return None
    # Lower-casing can change the length of a text (İ becomes two characters): offsets would lie.
    if len(text.lower()) != len(text):
        return None
    return match.dest_start, match.dest_end
