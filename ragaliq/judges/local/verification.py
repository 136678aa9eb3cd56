"""Decide claims against a context: features, support score, signs, verdict and reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ragaliq.core.results import Verdict
from ragaliq.judges.local.claim_words import read_claim
from ragaliq.judges.local.context import ContextIndex
from ragaliq.judges.local.features import Features, measure
from ragaliq.judges.local.frequencies import WordFrequencies
from ragaliq.judges.local.matching import Match, match_claim
from ragaliq.judges.local.parameters import load_frequencies, load_model
from ragaliq.judges.local.signs import Sign, find_sign
from ragaliq.judges.local.words import is_pair, read_words, stems_of

__all__ = ["Decision", "Verifier", "examine"]

_THRESHOLD = 0.5
_KEPT = 4  # contexts
_MOST_NAMED = 5  # missing words a reason names
_SURFACE = re.compile(r"[1-9]\d{0,2}(?: \d{3})+|\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*")


class Decision(NamedTuple):
    """What was decided about one claim; the fields are those of `ClaimVerdict`."""

    verdict: Verdict
    confidence: float
    reason: str
    evidence: str = ""
    supporting_chunk_ids: Sequence[int] = ()


def examine(
    claim: str, context: ContextIndex, frequencies: WordFrequencies
) -> tuple[Match, Sign | None, Features]:
    """Everything the verdict on a claim rests on; the training recipe starts here too."""
    parts = read_claim(claim, frequencies)
    match = match_claim(parts, context)
    sign = find_sign(parts, match, context, frequencies)
    stems = context.stems(match.sentence) if match.sentence >= 0 else []
    return match, sign, measure(parts, match, context, sentence=stems, sign=sign)


@lru_cache(maxsize=_KEPT)
def _read(chunks: tuple[str, ...]) -> ContextIndex:
    """The index of a context; the last few are kept, as claims are often asked one by one."""
    return ContextIndex(chunks)


class Verifier:
    """Decides claims against one context, which is read once.

    Args:
        chunks: The texts of the context.
    """

    def __init__(self, chunks: Sequence[str]) -> None:
        self._context = _read(tuple(chunks))
        self._frequencies = load_frequencies()
        self._model = load_model()

    def decide(self, claim: str) -> Decision:
        """Decide one claim. The confidence is a score, not a calibrated probability."""
        if not self._context.chunk_of:
            return Decision("NOT_ENOUGH_INFO", 1.0, "The context is empty.")
        match, sign, features = examine(claim, self._context, self._frequencies)
        support = round(self._model.support(features), 4)
        if sign is None and support < _THRESHOLD:
            return Decision(
                "NOT_ENOUGH_INFO", round(1.0 - support, 4), _what_is_missing(claim, match)
            )
        evidence = self._context.text(match.sentence)
        if sign is not None:
            chunk = self._context.chunk_of[match.sentence]
            doubt = round(max(1.0 - support, 1.0 - _THRESHOLD), 4)
            return Decision("CONTRADICTED", doubt, _told(claim, evidence, sign), evidence, [chunk])
        return Decision("SUPPORTED", support, _found(claim, match), evidence, match.chunk_ids)


def _found(claim: str, match: Match) -> str:
    found = f"{match.window_cover:.0%} of the claim's wording stands close together"
    if not match.missing:
        return f"{found}."
    missing = ", ".join(_as_written(claim, match.missing[:_MOST_NAMED]))
    return f"{found}; the context does not have {missing}."


def _told(claim: str, sentence: str, sign: Sign) -> str:
    if sign.kind == "negation":
        return "A sentence with the same wording differs in negation."
    between = " " if sign.kind == "measure" else ", "  # a measure is a number and its unit
    claimed = between.join(_as_written(claim, sign.claimed))
    stated = between.join(_as_written(sentence, sign.stated))
    return f"The claim has the {sign.kind} {claimed} where a matching sentence has {stated}."


def _what_is_missing(claim: str, match: Match) -> str:
    if not read_words(claim).stems:
        return "The claim has no words to compare."
    if not match.missing:
        return (
            "Not supported by wording: the claim's words occur in the context, but not together "
            f"({match.window_cover:.0%})."
        )
    words = _as_written(claim, match.missing[:_MOST_NAMED])
    return f"Not supported by wording: the context does not have {', '.join(words)}."


def _as_written(text: str, stems: Sequence[str]) -> list[str]:
    """The words of a text behind some stems; where they cannot be told, the stems."""
    forms: dict[str, str] = {}
    for word in _SURFACE.findall(text):
        for stem in stems_of(word):
            forms.setdefault(stem, word)
    shown = (stem if is_pair(stem) else forms.get(stem, stem.lstrip("#")) for stem in stems)
    return list(dict.fromkeys(shown))
