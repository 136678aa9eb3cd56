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

import re
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from ragaliq.judges.language.refusals import is_refusal
from ragaliq.judges.language.sentences import split_sentences
from ragaliq.judges.local.claim_words import ClaimWords, names_in, read_claim
from ragaliq.judges.local.context import ContextIndex
from ragaliq.judges.local.matching import match_claim
from ragaliq.judges.local.numbers import MONTHS
from ragaliq.judges.local.parameters import load_frequencies
from ragaliq.judges.local.units import UNITS
from ragaliq.judges.local.words import FUNCTION_WORDS, read_words, stem, stems_of

__all__ = ["Relevance", "answer_relevance", "chunk_relevance"]

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
    score, remark = _weighed(question, answer, cover, set(asked.stems))
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


def _weighed(question: str, answer: str, cover: float, asked: set[str]) -> tuple[float, str]:
    lexical = _lexical(cover)
    told = set(read_words(answer).stems) - (FUNCTION_WORDS - _MONTH_STEMS)  # "In May."
    if told <= asked:
        return _ECHO * lexical, " and adds nothing to it"
    for kind, asks, has in _KINDS:
        if asks.search(question):
            if has(answer):
                if len(told) <= _SHORT_TYPED and (cover or _says_little_else(answer, told)):
                    return max(lexical, _AS_ASKED), f" and a {kind}, as was asked"
            elif asks is not _THING:
                return _NOT_AS_ASKED * lexical, f" but no {kind}, as was asked"
            break
    if len(told) <= _SHORT and lexical < _UNDECIDED:
        return _UNDECIDED, " and is too short to tell"
    return lexical, ""


def _says_little_else(answer: str, told: set[str]) -> bool:
    """Whether an answer is nearly nothing but names, numbers and units: "In 1889.", "Paris."."""
    if _has_no_capitals(answer):
        return len(told) <= _SHORT
    words = {word for word in told - _NOT_BESIDE if word[0] != "#"}
    beside = words - _names(answer)
    # "Goethe." is a name; "Bananas" in "Bananas are yellow." may have its capital from its place.
    return not beside or len(beside | (_openings(answer) & words)) <= _BESIDE


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


def _names(answer: str) -> set[str]:
    frequencies = load_frequencies()
    return {name for sentence in _sentences(answer) for name in names_in(sentence, frequencies)}


def _openings(answer: str) -> set[str]:
    """Stems of the words that sentences begin with."""
    firsts = (sentence.split(maxsplit=1)[:1] for sentence in _sentences(answer))
    return {word for first in firsts for word in stems_of("".join(first))}


def _has_number(answer: str) -> bool:
    return bool(read_words(answer).numbers)


def _has_date(answer: str) -> bool:
    return _has_number(answer) or not _MONTH_STEMS.isdisjoint(read_words(answer).stems)


def _has_name(answer: str) -> bool:
    return bool(_names(answer)) or _has_no_capitals(answer)


def _has_either(answer: str) -> bool:
    return _has_number(answer) or _has_name(answer)


def _has_no_capitals(answer: str) -> bool:
    """Whether it is in a script without them, where a name cannot be told from other words."""
    return answer.lower() == answer.upper()


_KINDS: tuple[tuple[str, re.Pattern[str], Callable[[str], bool]], ...] = (
    ("number", _NUMBER, _has_number),
    ("date", _DATE, _has_date),
    ("name", _NAME, _has_name),
    ("number or a name", _THING, _has_either),
)
