"""Text to tokens: words, numbers and runs of unspaced characters, in lower case."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Sequence

from ragaliq.judges.local.symbols import join_half_of_day, spell_symbols

__all__ = ["END", "is_pair", "tokens_of", "tokens_of_all"]

END = "\0"
"""Stands as a token between two texts that are read in one go."""

_APART = f"\n{END}\n"  # nothing that is looked for reaches over it
_NO_END = "\1"  # in its place, where a text has the character itself

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
    rf"[{_UNSPACED}]+|{_DIGITS}|[^\W\d_{_UNSPACED}](?:[^\W_{_UNSPACED}]|[{_MARKS}])*|{END}"
)
# The same for text that has none of these scripts and marks: three times as fast, and for ASCII
# twice as fast again.
_LATIN_TOKEN = re.compile(rf"[^\W\d_][^\W_]*|{_DIGITS}|{END}")
_ASCII_TOKEN = re.compile(rf"[a-z][a-z0-9]*|{_DIGITS}|{END}")
# In ASCII text, tokens are what stands between other characters, but for these numbers. A search
# for one set of characters is fast, so the digit comes first.
_HALF_OF_DAY = r"(\s?[ap]\.?\s?m)"
_LONG_NUMBER = re.compile(
    r"[0-9](?<![0-9][0-9])"
    rf"(?:[0-9]*+{_HALF_OF_DAY}|(?<![a-z][0-9])"
    r"(?:(?:(?<!0)[0-9]{0,2}(?: [0-9]{3})+(?:,[0-9]{1,2})?(?![0-9.,:]?[0-9])"
    rf"|[0-9]*(?:[.,:][0-9]+)+){_HALF_OF_DAY}?|[0-9]*(?=[a-z])))"
)
_KEPT = f"{string.ascii_lowercase}{string.digits}{END}".encode()
_SEPARATED = bytes(code if code in _KEPT else ord(" ") for code in range(256))
# What most often keeps a text from being ASCII, and a sign that is read the same.
_READ_AS = (
    ("\u2019", "'"),
    ("\u2018", '"'),
    ("\u201c", '"'),
    ("\u201d", '"'),
    ("\u2013", "-"),
    ("\u2014", "-"),
    ("\u2022", "-"),
    ("\u2026", "..."),
    ("\u00a0", " "),
)
_NOT_LATIN = re.compile("[^\0-\u02ff\u2010-\u2027]")
_UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")
_NOT_SAID = re.compile(
    r"https?://\S+|www\.\S+|\]\([^)\s]{0,500}\)|\[[\d\s,;^–-]{1,20}\]|【[^】\0]{1,20}】"
)
# The gap is asked first, as it is rare: looking for the digit before takes ten times as long.
_DIGIT_GAP = re.compile(r"[\u00a0\u2009\u202f'’](?<=\d.)(?=\d{3}(?!\d))")
_ASCII_DIGIT_GAP = re.compile(r"'(?<=\d')(?=\d{3}(?!\d))")
_NOT = re.compile(r"n't\b")
_CANNOT = re.compile(r"cannot(?<=\bcannot)\b")


def tokens_of_all(texts: Sequence[str]) -> list[str]:
    """The tokens of several texts, with `END` after each: much faster than one by one."""
    whole = _APART.join((*texts, ""))
    if whole.count(END) > len(texts):
        whole = _APART.join((*(text.replace(END, _NO_END) for text in texts), ""))
    return _tokens(whole)


def tokens_of(text: str) -> list[str]:
    """The tokens of a text; links and citation markers are left out."""
    if text.isascii() and text.isalpha():  # one word, as most texts of one word are
        word = text.lower()
        return [word] if word != "cannot" else ["can", "not"]
    return _tokens(text.replace(END, _NO_END))


def is_pair(word: str) -> bool:
    """Whether a stem is (or a token holds) characters of a script written without spaces."""
    return _UNSPACED_CHARACTER.match(word) is not None


def _tokens(text: str) -> list[str]:
    # Most text needs none of the rules: looking for their characters first is twice as fast.
    if not text.isascii():
        text = _DIGIT_GAP.sub("", text)
    elif "'" in text:
        text = _ASCII_DIGIT_GAP.sub("", text)
    if "[" in text or "]" in text or "http" in text or "www." in text or "【" in text:
        text = _NOT_SAID.sub(" ", text)
    text = spell_symbols(text)
    if not text.isascii():
        for sign, ascii_sign in _READ_AS:
            text = text.replace(sign, ascii_sign)
    if text.isascii():
        return _ascii_tokens(text)
    tokens: list[str] = []
    for part in text.split(END):
        tokens += _ascii_tokens(part) if part.isascii() else _other_tokens(part)
        tokens.append(END)
    return tokens[:-1]


def _ascii_tokens(text: str) -> list[str]:
    lower = text.lower()
    normal = _with_not_apart(lower)
    # To split takes a fifth of the time that an expression for all tokens would.
    words = normal.encode().translate(_SEPARATED).decode()
    tokens: list[str] = []
    at = 0
    for number in _LONG_NUMBER.finditer(normal):
        if number.lastindex is not None:  # "3 p.m."
            return _ASCII_TOKEN.findall(_with_not_apart(join_half_of_day(lower)))
        start, end = number.span()
        tokens += words[at:start].split()
        tokens.append(normal[start:end])
        at = end
    tokens += words[at:].split()
    return tokens


def _other_tokens(text: str) -> list[str]:
    normal = unicodedata.normalize("NFKC", join_half_of_day(text)).casefold()
    normal = _with_not_apart(normal)
    return (_TOKEN if _NOT_LATIN.search(normal) else _LATIN_TOKEN).findall(normal)


def _with_not_apart(text: str) -> str:
    if "cannot" in text:
        text = _CANNOT.sub("can not", text)
    return _NOT.sub(" not", text) if "n't" in text else text
