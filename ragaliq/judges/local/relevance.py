"""Relevance of a text to a question, by its words.

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

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import JudgeAPIError, JudgeResponseError
from ragaliq.judges.base import JudgeResult
from ragaliq.judges.language.sentences import split_sentences
from ragaliq.judges.local.claim import ClaimWords, WordFrequencies, names_in, read_claim
from ragaliq.judges.local.context import ContextIndex, match_claim
from ragaliq.judges.local.numbers import UNITS
from ragaliq.judges.local.words import FUNCTION_WORDS, read_words, stem, stems_of

_ECHO = 0.3
_AS_ASKED = 0.75
_NOT_AS_ASKED = 0.6
_UNDECIDED = 0.5
_SHORT_TYPED = 15  # content words up to which an answer of the wanted kind may repeat nothing
_SHORT = 6
_OTHERS = 1  # content words an answer may have next to a name or a number, and be nothing else

_ASKING = FUNCTION_WORDS | frozenset(
    map(
        stem,
        "tell explain describe list give name please many much was wer wo wann warum welche qui "
        "quand où pourquoi comment combien quel quelle quién cuándo dónde cómo cuánto qué cuál chi "
        "quando dove come quanto perché quem onde quanto wie wat waar wanneer hoeveel".split(),
    )
)
_MONTH_STEMS = frozenset(
    map(
        stem,
        "january jan february feb march mar april apr may june jun july jul august aug september "
        "sept sep october oct november nov december dec".split(),
    )
)
# Words before a name or a number that say nothing by themselves.
_BEFORE = frozenset(
    map(
        stem,
        "within around approximately roughly nearly almost near behind beside inside outside "
        "opposite binnen etwa ungefähr nahe hinter neben environ près derrière cerca circa".split(),
    )
)
_NOT_OTHERS = _BEFORE | _MONTH_STEMS | frozenset(map(stem, UNITS))
# "What happens when ..." does not ask for a date: the question word comes first.
_FRONT = (
    r"^\W*(?:please )?(?:(?:(?:do|can|could|would) you )?(?:please )?(?:know|tell me) )?"
    r"(?:(?:and|so|but|by|from|at|to|with|for|of|in|on|since|until|de|a|à|seit|von) )?"
)
_THING = "number or a name"  # "What colour is it?" asks for neither, so no deduction without
_KINDS = {
    "number": re.compile(
        r"\bhow (?:many|much|long|old|far|tall|big|large|often|high|fast)\b|\bwie ?viele?\b|"
        r"\bcombien\b|\bcuánt[oa]s?\b|\bquant[oiae]s?\b|\bhoeveel\b|\bсколько\b|"
        r"多少|几|幾|いくつ|いくら|몇|얼마",
        re.IGNORECASE,
    ),
    "date": re.compile(
        _FRONT + r"(?:when|(?:what|which) (?:year|date|day|time)|wann|quand|cuándo|quando|wanneer|"
        r"когда|متى|कब)\b|什么时候|什麼時候|何时|いつ|언제",
        re.IGNORECASE,
    ),
    "name": re.compile(
        _FRONT
        + r"(?:who|whom|whose|where|wer|wen|wem|wo|où|quién(?:es)?|dónde|dove|quem|onde|waar|"
        r"кто|где)\b|谁|誰|哪里|哪裡|どこ|누구|누가|어디|कौन|कहाँ",
        re.IGNORECASE,
    ),
    _THING: re.compile(
        _FRONT
        + r"(?:what|which|name|give|was|welche[mnrs]?|que|quel(?:le)?s?|qué|cuál(?:es)?|che|qual"
        r"[ei]?|quais|wat|welke|что|како[йе]|какая)\b|什么|什麼|哪|何|どれ|どの|무엇|어느",
        re.IGNORECASE,
    ),
}


def answer_relevance(question: str, answer: str, frequencies: WordFrequencies) -> JudgeResult:
    """Relevance of an answer that does not decline."""
    asked = _asked(question, frequencies)
    if not asked.weights:
        return result(_UNDECIDED, "The question has no content words to compare.")
    cover = match_claim(asked, ContextIndex([answer])).context_cover
    lexical = _lexical(cover)
    read = read_words(answer)
    words = set(read.stems) - (FUNCTION_WORDS - _MONTH_STEMS)  # "In May."
    score, remark = lexical, ""
    if words <= set(asked.stems):
        score, remark = _ECHO * lexical, " and adds nothing to it"
    else:
        if len(words) <= _SHORT and lexical < _UNDECIDED:
            score, remark = _UNDECIDED, " and is too short to tell"
        if kind := next((kind for kind, asks in _KINDS.items() if asks.search(question)), ""):
            names, is_little_else = _names(answer, words)
            number = bool(read.numbers)
            date = number or not _MONTH_STEMS.isdisjoint(read.stems)
            has = {"number": number, "date": date, "name": names}.get(kind, number or names)
            if not has and kind != _THING:
                score, remark = _NOT_AS_ASKED * lexical, f" but no {kind}, as was asked"
            elif has and len(words) <= _SHORT_TYPED and (cover or is_little_else):
                score, remark = max(lexical, _AS_ASKED), f" and a {kind}, as was asked"
    return result(score, f"The answer has {cover:.0%} of the question's wording{remark}.")


def chunk_relevance(question: str, chunk: str, frequencies: WordFrequencies) -> JudgeResult:
    """Relevance of a chunk: `lexical`, from words close together."""
    asked = _asked(question, frequencies)
    if not asked.weights or not chunk.strip():
        return result(0.0, "There are no content words to compare.")
    match = match_claim(asked, ContextIndex([chunk]))
    cover = (match.window_cover + match.context_cover) / 2
    return result(_lexical(cover), f"The chunk has {cover:.0%} of the question's wording.")


def result(score: float, reason: str) -> JudgeResult:
    """A score that cost nothing."""
    return JudgeResult(score=round(score, 4), reasoning=reason, usage=JudgeUsage())


def _asked(question: str, frequencies: WordFrequencies) -> ClaimWords:
    words = read_claim(question, frequencies)
    weights = {word: weight for word, weight in words.weights.items() if word not in _ASKING}
    return replace(words, weights=weights)


def _lexical(cover: float) -> float:
    return 1.0 - (1.0 - min(cover, 1.0)) ** 2


def _names(text: str, words: set[str]) -> tuple[bool, bool]:
    """Look for a name in an answer, and check whether it has little but names and numbers.

    Such as "In 1889." and "Paris.". In a script without capitals any word may be a name.
    """
    if text.lower() == text.upper():
        return True, len(words) <= _SHORT
    sentences = [text[start:end] for start, end in split_sentences(text)]
    names = names_in(text)
    words = {word for word in words - _NOT_OTHERS if word[0] != "#"}
    others = words - names
    # "Goethe." is a name; "Bananas" in "Bananas are yellow." may owe its capital to its place.
    firsts = ("".join(sentence.split(maxsplit=1)[:1]) for sentence in sentences)
    openings = {word for first in firsts for word in stems_of(first)}
    return bool(names), not others or len(others | (openings & words)) <= _OTHERS


# By the user's own embeddings.

Embed = Callable[[list[str]], Sequence[Sequence[float]]]
"""Texts to vectors, one each, all of one length."""


async def embedded_relevance(embed: Embed, question: str, text: str) -> JudgeResult:
    """The cosine of both vectors, from -1 to 1, as `(1 + cosine) / 2`.

    Raises:
        JudgeAPIError: The embedding function failed.
        JudgeResponseError: It gave something else than two vectors of one length.
    """
    try:
        # In a thread: it may run a model or send a request, while other evaluations continue.
        vectors = await asyncio.to_thread(embed, [question, text])
    except Exception as error:  # noqa: BLE001 - whatever the function fails with
        # Its message, and so the chain of causes, may hold the texts.
        raise JudgeAPIError(f"the embedding function failed: {type(error).__name__}") from None
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
    # A zero vector is similar to nothing.
    lengths = math.hypot(*one) * math.hypot(*other) or math.inf
    cosine = max(-1.0, min(1.0, math.fsum(map(float.__mul__, one, other)) / lengths))
    return result((1.0 + cosine) / 2.0, f"The cosine of question and text is {cosine:.2f}.")
