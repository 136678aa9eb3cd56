"""Citations metric: do the answer's citations name the chunks that support its claims?

Citations are read from the answer's text: `[1]`, `[1, 2]`, `[1-3]`, `[^1]` with or without its
note, and `(source: refunds.md)`; from LlamaIndex's citation nodes, which begin with "Source 1:";
and from the model's own citation blocks (`RAGTestCase.citations`).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from ragaliq.core.citations import Citation
from ragaliq.core.results import ClaimDetail
from ragaliq.core.test_case import DOCUMENT_NAMES, ChunkId, ContextChunk, RAGTestCase
from ragaliq.evaluators.alignment import SearchedText
from ragaliq.evaluators.claims import NAMED_SOURCE, ClaimCheck
from ragaliq.evaluators.metrics import ClaimEvaluator, Measured
from ragaliq.evaluators.registry import register_evaluator
from ragaliq.judges.language.sentences import split_sentences

_MARKER = re.compile(
    r"\[\^?(?P<numbers>\d{1,3}(?:\s?[-–,;]\s?\^?\d{1,3}){0,20})\]"
    r"|【(?P<wide>\d{1,3})[^】]{0,40}】"
    rf"|(?P<by_name>{NAMED_SOURCE})"
)
_NAME = re.compile(NAMED_SOURCE)
_NOTE = re.compile(r"^[ \t]*(?:[-*][ \t]+)?\[\^?(\d{1,3})\](:?)[ \t]+(.+)$", re.MULTILINE)
_NODE = re.compile(r"\s*Source (\d{1,3}):")
_PAGE = re.compile(r"[,;]?\s*\b(?:p|pp|page|pages|section|§|s)\.?\s*[\d\w.–-]+\s*$", re.IGNORECASE)
_MOST_IN_RANGE = 20
_SLACK = 3


class _Marker(NamedTuple):
    """Adjacent citations in the answer: their place and their chunks; None for an unknown one."""

    start: int
    end: int
    chunks: tuple[ChunkId | None, ...]


class _Chunks:
    """Index of a case's chunks by number, name and quote, as citations refer to them."""

    def __init__(self, case: RAGTestCase) -> None:
        self._case = case
        self._texts = dict(zip(case.chunk_ids, case.context_texts, strict=True))
        self._named: dict[str, ChunkId] = {}
        self._nodes: dict[int, ChunkId] = {}
        own: dict[str, ChunkId] = {}
        for chunk_id, chunk in zip(case.chunk_ids, case.context, strict=True):
            text = chunk if isinstance(chunk, str) else chunk.text
            if node := _NODE.match(text):
                self._nodes[int(node[1])] = chunk_id
            if not isinstance(chunk, ContextChunk):
                continue
            if chunk.id is not None:
                own[str(chunk.id).casefold()] = chunk_id
            for key in DOCUMENT_NAMES:
                name = chunk.metadata.get(key)
                if isinstance(name, str) and name.strip():
                    self._named.setdefault(_folded(name), chunk_id)
                    self._named.setdefault(
                        _folded(name.replace("\\", "/").split("/")[-1]), chunk_id
                    )
        self._own = own

    def numbered(self, number: int) -> ChunkId | None:
        """Chunk with this number: a citation node, a chunk's own id, else its position."""
        if number in self._nodes:
            return self._nodes[number]
        if str(number) in self._own:
            return self._own[str(number)]
        ids = self._case.chunk_ids
        return ids[number - 1] if 1 <= number <= len(ids) and not self._nodes else None

    def by_name(self, name: str) -> ChunkId | None:
        """Chunk with this name: its id, or its document's name in the metadata."""
        for each in (name, _PAGE.sub("", name)):
            plain = _folded(each)
            found = self._own.get(each.strip().casefold(), self._named.get(plain))
            if found is not None:
                return found
        number = _NODE.match(f"{name}:")
        return self.numbered(int(number[1])) if number else None

    def quoted(self, citation: Citation) -> ChunkId | None:
        """Chunk of a model's citation block: by its quote, its title or its position."""
        if citation.quote.strip():
            for chunk_id, text in self._texts.items():
                if citation.quote.strip() in text or SearchedText(text).find_words(citation.quote):
                    return chunk_id
        found = self.by_name(citation.source) if citation.source else None
        ids = self._case.chunk_ids
        if found is None and citation.position is not None and not citation.quote.strip():
            found = ids[citation.position] if 0 <= citation.position < len(ids) else None
        return found

    def holds(self, chunk_id: ChunkId | None, quote: str) -> bool:
        """Check whether a quote occurs in a chunk."""
        text = self._texts.get(chunk_id) if chunk_id is not None else None
        return bool(text and quote.strip() and SearchedText(text).find_words(quote))

    def text(self, chunk_id: ChunkId, start: int, end: int) -> str:
        """Range of a chunk's text; empty for an id outside this turn's context."""
        return self._texts.get(chunk_id, "")[start:end]


def _folded(name: str) -> str:
    return " ".join(re.findall(r"\w+", name.casefold()))


@register_evaluator("citations")
class CitationsEvaluator(ClaimEvaluator):
    """Agreement of the answer's citations with the chunks that support its claims.

    Precision and recall as in ALCE (Gao et al. 2023, arXiv:2305.14627), over claims: `recall` is
    the share of claims that the chunks cited for them support; `precision` the share of citations
    that help to support such a claim. `score` is their harmonic mean. The supporting chunks come
    from the claim check, which is shared with faithfulness: the metric costs nothing more. A claim
    that rests on a user's statement needs no citation.

    `raw_response`: `claims` (a list of `{claim, verdict, citation, cited_chunk_ids,
    supporting_chunk_ids}`), `recall`, `precision`, `total_claims`, `total_citations`,
    `unknown_citations` (those that name no chunk), and the number of claims by `citation`:
    `supported` (a cited chunk supports it), `misattributed` (another chunk does), `unsupported`
    (none does), `uncited`.
    """

    description = "Measures whether the answer cites the chunks that support its claims"
    threshold = 0.7
    without_claims = "No claims to verify; there is nothing to cite."
    scores_answers_without_claims = False

    def score(self, check: ClaimCheck) -> Measured:
        """Harmonic mean of precision and recall."""
        chunks = _Chunks(check.case)
        claims = [claim for claim in check.decided if claim.support_source != "user"]
        rows: list[dict[str, Any]] = []
        correct = 0
        for claim, cited in zip(claims, _cited(check.case, chunks, claims), strict=True):
            helpful = _helpful(claim, cited, chunks)
            correct += len(helpful)
            if helpful:
                worth = "supported"
            elif not cited:
                worth = "uncited"
            else:
                worth = "misattributed" if claim.verdict == "SUPPORTED" else "unsupported"
            rows.append(
                {
                    "claim": claim.claim,
                    "verdict": claim.verdict,
                    "citation": worth,
                    "cited_chunk_ids": cited,
                    "supporting_chunk_ids": list(claim.supporting_chunk_ids),
                }
            )
        counts = Counter(row["citation"] for row in rows)
        given = [chunk for row in rows for chunk in row["cited_chunk_ids"]]
        recall = counts["supported"] / max(1, len(rows))
        precision = correct / max(1, len(given))
        score = 2 * precision * recall / (precision + recall) if correct else 0.0
        reasoning = f"{counts['supported']} of {len(rows)} claims cite a chunk that supports them."
        if wrong := len(given) - correct:
            reasoning += f" {wrong} of {len(given)} citations do not help."
        return Measured(
            score,
            reasoning if given else "The answer cites nothing.",
            {
                "claims": rows,
                "recall": recall,
                "precision": precision,
                "total_claims": len(rows),
                "total_citations": len(given),
                "unknown_citations": given.count(None),
                **{each: counts[each] for each in _WORTHS},
            },
        )


_WORTHS = ("supported", "misattributed", "unsupported", "uncited")


def _helpful(
    claim: ClaimDetail, cited: Sequence[ChunkId | None], chunks: _Chunks
) -> list[ChunkId | None]:
    """Citations of a claim that help to support it; none if they do not suffice."""
    if claim.verdict != "SUPPORTED":
        return []
    parts = [(span.chunk_id, chunks.text(*span)) for span in claim.evidence_spans]
    resting = {*claim.supporting_chunk_ids, *(chunk_id for chunk_id, _ in parts)}

    def supports(chunk_id: ChunkId | None) -> bool:
        return chunk_id in resting or any(chunks.holds(chunk_id, quote) for _, quote in parts)

    # Evidence from several chunks requires citations of all of them, or of equivalent chunks.
    if len({chunk_id for chunk_id, _ in parts}) > 1:
        for chunk_id, quote in parts:
            if chunk_id not in cited and not any(chunks.holds(each, quote) for each in cited):
                return []
    return [chunk_id for chunk_id in cited if supports(chunk_id)]


def _cited(
    case: RAGTestCase, chunks: _Chunks, claims: Sequence[ClaimDetail]
) -> list[list[ChunkId | None]]:
    """Chunks cited for each claim.

    A citation covers the text before it in its sentence, back to the previous citation; if there is
    none, the text after it.
    """
    answer = case.response
    found: list[dict[ChunkId | None, None]] = [{} for _ in claims]
    markers = _markers(answer, chunks)
    sentences = _sentences(answer, markers)
    has_lost = any(claim.answer_span is None for claim in claims)
    said = [set(_folded(answer[a:b]).split()) for a, b in sentences] if has_lost else []
    places = [claim.answer_span or _likest(sentences, said, claim.claim) for claim in claims]
    order = sorted(range(len(places)), key=places.__getitem__)
    longest = max((b - a for a, b in places), default=0)

    def cite(start: int, end: int, cited: Sequence[ChunkId | None]) -> bool:
        first = bisect_left(order, start - longest, key=lambda i: places[i][0])
        last = bisect_left(order, end, key=lambda i: places[i][0])
        # An approximate place may be a few characters off.
        spoken = [
            i
            for i in order[first:last]
            if min(places[i][1], end) - max(places[i][0], start) > _SLACK
        ]
        for i in spoken:
            found[i].update(dict.fromkeys(cited))
        return bool(spoken)

    for citation in case.citations:
        cite(citation.start, citation.end, [chunks.quoted(citation)])
    for start, end in sentences:
        inside = _inside(markers, start, end)
        begin = start
        for marker, following in zip_longest(inside, inside[1:]):
            if not cite(begin, marker.start, marker.chunks):
                cite(marker.end, following.start if following else end, marker.chunks)
            begin = marker.end
    return [list(each) for each in found]


def _markers(answer: str, chunks: _Chunks) -> list[_Marker]:
    """Citations in an answer's text; adjacent ones are one."""
    notes: dict[int, ChunkId | None] = {}
    aside: list[tuple[int, int]] = []
    for note in _NOTE.finditer(answer):
        chunk_id = chunks.by_name(note[3])
        # Without a colon this may be a sentence that begins with its citation.
        if chunk_id is not None or note[2]:
            number = int(note[1])
            notes[number] = chunks.numbered(number) if chunk_id is None else chunk_id
            aside.append(note.span())
    markers: list[_Marker] = []
    for match in _MARKER.finditer(answer):
        start, end = match.span()
        at = bisect_right(aside, start, key=lambda each: each[0])
        if at and start < aside[at - 1][1]:
            continue
        if match["by_name"]:
            names = re.sub(_NAME, r"\1", match["by_name"]).split(";")
            cited = tuple(map(chunks.by_name, names))
        else:
            numbers = _numbers(match["numbers"] or match["wide"])
            cited = tuple(notes[n] if n in notes else chunks.numbered(n) for n in numbers)
        if markers and not answer[markers[-1].end : start].strip(" ,;"):
            start, cited = markers[-1].start, markers.pop().chunks + cited
        markers.append(_Marker(start, end, cited))
    return markers


def _inside(markers: Sequence[_Marker], start: int, end: int) -> Sequence[_Marker]:
    """Markers that begin in a range; the markers are in order."""
    first = bisect_left(markers, start, key=lambda marker: marker.start)
    return markers[first : bisect_left(markers, end, key=lambda marker: marker.start)]


def _numbers(written: str) -> Iterator[int]:
    """Numbers in `1`, `1, 2`, `1-3`."""
    for part in re.split(r"\s?[,;]\s?", written):
        first, *last = (int(number) for number in re.findall(r"\d+", part))
        yield from range(first, min(max([first, *last]), first + _MOST_IN_RANGE) + 1)


def _sentences(answer: str, markers: Sequence[_Marker]) -> list[tuple[int, int]]:
    """Sentences of the answer; one that only cites belongs to the sentence before."""
    sentences: list[tuple[int, int]] = []
    for start, end in split_sentences(answer):
        said = answer[start:end]
        for marker in _inside(markers, start, end):
            said = said.replace(answer[marker.start : marker.end], "")
        if sentences and not re.search(r"\w", said):
            sentences[-1] = sentences[-1][0], end
        else:
            sentences.append((start, end))
    return sentences


def _likest(
    sentences: Sequence[tuple[int, int]], said: Sequence[set[str]], claim: str
) -> tuple[int, int]:
    """Sentence with the most words of a claim that has no place in the answer."""
    words = set(_folded(claim).split())
    shared = [len(words & each) for each in said]
    return sentences[shared.index(max(shared))] if any(shared) else (0, 0)
