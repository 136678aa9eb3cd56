"""Text to words: lower case, light stems, numbers in one form, character pairs where no spaces are.

Both sides of a comparison go through here, so what matters is that the same word in another form
comes out the same, not that the outcome is a word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, cast

from ragaliq.judges.local.known import KnownWords
from ragaliq.judges.local.numbers import NUMBER_WORDS, Number, number_at
from ragaliq.judges.local.tokens import END, is_pair, tokens_of, tokens_of_all
from ragaliq.judges.local.units import SPELLINGS

__all__ = [
    "DENIALS_OF_A_CLAUSE",
    "DENIALS_OF_A_WORD",
    "END",
    "FUNCTION_WORDS",
    "Words",
    "is_pair",
    "read_all",
    "read_words",
    "stem",
    "stems_of",
]


class Words(NamedTuple):
    """The words of a text.

    Attributes:
        stems: Every word in order; a number stands as its first reading (`#1000`).
        numbers: The numbers among them.
        places: Where each number stands in `stems`.
    """

    stems: list[str]
    numbers: list[Number]
    places: list[int]


_ACCENTS = re.compile("[\u0300-\u036f]")

FUNCTION_WORDS = frozenset(
    # English
    "a an the of to in on at by for from with about as into over after before between through "
    "during and or but if so than then that this these those there here it its he him his she her "
    "they them their we us our you your i me my mine is are was were be been being am do does did "
    "doing has have had having will would shall should can could may might must not no nor s t d "
    "ll re ve m which who whom whose what where when why how also such some any each other own "
    "same too very just only both more most up down out off again further once all because while "
    "until against under above well however although though yes ok okay sure certainly indeed "
    "additionally furthermore moreover finally therefore thus hence overall "
    # German, French, Spanish, Italian, Portuguese, Dutch
    "der die das den dem des ein eine einen einem einer und oder aber ist sind war waren wird "
    "werden hat haben von zu im am mit auf für bei aus nach nicht als auch es er sie wir ihr sich "
    "dass wie zum zur le la les l un une du de des d et ou est sont était à au aux dans en pour "
    "par sur avec que qui ce cette ces il elle ils elles on ne pas se sa son ses leur el los las "
    "una unos unas y o es son fue era del al por con para su sus lo como pero gli i uno di dal "
    "della del dei delle e è sono che per non si al alla nel nella os um uma é são foi do da dos "
    "das no na nos nas em ao à não mais het een van op te voor met aan zijn wordt werd bij dat "
    "niet ook".split()
)

DENIALS_OF_A_WORD = frozenset(
    "no non without neither nor none nobody nothing kein keine keinen keiner keinem keines ohne "
    "sans sin senza sem zonder geen aucun aucune ningun ninguna nessun nessuno nessuna nenhum "
    "nenhuma без".split()
)
"""Words that deny what follows, as stems: "no pool", "ohne Garten", "nobody came"."""

DENIALS_OF_A_CLAUSE = frozenset(
    "not never nobody nothing nicht nie niemals pas jamais nunca nem niet não nikt nie inte "
    "ikke не нет никог ni لا ليس لم नहीं ない せん".split()
)
"""Words that deny the clause they stand in, as stems."""

_DENIALS = DENIALS_OF_A_WORD | DENIALS_OF_A_CLAUSE

_IRREGULAR = {
    form: forms.split()[0]
    for forms in [
        "begin began begun",
        "write wrote written",
        "win won",
        "lead led",
        "hold held",
        "become became",
        "make made",
        "give gave given",
        "take took taken",
        "go went gone",
        "come came",
        "know knew known",
        "grow grew grown",
        "rise rose risen",
        "fall fell fallen",
        "speak spoke spoken",
        "sing sang sung",
        "run ran",
        "build built",
        "buy bought",
        "sell sold",
        "send sent",
        "leave left",
        "meet met",
        "pay paid",
        "say said",
        "see saw seen",
        "show shown",
        "find found",
        "think thought",
        "tell told",
        "teach taught",
        "bring brought",
        "keep kept",
        "lose lost",
        "get got gotten",
        "feel felt",
        "stand stood",
        "spend spent",
        "break broke broken",
        "choose chose chosen",
        "draw drew drawn",
        "drive drove driven",
        "eat ate eaten",
        "fly flew flown",
        "bear born borne",
        "die died dying",
        "man men",
        "woman women",
        "child children",
        "person people",
        "wife wives",
        "life lives",
        "half halves",
        "foot feet",
        "tooth teeth",
        "mouse mice",
        "use used using",
        "note notes noted noting",
    ]
    for form in forms.split()
}
_KNOWN_FORMS = _IRREGULAR | SPELLINGS
_SUFFIXES = ("ing", "ed", "ly")
_VOWELS = frozenset("aeiouy")
_SHORTEST = 3  # letters a stem keeps at least
_OTHER_SCRIPT_STEM = 5  # letters kept of a word in Cyrillic, Greek, Arabic, ...


def read_words(text: str) -> Words:
    """Find the words and numbers of a text; links and citation markers are left out."""
    return _words(tokens_of(text))


def read_all(texts: Sequence[str]) -> Words:
    """The words of several texts in one list, with `END` after each."""
    return _words(tokens_of_all(texts))


def _words(tokens: list[str]) -> Words:
    words = list(map(_STEMS.__getitem__, tokens))
    if all(words):  # a stem is never empty
        return Words(cast("list[str]", words), [], [])
    stems: list[str] = []
    numbers: list[Number] = []
    places: list[int] = []
    at = 0
    for place in [place for place, word in enumerate(words) if word is None]:
        if place < at:  # part of the number before
            continue
        stems += cast("list[str]", words[at:place])
        token = tokens[place]
        if token.isascii() or _is_number(token):
            found, at = number_at(tokens, place)
            for number in found:
                numbers.append(number)
                places.append(len(stems))
                stems.append(number.values[0])
        else:
            stems += _pairs(token)
            at = place + 1
    stems += cast("list[str]", words[at:])
    return Words(stems, numbers, places)


@lru_cache(maxsize=16_384)
def stems_of(word: str) -> tuple[str, ...]:
    """The stems of one word as it is written: several where it has hyphens."""
    return tuple(read_words(word).stems)


def _stem_alone(token: str) -> str | None:
    """The stem of a token; None where its neighbours matter, or where it has no spaces."""
    if _is_number(token) or not (token.isascii() or not is_pair(token)):
        return None
    return stem(token)


def _is_number(token: str) -> bool:
    return token in NUMBER_WORDS or token[0].isdigit()


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]


def stem(word: str) -> str:
    """Cut the endings off a lower-case word; function words and denials stay as they are."""
    if word in FUNCTION_WORDS or word in _DENIALS:
        return word
    if not word.isascii() and word not in SPELLINGS:
        word = _ACCENTS.sub("", unicodedata.normalize("NFD", word))
        if not word.isascii():
            return unicodedata.normalize("NFC", word)[:_OTHER_SCRIPT_STEM]
    word = _KNOWN_FORMS.get(word, word)
    found = _without_e(_without_suffix(_without_plural(word)))
    return word if found in _DENIALS else found  # "note" is another word than "not"


def _without_plural(word: str) -> str:
    if len(word) <= _SHORTEST or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ses", "xes", "zes", "ches", "shes")):
        return word[:-2]
    return word[:-1]


def _without_suffix(word: str) -> str:
    if not word.endswith(_SUFFIXES):
        return word
    for suffix in _SUFFIXES:
        base = word[: -len(suffix)]
        if word.endswith(suffix) and len(base) >= _SHORTEST and not _VOWELS.isdisjoint(base):
            doubled = suffix != "ly" and base[-1] == base[-2] and base[-1] not in "lsz"
            return base[:-1] if doubled else base
    return word


def _without_e(word: str) -> str:
    if len(word) > _SHORTEST and word.endswith("e"):
        return word[:-1]
    return word[:-1] + "i" if len(word) > _SHORTEST and word.endswith("y") else word


_STEMS = KnownWords(_stem_alone)
