"""The numbers the support score is made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ragaliq.judges.local.claim_words import ABSOLUTES, ClaimWords
from ragaliq.judges.local.context import ContextIndex
from ragaliq.judges.local.matching import Match
from ragaliq.judges.local.negation import denies
from ragaliq.judges.local.signs import Sign

__all__ = ["Features", "measure"]


class Features(NamedTuple):
    """One claim against one context.

    Attributes:
        cover: Share of the claim's weight found, the nearer together the better: half of it counts
            in the best window, a quarter in the best chunk, a quarter in the whole context.
        run: Longest run of words shared with a sentence, as a share of the claim's words.
        missing_number: 1 where a number of the claim stands nowhere in the context.
        missing_name: 1 where a name stands nowhere.
        negation: 1 where the claim denies and the best sentence does not.
        absolutes: Words such as "only", "always", "more" that the best sentence does not have,
            0 to 2.
        contradiction: 1 where there is a positive sign of a contradiction.
        length: ln(1 + content words): long claims are never covered in full.
    """

    cover: float
    run: float
    missing_number: float
    missing_name: float
    negation: float
    absolutes: float
    contradiction: float
    length: float


def measure(
    claim: ClaimWords,
    match: Match,
    context: ContextIndex,
    *,
    sentence: Sequence[str],
    sign: Sign | None,
) -> Features:
    """Measure how a matched claim stands.

    Args:
        claim: The claim.
        match: Where its words were found.
        context: Where they were looked for.
        sentence: All words of the best sentence.
        sign: What speaks for a contradiction, if anything.
    """
    best = set(sentence)
    absent = sum(word in ABSOLUTES and word not in best for word in claim.stems)
    return Features(
        cover=match.window_cover / 2 + match.chunk_cover / 4 + match.context_cover / 4,
        run=_longest_run(claim.stems, context),
        missing_number=float(bool(match.missing_numbers)),
        missing_name=float(bool(match.missing_names)),
        negation=float(claim.negated and not denies(sentence)),
        absolutes=float(min(absent, 2)),
        contradiction=float(sign is not None),
        length=math.log1p(len(claim.weights)),
    )


def _longest_run(stems: list[str], context: ContextIndex) -> float:
    """Words in the longest chain of shared three-word runs, as a share of the claim."""
    longest = run = 0
    for shingle in zip(stems, stems[1:], stems[2:], strict=False):
        run = run + 1 if context.says(*shingle) else 0
        longest = max(longest, run)
    return (longest + 2) / len(stems) if longest else 0.0
