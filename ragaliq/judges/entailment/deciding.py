"""From a model's chances to verdicts: windows, the best of them, the best chunk in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ragaliq.core.results import Verdict
from ragaliq.judges.entailment.scoring import PairScorer, Support
from ragaliq.judges.entailment.windows import Window, windows_of

__all__ = ["Decision", "decide_all"]

_DIGITS = 4
_EVEN = 0.5
_UNLIMITED = 1 << 30
_LEAST_WINDOW = 8  # tokens; with less room nothing could be read


class Decision(NamedTuple):
    """What was decided about one claim; the fields are those of `ClaimVerdict`."""

    verdict: Verdict
    confidence: float
    reason: str
    supporting_chunk_ids: Sequence[int] = ()


def decide_all(
    scorer: PairScorer, claims: Sequence[str], chunks: Sequence[str], *, threshold: float
) -> list[Decision | None]:
    """Decide claims; None for one that leaves the model too little room for the context."""
    if not any(chunk.strip() for chunk in chunks):
        empty = Decision("NOT_ENOUGH_INFO", 1.0, "The context is empty.")
        return [empty] * len(claims)
    sizes = [scorer.count(claim) for claim in claims]
    readable = [i for i, size in enumerate(sizes) if _has_room(scorer, size)]
    if not readable:
        return [None] * len(claims)
    reader = _Reader(scorer, chunks, _budget(scorer, max(sizes[i] for i in readable)), threshold)
    decided = dict(zip(readable, reader.decide([claims[i] for i in readable]), strict=True))
    return [decided.get(i) for i in range(len(claims))]


def _has_room(scorer: PairScorer, size: int) -> bool:
    # More than half for the claim, and the windows would be scraps.
    limit = scorer.max_tokens
    return limit is None or size <= (limit - scorer.own_tokens - _LEAST_WINDOW) // 2


def _budget(scorer: PairScorer, longest: int) -> int:
    if scorer.max_tokens is None:
        return _UNLIMITED
    return scorer.max_tokens - scorer.own_tokens - longest


class _Reader:
    def __init__(
        self, scorer: PairScorer, chunks: Sequence[str], budget: int, threshold: float
    ) -> None:
        self._scorer, self._chunks = scorer, chunks
        self._budget, self._threshold = budget, threshold
        self._windows = windows_of(chunks, scorer.count, budget=budget)

    def decide(self, claims: Sequence[str]) -> list[Decision]:
        """Decide claims for which there is room."""
        size = len(self._windows)
        pairs = [(window.text, claim) for claim in claims for window in self._windows]
        scores = self._scorer.score(pairs)
        return [
            self._decide(claim, scores[i * size : (i + 1) * size]) for i, claim in enumerate(claims)
        ]

    def _decide(self, claim: str, scores: Sequence[Support]) -> Decision:
        best = max(range(len(scores)), key=lambda i: scores[i].supported)
        against = max(range(len(scores)), key=lambda i: scores[i].contradicted)
        support = round(scores[best].supported, _DIGITS)
        contradiction = round(scores[against].contradicted, _DIGITS)
        doubt = round(1.0 - support, _DIGITS)
        if support >= self._threshold:
            reason = f"Entailed with a chance of {support:.0%}."
            chunk = self._clearest_chunk(claim, self._windows[best], "supported")
            return Decision("SUPPORTED", support, reason, [chunk])
        if contradiction > max(support, _EVEN):
            reason = f"Contradicted with a chance of {contradiction:.0%}."
            chunk = self._clearest_chunk(claim, self._windows[against], "contradicted")
            return Decision("CONTRADICTED", doubt, reason, [chunk])
        return Decision(
            "NOT_ENOUGH_INFO", doubt, f"Entailed with a chance of {support:.0%} at most."
        )

    def _clearest_chunk(self, claim: str, window: Window, field: str) -> int:
        """The chunk of a window that says it most clearly by itself."""
        if len(window.chunks) == 1:
            return window.chunks[0]
        parts = [
            (part.text, position)
            for position in window.chunks
            for part in windows_of(
                [self._chunks[position]], self._scorer.count, budget=self._budget
            )
        ]
        scores = self._scorer.score([(text, claim) for text, _ in parts])
        clearest = max(range(len(parts)), key=lambda i: float(getattr(scores[i], field)))
        return parts[clearest][1]
