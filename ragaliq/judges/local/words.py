"""Tokens of a text: lower case, light stems, normalised numbers, pairs of unspaced characters.

Both sides of a comparison use these tokens: forms of one word must give the same token, which need
not be a word.
"""

from __future__ import annotations

import itertools
import re
import string
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import Stemmer

from ragaliq.judges.language.characters import readable
from ragaliq.judges.language.sentences import WIDE_MARK
from ragaliq.judges.local.numbers import (
    END,
    NUMBER_WORDS,
    SPELLINGS,
    UNITS,
    Number,
    bound_before,
    number_at,
)

# Tokens: words, numbers and runs of characters without spaces, in lower case.

_NO_END = "\1"  # in its place, where a text has the character itself

# Scripts written without spaces between words, and Korean, whose particles are attached.
_UNSPACED = (
    "\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1780-\u17d3\u3005\u3040-\u30ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
# Combining marks are not word characters to `re`, yet part of the word.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0970-\u0dff"
# Groups of three digits may be set apart by blanks: 1 200 000.
_DIGITS = r"[1-9]\d{0,2}(?: \d{3})+(?:,\d{1,2})?(?![\d.,:]?\d)|\d+(?:[.,:]\d+)*"
_TOKEN = re.compile(
    rf"[{_UNSPACED}]+|{_DIGITS}|[^\W\d_{_UNSPACED}](?:[^\W_{_UNSPACED}]|[{_MARKS}])*|{END}"
)
# The same for text that has none of these scripts and marks: three times as fast.
_LATIN_TOKEN = re.compile(rf"[^\W\d_][^\W_]*|{_DIGITS}|{END}")
# In ASCII text, tokens are what stands between other characters, but for these numbers. A search
# for one set of characters is fast, so the digit comes first.
_LONG_NUMBER = re.compile(
    r"[0-9](?<![0-9][0-9])(?<![a-z][0-9])"
    r"(?:(?<!0)[0-9]{0,2}(?: [0-9]{3})+(?:,[0-9]{1,2})?(?![0-9.,:]?[0-9])"
    r"|[0-9]*(?:[.,:][0-9]+)+|[0-9]*(?=[a-z]))"
)
_KEPT = f"{string.ascii_lowercase}{string.digits}{END}".encode()
_SEPARATED = bytes(code if code in _KEPT else ord(" ") for code in range(256))
# The most common non-ASCII characters, with an equivalent ASCII sign.
_READ_AS = dict(
    zip(
        "\u2019\u2018\u201c\u201d\u2013\u2014\u2022\u00a0\u2026",
        ("'", '"', '"', '"', "-", "-", "-", " ", "..."),
        strict=True,
    )
)
_NOT_LATIN = re.compile("[^\0-\u02ff\u2010-\u2027]")
_UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")
_NOT_SAID = re.compile(
    rf"https?://\S+|www\.\S+|\]\([^)\s]{{0,500}}\)|\[[\d\s,;^–-]{{1,20}}\]|{WIDE_MARK}"
)
_TAG = re.compile(r"</?[a-zA-Z][a-zA-Z0-9]{0,12}\s?/?>")
# The sign comes first: a search for one of a few characters is fast.
_MINUS = re.compile(r"[-\u2212\u2013](?<![^\s(\[:][-\u2212\u2013])(?=\d)")
# The gap comes first, as it is rare: searching for the digit first takes ten times as long.
_DIGIT_GAP = re.compile(r"[\u00a0\u2009\u202f'’](?<=\d.)(?=\d{3}(?!\d))")
_COMMA_GAP = re.compile(r", (?<=\d, )(?=0\d\d(?!\d))")  # "1, 056", as some converters write
_NOT = re.compile(r"n't\b|(?<=\bcan)not\b")
# Signs such as %, € and p.m. as words, so that they compare with the words.
_CURRENCIES = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen", "₹": "rupee"}
_AMOUNT = re.compile(
    r"([$€£¥₹])\s?(\d[\d.,]*)(?:\s?(k|mn?|bn?|thousand|million|billion|trillion)\b)?",
    re.IGNORECASE,
)
_LETTERS = {"m": "million", "b": "billion"}  # of money; "330 m" are metres
_SIGNS = {
    "percentage point": "point",
    "%": "percent",
    "°C": "celsius",
    "°F": "fahrenheit",
} | _CURRENCIES
_ASCII_SIGNS = [(sign, word) for sign, word in _SIGNS.items() if sign.isascii()]


def tokens_of(text: str) -> list[str]:
    """Tokens of a text, without links and citation markers."""
    text = _rewritten(text)
    if text.isascii():
        return _ascii_tokens(text)
    for sign, ascii_sign in _READ_AS.items():
        text = text.replace(sign, ascii_sign)
    tokens: list[str] = []
    for part in text.split(END):
        if part.isascii():
            tokens += _ascii_tokens(part)
        else:
            normal = unicodedata.normalize("NFKC", part).casefold()
            pattern = _TOKEN if _NOT_LATIN.search(normal) else _LATIN_TOKEN
            tokens += pattern.findall(_NOT.sub(" not", normal))
        tokens.append(END)
    return tokens[:-1]


def _rewritten(text: str) -> str:
    """A text without links, markers, tags and hidden characters, with signs as words."""
    # Most text needs none of the rules: looking for their characters first is twice as fast.
    is_ascii = text.isascii()
    if not is_ascii:
        text = readable(text)
    if "<" in text:
        text = _TAG.sub(" ", text)
    if " -" in text or "(-" in text or text[:1] == "-" or "\u2212" in text or " \u2013" in text:
        text = _MINUS.sub(" minus ", text)
    if "'" in text or not is_ascii:
        text = _DIGIT_GAP.sub("", text)
    if "[" in text or "]" in text or "http" in text or "www." in text or "【" in text:
        text = _NOT_SAID.sub(" ", text)
    if ", 0" in text:
        text = _COMMA_GAP.sub(",", text)
    if "$" in text or not is_ascii:
        text = _AMOUNT.sub(_amount, text)
    for sign, word in _ASCII_SIGNS if is_ascii else _SIGNS.items():
        if sign in text:
            text = text.replace(sign, f" {word} ")
    return text


def _amount(match: re.Match[str]) -> str:
    sign, digits, scale = match.groups(default="")
    return f" {digits} {_LETTERS.get(scale.lower(), scale)} {_CURRENCIES[sign]} "


def _ascii_tokens(text: str) -> list[str]:
    """Tokens of an ASCII text, as `_TOKEN` would find them, in a fifth of its time."""
    normal = text.lower()
    if "n't" in normal or "cannot" in normal:
        normal = _NOT.sub(" not", normal)
    words = normal.encode().translate(_SEPARATED).decode()
    tokens: list[str] = []
    at = 0
    for number in _LONG_NUMBER.finditer(normal):
        start, end = number.span()
        tokens += words[at:start].split()
        tokens.append(normal[start:end])
        at = end
    return tokens + words[at:].split()


# Stems.


class Words(NamedTuple):
    """The words of a text.

    Attributes:
        stems: Every word in order; numbers in their canonical form (`#1000`).
        numbers: The numbers among them.
    """

    stems: list[str]
    numbers: list[Number]


_COUNTED = 2  # words after a number that tell what it counts: "nine working days"
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
    "niet ook n l qu".split()
)

NEGATIONS = frozenset(
    "no non not never without neither nor none nobody nothing kein keine keinen keiner keinem "
    "keines ohne nicht nie niemals sans pas jamais sin nunca ningun ninguna sem nessun nessuno "
    "nessuna senza nenhum nenhuma aucun aucune nem não geen niet zonder nie inte ikke не нет "
    "никогда без ni لا ليس لم नहीं ない せん".split()
)
"""Words that deny, in any of the languages, as stems."""

NO_CONTENT = FUNCTION_WORDS | NEGATIONS

_IRREGULAR = {
    form: forms.split()[0]
    for forms in (
        "begin began begun, write wrote written, win won, lead led, hold held, become became, "
        "make made, give gave given, take took taken, go went gone, come came, know knew known, "
        "grow grew grown, rise rose risen, fall fell fallen, speak spoke spoken, sing sang "
        "sung, run ran, build built, buy bought, sell sold, send sent, leave left, meet met, "
        "pay paid, say said, see saw seen, show shown, find found, think thought, tell told, "
        "teach taught, bring brought, keep kept, lose lost, get got gotten, feel felt, stand "
        "stood, spend spent, break broke broken, choose chose chosen, draw drew drawn, drive "
        "drove driven, eat ate eaten, fly flew flown, bear born borne, die died dying, man men, "
        "woman women, child children, person people, wife wives, life lives, half halves, foot "
        "feet, tooth teeth, mouse mice, use used using, note notes noted noting"
    ).split(", ")
    for form in forms.split()
}
_KNOWN_FORMS = _IRREGULAR | SPELLINGS
# By the script of a word; Latin ones have lost their accents before.
_STEMMERS = {
    script: Stemmer.Stemmer(language, 0)
    for script, language in (
        ("LATIN", "english"),
        ("CYRILLIC", "russian"),
        ("GREEK", "greek"),
        ("ARABIC", "arabic"),
        ("DEVANAGARI", "hindi"),
        ("ARMENIAN", "armenian"),
        ("TAMIL", "tamil"),
    )
}
_OTHER_SCRIPT_STEM = 5  # letters kept of a word in any other script


def read_words(text: str, *, is_joined: bool = False) -> Words:
    """Find the words and numbers of a text; links and citation markers are skipped.

    Args:
        text: Any text.
        is_joined: Whether it is several texts in one, as `join` makes it; then no numbers are
            returned.
    """
    tokens = tokens_of(text if is_joined else text.replace(END, _NO_END))
    words = list(map(_STEMS.__getitem__, tokens))
    if all(words):
        return Words(words, [])
    stems: list[str] = []
    numbers: list[Number] = []
    at = 0
    for place in [place for place, word in enumerate(words) if not word]:
        if place < at:  # part of the number before
            continue
        stems += words[at:place]
        token = tokens[place]
        if token[0].isdigit() or token in NUMBER_WORDS:
            found, at = number_at(tokens, place)
            stems += [number.stem for number in found]
            if not is_joined:
                follow = itertools.takewhile(bool, words[at : at + _COUNTED])
                of = tuple(word for word in follow if word not in FUNCTION_WORDS)
                first = len(numbers)
                numbers += found
                numbers[first] = numbers[first]._replace(bound=bound_before(tokens, place))
                numbers[-1] = numbers[-1]._replace(of=of)
        else:  # pairs of characters
            stems += [token[i : i + 2] for i in range(len(token) - 1)] or [token]
            at = place + 1
    stems += words[at:]
    return Words(stems, numbers)


def join(texts: Iterable[str]) -> str:
    """Join texts with `END` after each: reading them at once is faster."""
    return "".join(f"{text.replace(END, _NO_END)}\n{END}\n" for text in texts)


@lru_cache(maxsize=16_384)
def stems_of(word: str) -> tuple[str, ...]:
    """Stems of one written word; several if it has hyphens."""
    if word.isascii() and word.isalpha() and (found := _STEMS.get(word.lower())):
        return (found,)
    return tuple(read_words(word).stems)


def is_pair(word: str) -> bool:
    """True for a stem or token in a script written without spaces."""
    return not word.isascii() and _UNSPACED_CHARACTER.match(word) is not None


def stem(word: str) -> str:
    """Cut the endings off a lower-case word; keep function words and negations."""
    if word in FUNCTION_WORDS or word in NEGATIONS:
        return word
    if not word.isascii() and word not in SPELLINGS:
        plain = _ACCENTS.sub("", unicodedata.normalize("NFD", word))
        if not plain.isascii():
            script = unicodedata.name(word[0], "").partition(" ")[0]
            stemmer = _STEMMERS.get(script)
            return stemmer.stemWord(word) if stemmer else word[:_OTHER_SCRIPT_STEM]
        word = plain
    word = _KNOWN_FORMS.get(word, word)
    found = _STEMMERS["LATIN"].stemWord(word)
    return word if found in NEGATIONS else found  # "note" is another word than "not"


UNIT_KINDS = {stem(unit): kinds for unit, kinds in UNITS.items()}
"""Stem of a unit -> what it measures."""

_REACH = 3  # words after a number in which its unit stands: "five full business days"


def unit_kinds(stems: Sequence[str], at: int) -> set[str]:
    """Kinds of unit of the number at a position; empty without a unit."""
    for word in stems[at + 1 : at + 1 + _REACH]:
        if not is_content(word):  # "30 pages a minute" are no minutes
            break
        if word in UNIT_KINDS:
            return UNIT_KINDS[word]
    return set()


def counted(stems: Sequence[str], at: int, *, reach: int = _REACH) -> list[str]:
    """The thing that the number at a position counts: the content words right after it.

    The day of a date and an ordinal count nothing.
    """
    found: list[str] = []
    for word in stems[at + 1 : at + 1 + reach]:
        if word in _INITIALS:  # "U.S."
            continue
        if not is_content(word):
            break
        found.append(word)
    return [] if found and found[0] in _DATE_WORDS else found


_INITIALS = frozenset(string.ascii_lowercase) - frozenset("aeoy")  # those are small words

_DATE_WORDS = frozenset(
    map(
        stem,
        "st nd rd th january february march april may june july august september october november "
        "december januar februar märz mai juni juli oktober dezember janvier février mars avril "
        "juin juillet août septembre octobre novembre décembre enero febrero marzo abril mayo "
        "junio julio agosto septiembre octubre noviembre diciembre".split(),
    )
)


def is_content(stem: str) -> bool:
    """True if a stem is a content word: no number, no function word, no negation."""
    return stem[0] != "#" and stem not in NO_CONTENT


class _KnownStems(dict[str, str]):
    """Cache from token to stem; empty for a number and for text without spaces.

    Use `map(known.__getitem__, tokens)`, the fastest way to look up many: every word of every chunk
    passes here. A full cache is emptied.
    """

    most = 32_768  # words; about 8 MB
    longest = 40  # characters; longer ones hardly come again

    def __missing__(self, token: str) -> str:
        is_alone = not (token[0].isdigit() or token in NUMBER_WORDS or is_pair(token))
        value = stem(token) if is_alone else ""
        if len(token) <= self.longest:
            if len(self) >= self.most:
                self.clear()
            self[token] = value
        return value


_STEMS = _KnownStems()
