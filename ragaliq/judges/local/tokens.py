"""Text to tokens: words, numbers and runs of unspaced characters, in lower case.

A text is read word by word, from one white space to the next, since nearly all words were read
before. Where neighbours decide how a word reads, the text is read as a whole.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import chain

from ragaliq.judges.local.known import KnownWords
from ragaliq.judges.local.symbols import CURRENCIES, spell_symbols

__all__ = ["is_pair", "tokens_alone", "tokens_of"]

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

# Read as a whole: citations and amounts go on in the next word, "p.m." belongs to a number before.
_NEEDS_NEIGHBOURS = re.compile(rf"[\[【{''.join(CURRENCIES)}]|^(?:[ap]\.?)?m\b", re.IGNORECASE)
_NUMBERS_APART = re.compile(r"\d\s+\d")  # 1 200 may be one number


def tokens_of(text: str) -> list[str]:
    """Words, numbers and runs of unspaced characters, in lower case.

    Links and citation markers are left out.
    """
    words = list(map(_TOKENS.__getitem__, text.split()))
    if None in words or _NUMBERS_APART.search(text):
        return _tokens(text)
    return list(chain.from_iterable(words))


def tokens_alone(word: str) -> tuple[str, ...] | None:
    """The tokens of text without white space; None where its neighbours matter."""
    if _NEEDS_NEIGHBOURS.search(word):
        return None
    tokens = tuple(_tokens(word))
    hidden = any(token[0].isdigit() for token in tokens) and not (
        word.isascii() or unicodedata.is_normalized("NFKC", word)
    )
    return None if hidden else tokens  # a digit that shows only here, such as in "½", may join


def is_pair(word: str) -> bool:
    """Whether a stem is (or a token holds) characters of a script written without spaces."""
    return _UNSPACED_CHARACTER.match(word) is not None


def _tokens(text: str) -> list[str]:
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


_TOKENS = KnownWords(tokens_alone)
