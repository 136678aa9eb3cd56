"""Tell an answer that declines from one that answers.

Lexical and small on purpose: the patterns of `phrases` decide sentence by sentence, and an answer
is a refusal only when nothing else in it could be one.
"""

from __future__ import annotations

import re

from ragaliq.judges.language.courtesies import ACCOMPANIMENTS, CONTRASTS, SMALL_TALK
from ragaliq.judges.language.phrases import REFUSALS
from ragaliq.judges.language.sentences import split_sentences

__all__ = ["declines", "is_question", "is_refusal", "is_small_talk"]

_LONGEST = 600  # characters; no sentence that only declines is longer
_MOST_SENTENCES = 40  # no refusal goes on for longer
_SHORT = 3  # characters up to which text without spaces counts as a single word
_DIGIT = re.compile(r"\d")
_ASKS = re.compile(r"[?？؟;՞]\s*[\"'”’»)\]*_」』]*\s*$")
_GREEK = re.compile("[\u0370-\u03ff]")
_MARKUP = re.compile(r"[*_`#>\"“”«»]+|\[\d{1,3}\]")
_WRITTEN_OUT = (
    (re.compile("[’`´]"), "'"),
    (re.compile(r"\bcan'?not\b|\bcan't\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"\bi'm\b"), "i am"),
    (re.compile(r"'re\b"), " are"),
    (re.compile(r"'ve\b"), " have"),
    (re.compile(r"'ll\b"), " will"),
    (re.compile(r"\bi'd\b"), "i would"),
    (re.compile(r"\b(it|that|there|here)'s\b"), r"\1 is"),
    (re.compile(r"\s+"), " "),
)


def is_refusal(text: str) -> bool:
    """Whether an answer declines to answer, as a whole.

    True for "I don't know.", "Sorry, the context does not say when.", also with advice or an offer
    of help around it. False as soon as a sentence, or what follows a "but", answers all the same.

    Args:
        text: The answer; English, German, French, Spanish, Italian, Portuguese, Dutch, Polish,
            Turkish, Russian, Chinese, Japanese, Korean, Arabic and Hindi are covered.
    """
    # Longer answers are no refusals: looking at the beginning is enough to tell.
    spans = split_sentences(text[: _LONGEST * _MOST_SENTENCES])
    sentences = [text[start:end] for start, end in spans]
    if len(sentences) > _MOST_SENTENCES or not any(map(declines, sentences)):
        return False
    return all(map(_goes_with_refusal, sentences))


def declines(sentence: str) -> bool:
    """Whether one sentence declines to answer and says nothing else."""
    said = plain(sentence)
    if len(sentence) > _LONGEST or not _refuses(said):
        return False
    parts = [part.strip(" ,.;:，、。") for part in CONTRASTS.split(said)]
    return all(_refuses(part) or _adds_nothing(part) for part in parts)


def is_small_talk(sentence: str) -> bool:
    """Whether a sentence greets, thanks, apologises or offers help; one with a digit never does."""
    said = plain(sentence)
    return not _DIGIT.search(said) and SMALL_TALK.search(said) is not None


def is_question(sentence: str) -> bool:
    """Whether a sentence asks."""
    match = _ASKS.search(sentence[-20:])
    if match is None:
        return False
    return match.group()[0] != ";" or _GREEK.search(sentence) is not None


def plain(sentence: str) -> str:
    """A sentence as `phrases` expects it."""
    said = _MARKUP.sub(" ", sentence[:_LONGEST]).lower()
    for pattern, replacement in _WRITTEN_OUT:
        said = pattern.sub(replacement, said)
    return said.strip()


def _goes_with_refusal(sentence: str) -> bool:
    return declines(sentence) or is_question(sentence) or _is_courtesy(plain(sentence))


def _refuses(said: str) -> bool:
    return any(pattern.search(said) for pattern in REFUSALS)


def _adds_nothing(said: str) -> bool:
    single_word = len(said.split()) <= 1 and (said.isascii() or len(said) <= _SHORT)
    return single_word or _is_courtesy(said)


def _is_courtesy(said: str) -> bool:
    """Whether a greeting, an offer or advice is all there is."""
    return SMALL_TALK.search(said) is not None or ACCOMPANIMENTS.search(said) is not None
