"""Finds verdicts that were written one after another, as in `Yes. No. Yes.`."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from ragaliq.core.results import Verdict
from ragaliq.judges.parsing.rows import Group, Row
from ragaliq.judges.parsing.words import leading_verdict

__all__ = ["announced_group", "bare_group"]

_ANNOUNCED = re.compile(
    r"\bfinal\s{1,2}verdicts?\s{1,2}for\s{1,2}(?:each|every|all|the)\b[^\n:：.]{0,60}[:：]|"
    r"\bfinal\s{1,2}verdicts?\s{1,2}for\s{1,2}each\s{1,2}statement\s{1,2}in\s{1,2}order\b|"
    r"\b(?:verdicts|answers)[*_]{0,3}\s{0,2}[:：]",
    re.IGNORECASE,
)
_SEPARATORS = re.compile(r"[\s.,;:!|*_`>#(){}\[\]\"'“”、。，；：•–—-]++")
_NUMBER = re.compile(
    r"(?P<named>(?:statement|claim|s|c)[\s#]{0,2}+)?(?P<number>\d{1,4}+)(?![\d%/])(?!\.\d)",
    re.IGNORECASE,
)
_ONE_DIGIT = re.compile(r"[\s*`\"']*+\d[\s*`\"']*+")
_OTHER = re.compile(r"[^.,;:\n|、。，；：]++")
_LONGEST = 3  # words; more than that is a sentence, and the verdicts are over


class _Piece(NamedTuple):
    """A number, a verdict (None where it settles nothing), or words that are no verdict."""

    kind: Literal["number", "digit", "verdict", "words"]
    verdict: Verdict | None = None
    number: int | None = None


def announced_group(text: str) -> Group:
    """What follows "Final verdict for each statement in order:"; the last one that has verdicts."""
    end = len(text)
    for marker in reversed(list(_ANNOUNCED.finditer(text))):
        pieces, _ = _pieces(text[marker.end() : end])
        if rows := _rows(pieces):
            return rows
        end = marker.start()
    return []


def bare_group(text: str, expected: int) -> Group:
    """The verdicts of a reply that consists of nothing else."""
    pieces, complete = _pieces(text)
    kinds = {piece.kind for piece in pieces}
    if not complete or "words" in kinds:
        return []
    rows = _rows(pieces)
    # A single "Yes." for several statements does not say for which; "1 2" may be anything.
    if len(rows) < min(expected, 2) or ("verdict" not in kinds and len(rows) != expected):
        return []
    # "1." begins a list that did not come.
    return rows if len(rows) > 1 or "verdict" in kinds or _ONE_DIGIT.fullmatch(text) else []


def _pieces(text: str) -> tuple[list[_Piece], bool]:
    """The pieces of a sequence, and whether it goes on to the end of the text."""
    pieces: list[_Piece] = []
    at = 0
    while True:
        if (gap := _SEPARATORS.match(text, at)) is not None:
            at = gap.end()
        if at == len(text):
            return pieces, True
        if (number := _NUMBER.match(text, at)) is not None:
            kind: Literal["number", "digit"] = "number" if number["named"] else "digit"
            pieces.append(_Piece(kind, number=int(number["number"])))
            at = number.end()
        elif (said := leading_verdict(text, at)) is not None:
            pieces.append(_Piece("verdict", verdict=said.verdict))
            at = said.end
        else:
            other = _OTHER.match(text, at)
            words = other.group().split() if other else []
            if other is None or len(words) > _LONGEST:
                return pieces, False
            pieces.append(_Piece("words"))
            at = other.end()


def _rows(pieces: list[_Piece]) -> list[Row]:
    if not any(piece.verdict for piece in pieces):
        digits = [piece.number for piece in pieces if piece.kind == "digit"]
        if len(digits) < len(pieces) or not set(digits) <= {0, 1}:
            return []
        return [Row(verdict="SUPPORTED" if digit else "NOT_ENOUGH_INFO") for digit in digits]
    rows, number = [], None
    for piece in pieces:
        if piece.number is not None:
            number = piece.number
        else:
            rows.append(Row(verdict=piece.verdict, number=number, whole=piece.kind == "verdict"))
            number = None
    if any(row.number is not None for row in rows):  # what has no number then only explains
        rows = [row for row in rows if row.number is not None]
    while rows and rows[-1].verdict is None:  # words after the last verdict
        rows.pop()
    return rows
