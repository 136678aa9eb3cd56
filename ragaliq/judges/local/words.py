"""Text to words: lower case, light stems, numbers in one form, character pairs where no spaces are.

Both sides of a comparison go through here, so what matters is that the same word in another form
comes out the same, not that the outcome is a word.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple, cast

from ragaliq.judges.local.numbers import NUMBER_WORDS, Number, number_at
from ragaliq.judges.local.symbols import spell_symbols
from ragaliq.judges.local.units import SPELLINGS

__all__ = ["FUNCTION_WORDS", "Words", "is_pair", "read_words", "stem", "stems_of"]


class Words(NamedTuple):
    """The words of a text.

    Attributes:
        stems: Every word in order; a number stands as its first reading (`#1000`).
        numbers: The numbers among them.
    """

    stems: list[str]
    numbers: list[Number]


# Scripts written without spaces between words, and Korean, whose particles stick to the word.
_UNSPACED = (
    "\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1780-\u17d3\u3005\u3040-\u30ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
# Combining marks are no word characters to `re`, yet part of the word.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0970-\u0dff"
# Groups of three digits may be set apart by blanks: 1 200 000.
_DIGITS = r"[1-9]\d{0,2}(?: \d{3})+(?:,\d{1,2})?(?![\d.,:]?\d)|\d+(?:[.,:]\d+)*"
_TOKEN = re.compile(
    rf"[{_UNSPACED}]+|{_DIGITS}|[^\W\d_{_UNSPACED}](?:[^\W_{_UNSPACED}]|[{_MARKS}])*"
)
_ASCII_TOKEN = re.compile(rf"[a-z][a-z0-9]*|{_DIGITS}")
_UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")
_NOT_SAID = re.compile(
    r"https?://\S+|www\.\S+|\]\([^)\s]{0,500}\)|\[[\d\s,;^–-]{1,20}\]|【[^】]{1,20}】"
)
_DIGIT_GAP = re.compile(r"(?<=\d)[\u00a0\u2009\u202f'’](?=\d{3}(?!\d))")
_NEGATIVE = re.compile(r"n['’]t\b|(?<=\bcan)not\b")
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
    ]
    for form in forms.split()
}
_SHORTEST = 3  # letters a stem keeps at least
_OTHER_SCRIPT_STEM = 5  # letters kept of a word in Cyrillic, Greek, Arabic, ...


def read_words(text: str) -> Words:
    """Find the words and numbers of a text; links and citation markers are left out."""
    tokens = _tokens(text)
    words = list(map(_plain, tokens))
    if None not in words:
        return Words(cast("list[str]", words), [])
    stems: list[str] = []
    numbers: list[Number] = []
    at = 0
    while at < len(tokens):
        word = words[at]
        if word is not None:
            stems.append(word)
            at += 1
        elif _is_number(tokens[at]):
            found, at = number_at(tokens, at)
            numbers += found
            stems += [number.values[0] for number in found]
        else:
            stems += _pairs(tokens[at])
            at += 1
    return Words(stems, numbers)


@lru_cache(maxsize=16_384)
def stems_of(word: str) -> tuple[str, ...]:
    """The stems of one word as it is written: several where it has hyphens."""
    return tuple(read_words(word).stems)


def _tokens(text: str) -> list[str]:
    """Words, numbers and runs of unspaced characters, in lower case."""
    # Most text needs none of the rules: looking for their characters first is twice as fast.
    if "'" in text or not text.isascii():
        text = _DIGIT_GAP.sub("", text)
    if "[" in text or "]" in text or "http" in text or "www." in text or "【" in text:
        text = _NOT_SAID.sub(" ", text)
    text = spell_symbols(text)
    plain = text.isascii()
    normal = text.lower() if plain else unicodedata.normalize("NFKC", text).casefold()
    if "n'" in normal or "n’" in normal or "cannot" in normal:
        normal = _NEGATIVE.sub(" not", normal)
    return (_ASCII_TOKEN if plain else _TOKEN).findall(normal)


@lru_cache(maxsize=65_536)
def _plain(token: str) -> str | None:
    """The stem of a token; None where its neighbours matter, or where it has no spaces."""
    if _is_number(token) or not (token.isascii() or not is_pair(token)):
        return None
    return stem(token)


def _is_number(token: str) -> bool:
    return token in NUMBER_WORDS or token[0].isdigit()


def is_pair(word: str) -> bool:
    """Whether a stem is (or a token holds) characters of a script written without spaces."""
    return _UNSPACED_CHARACTER.match(word) is not None


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]


def stem(word: str) -> str:
    """Cut the endings off a lower-case word; function words stay as they are."""
    if word in FUNCTION_WORDS:
        return word
    if not word.isascii() and word not in SPELLINGS:
        word = _ACCENTS.sub("", unicodedata.normalize("NFD", word))
        if not word.isascii():
            return unicodedata.normalize("NFC", word)[:_OTHER_SCRIPT_STEM]
    word = SPELLINGS.get(word) or _IRREGULAR.get(word, word)
    return _without_e(_without_suffix(_without_plural(word)))


def _without_plural(word: str) -> str:
    if len(word) <= _SHORTEST or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ses", "xes", "zes", "ches", "shes")):
        return word[:-2]
    return word[:-1]


def _without_suffix(word: str) -> str:
    for suffix in ("ing", "ed", "ly"):
        base = word[: -len(suffix)]
        if word.endswith(suffix) and len(base) >= _SHORTEST and re.search("[aeiouy]", base):
            doubled = suffix != "ly" and base[-1] == base[-2] and base[-1] not in "lsz"
            return base[:-1] if doubled else base
    return word


def _without_e(word: str) -> str:
    if len(word) > _SHORTEST and word.endswith("e"):
        return word[:-1]
    return word[:-1] + "i" if len(word) > _SHORTEST and word.endswith("y") else word
