"""Find the part of the context a claim agrees with best, and what of the claim is not there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragaliq.judges.local.claim_words import ClaimWords
from ragaliq.judges.local.context import ContextIndex
from ragaliq.judges.local.numbers import Number

__all__ = ["Match", "match_claim"]

_WINDOW = 3  # sentences read together
_RELATED = 0.8  # credit for another form of the word
_NEAR = 0.95  # of the best sentence's share, for another one to count as well
_MOST_NEAR = 8
_COMMON = 512  # sentences; a word in more of them does not tell them apart


@dataclass(frozen=True, slots=True)
class Match:
    """How a claim's words lie in the context. Shares are of the claim's weight, 0 to 1.

    Attributes:
        sentence: Position of the sentence that covers most; -1 in an empty context.
        near: The first sentences that cover about as much, the best among them.
        sentence_cover: Its share.
        window_cover: Share covered by the best three neighbouring sentences of a passage.
        chunk_cover: Share covered by the best passage: a chunk and what continues it.
        context_cover: Share covered by the whole context.
        chunk_ids: Chunks with a sentence about as good as the best.
        found: Words of the claim that stand in the best sentence, in any form.
        missing: Content words that stand nowhere in the context, the most telling first.
        missing_numbers: Numbers that stand nowhere.
        missing_names: Names that stand nowhere.
    """

    sentence: int
    near: list[int]
    sentence_cover: float
    window_cover: float
    chunk_cover: float
    context_cover: float
    chunk_ids: list[int]
    found: frozenset[str]
    missing: list[str]
    missing_numbers: list[Number]
    missing_names: list[str]


def match_claim(claim: ClaimWords, context: ContextIndex) -> Match:
    """Look every content word of a claim up in the context."""
    places = _places(claim, context)
    sentences, windows, chunks = _covers(claim, context, places)
    total = sum(claim.weights.values()) or 1.0
    best = max(range(len(sentences)), key=sentences.__getitem__, default=-1)
    near = _near_best(sentences)
    missing = [word for word in claim.weights if word not in places]
    return Match(
        sentence=best,
        near=near[:_MOST_NEAR],
        sentence_cover=sentences[best] / total if sentences else 0.0,
        window_cover=max(windows, default=0.0) / total,
        chunk_cover=max(chunks, default=0.0) / total,
        context_cover=sum(claim.weights[word] * credit for word, (credit, _) in places.items())
        / total,
        chunk_ids=sorted({context.chunk_of[at] for at in near}),
        found=frozenset(word for word, (_, where) in places.items() if best in where),
        missing=sorted(missing, key=lambda word: (-claim.weights[word], word)),
        missing_numbers=[
            number for number in claim.numbers if not any(map(context.places, number.values))
        ],
        missing_names=sorted(claim.names.intersection(missing)),
    )


def _places(claim: ClaimWords, context: ContextIndex) -> dict[str, tuple[float, Sequence[int]]]:
    """Content word -> credit and the sentences it stands in, for the words that are there."""
    readings = {number.values[0]: number.values for number in claim.numbers}
    places: dict[str, tuple[float, Sequence[int]]] = {}
    for word in claim.weights:
        exact = next(filter(None, map(context.places, readings.get(word, (word,)))), None)
        if exact:
            places[word] = 1.0, exact
        elif related := context.related(word):
            places[word] = _RELATED, _merged(map(context.places, related))
    return places


def _merged(postings: Iterable[Sequence[int]]) -> list[int]:
    return sorted({sentence for posting in postings for sentence in posting})


def _covers(
    claim: ClaimWords, context: ContextIndex, places: dict[str, tuple[float, Sequence[int]]]
) -> tuple[list[float], list[float], list[float]]:
    """Weight found in each sentence, each window (by its first sentence), each passage."""
    sentences = [0.0] * len(context.chunk_of)
    windows = [0.0] * len(context.chunk_of)
    chunks = [0.0] * len(context.chunks)
    passage_of = context.passage_of
    everywhere = 0.0
    for word, (credit, where) in places.items():
        gain = claim.weights[word] * credit
        if len(where) > _COMMON:
            everywhere += gain
            continue
        window_done, chunk_done = -1, -1
        for at in where:
            sentences[at] += gain
            chunk = passage_of[at]
            first = at - _WINDOW + 1
            for start in range(first if first > window_done else window_done + 1, at + 1):
                if passage_of[start] == chunk:
                    windows[start] += gain
            window_done = at
            if chunk != chunk_done:
                chunks[chunk] += gain
                chunk_done = chunk
    if everywhere:
        sentences, windows, chunks = (
            [share + everywhere for share in shares] for shares in (sentences, windows, chunks)
        )
    return sentences, windows, chunks


def _near_best(sentences: list[float]) -> list[int]:
    least = max(sentences, default=0.0) * _NEAR
    return [at for at, share in enumerate(sentences) if share >= least] if least > 0.0 else []
