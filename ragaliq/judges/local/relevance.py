"""How well a text addresses a question, by its words.

The measure, from 0 to 1:

1. `cover` is the idf-weighted share of the question's content words that the text has, in any form.
   `lexical = 1 - (1 - cover)^2`, as a good answer seldom repeats all of them.
2. An answer that declines scores 0; one that only repeats the question, 0.3 times `lexical`.
3. Where the question asks for a number, a date, a person or a place, a short answer that has one
   scores 0.75 at least ("Paris." repeats nothing), and an answer without one 0.6 times `lexical`.
4. A short answer to any other question scores 0.75 at least if it has a number or a name, else
   0.5: its words say too little either way.

It knows no synonyms and does not understand either text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from ragaliq.judges.language.refusals import is_refusal
from ragaliq.judges.local.claim_words import ClaimWords, names_in, read_claim
from ragaliq.judges.local.context import ContextIndex
from ragaliq.judges.local.matching import match_claim
from ragaliq.judges.local.numbers import MONTHS
from ragaliq.judges.local.parameters import load_frequencies
from ragaliq.judges.local.words import FUNCTION_WORDS, read_words, stem

__all__ = ["Relevance", "answer_relevance", "chunk_relevance"]

_ECHO = 0.3
_AS_ASKED = 0.75
_NOT_AS_ASKED = 0.6
_UNDECIDED = 0.5
_SHORT_TYPED = 15  # content words up to which an answer of the wanted kind may repeat nothing
_SHORT = 6

_ASKING = FUNCTION_WORDS | frozenset(
    map(
        stem,
        "tell explain describe list give name please many much was wer wo wann warum welche qui "
        "quand où pourquoi comment combien quel quelle quién cuándo dónde cómo cuánto qué cuál chi "
        "quando dove come quanto perché quem onde quanto wie wat waar wanneer hoeveel".split(),
    )
)
_MONTH_STEMS = frozenset(map(stem, MONTHS))
# "What happens when ..." asks for no date: the word that asks stands in front.
_FRONT = r"^\W*(?:(?:and|so|but|by|from|at|to|with|for|of|in|on|since|until|de|a|à|seit|von) )?"
_NUMBER = re.compile(
    r"\bhow (?:many|much|long|old|far|tall|big|large|often|high|fast)\b|\bwie ?viele?\b|"
    r"\bcombien\b|\bcuánt[oa]s?\b|\bquant[oiae]s?\b|\bhoeveel\b|\bсколько\b|"
    r"多少|几|幾|いくつ|いくら|몇|얼마",
    re.IGNORECASE,
)
_DATE = re.compile(
    _FRONT + r"(?:when|(?:what|which) (?:year|date|day|time)|wann|quand|cuándo|quando|wanneer|"
    r"когда|متى|कब)\b|什么时候|什麼時候|何时|いつ|언제",
    re.IGNORECASE,
)
_NAME = re.compile(
    _FRONT + r"(?:who|whom|whose|where|wer|wen|wem|wo|où|quién(?:es)?|dónde|dove|quem|onde|waar|"
    r"кто|где)\b",
    re.IGNORECASE,
)


class Relevance(NamedTuple):
    """A score, 0 to 1, and why."""

    score: float
    reason: str


def answer_relevance(question: str, answer: str) -> Relevance:
    """How well an answer addresses a question."""
    if not answer.strip():
        return Relevance(0.0, "The answer is empty.")
    if is_refusal(answer):
        return Relevance(0.0, "The answer declines to answer.")
    asked = _asked(question)
    if not asked.weights:
        return Relevance(_UNDECIDED, "The question has no content words to compare.")
    cover = match_claim(asked, ContextIndex([answer])).chunk_cover
    told = set(read_words(answer).stems) - FUNCTION_WORDS
    score, remark = _weighed(question, answer, _lexical(cover), told, echo=told <= set(asked.stems))
    return Relevance(
        round(score, 4), f"The answer has {cover:.0%} of the question's wording{remark}."
    )


def chunk_relevance(question: str, chunk: str) -> Relevance:
    """How well a chunk of context addresses a question: `lexical`, from words close together."""
    asked = _asked(question)
    if not asked.weights or not chunk.strip():
        return Relevance(0.0, "There are no content words to compare.")
    match = match_claim(asked, ContextIndex([chunk]))
    cover = (match.window_cover + match.chunk_cover) / 2
    return Relevance(
        round(_lexical(cover), 4), f"The chunk has {cover:.0%} of the question's wording."
    )


def _asked(question: str) -> ClaimWords:
    words = read_claim(question, load_frequencies())
    weights = {word: weight for word, weight in words.weights.items() if word not in _ASKING}
    return replace(words, weights=weights)


def _lexical(cover: float) -> float:
    return 1.0 - (1.0 - min(cover, 1.0)) ** 2


def _weighed(
    question: str, answer: str, lexical: float, told: set[str], *, echo: bool
) -> tuple[float, str]:
    if echo:
        return _ECHO * lexical, " and adds nothing to it"
    for kind, asks, has in _KINDS:
        if asks.search(question):
            if not has(answer):
                return _NOT_AS_ASKED * lexical, f" but no {kind}, as was asked"
            floor = _AS_ASKED if len(told) <= _SHORT_TYPED else 0.0
            return max(lexical, floor), f" and a {kind}, as was asked"
    if len(told) > _SHORT:
        return lexical, ""
    named = _has_number(answer) or _has_name(answer)
    return max(lexical, _AS_ASKED if named else _UNDECIDED), ""


def _has_number(answer: str) -> bool:
    return bool(read_words(answer).numbers)


def _has_date(answer: str) -> bool:
    return _has_number(answer) or not _MONTH_STEMS.isdisjoint(read_words(answer).stems)


def _has_name(answer: str) -> bool:
    # Scripts without capitals: a name cannot be told from other words.
    return bool(names_in(answer, load_frequencies())) or answer.lower() == answer.upper()


_KINDS: tuple[tuple[str, re.Pattern[str], Callable[[str], bool]], ...] = (
    ("number", _NUMBER, _has_number),
    ("date", _DATE, _has_date),
    ("name", _NAME, _has_name),
)
