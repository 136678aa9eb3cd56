"""How well a text addresses a question, by its words.

The measure, from 0 to 1:

1. `cover` is the idf-weighted share of the question's content words that the text has, in any form.
   `lexical = 1 - (1 - cover)^2`, as a good answer seldom repeats all of them.
2. An answer that declines scores 0; one that only repeats the question, 0.3 times `lexical`.
3. Where the question asks for a number, a date, a person or a place, a short answer that has one
   scores 0.75 at least, if it shares a word with the question or says nearly nothing else ("Paris."
   repeats nothing), and an answer without one 0.6 times `lexical`. "What" and "which" may ask for a
   number or a name, and for other things too: the same floor, no deduction.
4. Any other short answer scores 0.5 at least: its words say too little either way.

It knows no synonyms and does not understand either text.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from ragaliq.errors import JudgeAPIError, JudgeResponseError
from ragaliq.judges.language.refusals import is_refusal
from ragaliq.judges.language.sentences import split_sentences
from ragaliq.judges.local.claim import ClaimWords, WordFrequencies, names_in, read_claim
from ragaliq.judges.local.context import ContextIndex
from ragaliq.judges.local.numbers import MONTHS, UNITS
from ragaliq.judges.local.verdict import match_claim
from ragaliq.judges.local.words import FUNCTION_WORDS, read_words, stem, stems_of

__all__ = [
    "Embed",
    "Relevance",
    "answer_relevance",
    "chunk_relevance",
    "embedded_answer_relevance",
    "embedded_chunk_relevance",
]


_ECHO = 0.3
_AS_ASKED = 0.75
_NOT_AS_ASKED = 0.6
_UNDECIDED = 0.5
_SHORT_TYPED = 15  # content words up to which an answer of the wanted kind may repeat nothing
_SHORT = 6
_BESIDE = 1  # content words an answer may have beside a name or a number, and be nothing else

_ASKING = FUNCTION_WORDS | frozenset(
    map(
        stem,
        "tell explain describe list give name please many much was wer wo wann warum welche qui "
        "quand où pourquoi comment combien quel quelle quién cuándo dónde cómo cuánto qué cuál chi "
        "quando dove come quanto perché quem onde quanto wie wat waar wanneer hoeveel".split(),
    )
)
_MONTH_STEMS = frozenset(map(stem, MONTHS))
# What stands before a name or a number and says nothing by itself.
_BEFORE = frozenset(
    map(
        stem,
        "within around approximately roughly nearly almost near behind beside inside outside "
        "opposite binnen etwa ungefähr nahe hinter neben environ près derrière cerca circa".split(),
    )
)
_NOT_BESIDE = _BEFORE | _MONTH_STEMS | frozenset(map(stem, UNITS))
# "What happens when ..." asks for no date: the word that asks stands in front.
_FRONT = (
    r"^\W*(?:please )?(?:(?:(?:do|can|could|would) you )?(?:please )?(?:know|tell me) )?"
    r"(?:(?:and|so|but|by|from|at|to|with|for|of|in|on|since|until|de|a|à|seit|von) )?"
)
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
    r"кто|где)\b|谁|誰|哪里|哪裡|どこ|누구|누가|어디|कौन|कहाँ",
    re.IGNORECASE,
)
# What they ask for may as well be no name and no number: "What colour is it?"
_THING = re.compile(
    _FRONT + r"(?:what|which|name|give|was|welche[mnrs]?|que|quel(?:le)?s?|qué|cuál(?:es)?|che|qual"
    r"[ei]?|quais|wat|welke|что|како[йе]|какая)\b|什么|什麼|哪|何|どれ|どの|무엇|어느",
    re.IGNORECASE,
)


class Relevance(NamedTuple):
    """A score, 0 to 1, and why."""

    score: float
    reason: str


def answer_relevance(question: str, answer: str, frequencies: WordFrequencies) -> Relevance:
    """How well an answer addresses a question."""
    if not answer.strip():
        return Relevance(0.0, "The answer is empty.")
    if is_refusal(answer):
        return Relevance(0.0, "The answer declines to answer.")
    asked = _asked(question, frequencies)
    if not asked.weights:
        return Relevance(_UNDECIDED, "The question has no content words to compare.")
    cover = match_claim(asked, ContextIndex([answer])).chunk_cover
    score, remark = _weighed(asked, question, _Answer(answer, frequencies), cover)
    return Relevance(
        round(score, 4), f"The answer has {cover:.0%} of the question's wording{remark}."
    )


def chunk_relevance(question: str, chunk: str, frequencies: WordFrequencies) -> Relevance:
    """How well a chunk of context addresses a question: `lexical`, from words close together."""
    asked = _asked(question, frequencies)
    if not asked.weights or not chunk.strip():
        return Relevance(0.0, "There are no content words to compare.")
    match = match_claim(asked, ContextIndex([chunk]))
    cover = (match.window_cover + match.chunk_cover) / 2
    return Relevance(
        round(_lexical(cover), 4), f"The chunk has {cover:.0%} of the question's wording."
    )


def _asked(question: str, frequencies: WordFrequencies) -> ClaimWords:
    words = read_claim(question, frequencies)
    weights = {word: weight for word, weight in words.weights.items() if word not in _ASKING}
    return replace(words, weights=weights)


def _lexical(cover: float) -> float:
    return 1.0 - (1.0 - min(cover, 1.0)) ** 2


def _weighed(asked: ClaimWords, question: str, answer: _Answer, cover: float) -> tuple[float, str]:
    lexical = _lexical(cover)
    if answer.words <= set(asked.stems):
        return _ECHO * lexical, " and adds nothing to it"
    for kind, asks, has in _KINDS:
        if asks.search(question):
            if has(answer):
                short = len(answer.words) <= _SHORT_TYPED
                if short and (cover or answer.is_little_else()):
                    return max(lexical, _AS_ASKED), f" and a {kind}, as was asked"
            elif asks is not _THING:
                return _NOT_AS_ASKED * lexical, f" but no {kind}, as was asked"
            break
    if len(answer.words) <= _SHORT and lexical < _UNDECIDED:
        return _UNDECIDED, " and is too short to tell"
    return lexical, ""


class _Answer:
    """An answer, and what kinds of words it has."""

    def __init__(self, text: str, frequencies: WordFrequencies) -> None:
        read = read_words(text)
        self.words = set(read.stems) - (FUNCTION_WORDS - _MONTH_STEMS)  # "In May."
        self.has_number = bool(read.numbers)
        self.has_date = self.has_number or not _MONTH_STEMS.isdisjoint(read.stems)
        # In a script without capitals a name cannot be told from other words.
        self._has_no_capitals = text.lower() == text.upper()
        self._sentences = [text[start:end] for start, end in split_sentences(text)]
        self._frequencies = frequencies

    @cached_property
    def names(self) -> set[str]:
        return {
            name for sentence in self._sentences for name in names_in(sentence, self._frequencies)
        }

    @property
    def has_name(self) -> bool:
        return bool(self.names) or self._has_no_capitals

    def is_little_else(self) -> bool:
        """Whether it is nearly nothing but names, numbers and units: "In 1889.", "Paris."."""
        if self._has_no_capitals:
            return len(self.words) <= _SHORT
        words = {word for word in self.words - _NOT_BESIDE if word[0] != "#"}
        beside = words - self.names
        # "Goethe." is a name; "Bananas" in "Bananas are yellow." may owe its capital to its place.
        firsts = (sentence.split(maxsplit=1)[:1] for sentence in self._sentences)
        openings = {word for first in firsts for word in stems_of("".join(first))}
        return not beside or len(beside | (openings & words)) <= _BESIDE


_KINDS: tuple[tuple[str, re.Pattern[str], Callable[[_Answer], bool]], ...] = (
    ("number", _NUMBER, lambda answer: answer.has_number),
    ("date", _DATE, lambda answer: answer.has_date),
    ("name", _NAME, lambda answer: answer.has_name),
    ("number or a name", _THING, lambda answer: answer.has_number or answer.has_name),
)


# By the user's own embeddings.

Embed = Callable[[list[str]], Sequence[Sequence[float]]]
"""Texts to vectors, one each, all of one length."""


async def embedded_answer_relevance(embed: Embed, question: str, answer: str) -> Relevance:
    """How near an answer is to a question; 0 where it declines or is empty."""
    if not answer.strip():
        return Relevance(0.0, "The answer is empty.")
    if is_refusal(answer):
        return Relevance(0.0, "The answer declines to answer.")
    return await _nearness(embed, question, answer)


async def embedded_chunk_relevance(embed: Embed, question: str, chunk: str) -> Relevance:
    """How near a chunk of context is to a question."""
    return await _nearness(embed, question, chunk)


async def _nearness(embed: Embed, question: str, text: str) -> Relevance:
    """The cosine of both vectors, from -1 to 1, as `(1 + cosine) / 2`."""
    try:
        # It may be a model or a request: other evaluations go on meanwhile.
        vectors = await asyncio.to_thread(embed, [question, text])
    except Exception as error:  # noqa: BLE001 - whatever the function fails with
        # Its message, and so the chain of causes, may hold the texts.
        raise JudgeAPIError(f"the embedding function failed: {type(error).__name__}") from None
    cosine = _cosine(*_pair(vectors))
    return Relevance(
        round((1.0 + cosine) / 2.0, 4), f"The cosine of question and text is {cosine:.2f}."
    )


def _pair(vectors: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
    try:
        one, other = ([float(value) for value in vector] for vector in vectors)
    except (TypeError, ValueError):
        raise JudgeResponseError(
            "the embedding function must give one vector of numbers for each of the two texts"
        ) from None
    if len(one) != len(other) or not all(map(math.isfinite, one + other)):
        raise JudgeResponseError(
            "the embedding function gave vectors of different lengths, or with infinite values"
        )
    return one, other


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    lengths = math.hypot(*one) * math.hypot(*other)
    if not lengths:  # a text in which the model sees nothing is near to nothing
        return 0.0
    dot = math.fsum(left * right for left, right in zip(one, other, strict=True))
    return max(-1.0, min(1.0, dot / lengths))
