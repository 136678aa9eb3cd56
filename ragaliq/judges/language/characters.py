"""Normalised characters: no format characters, and look-alikes in the word's script."""

from __future__ import annotations

import re

# Invisible: soft hyphens, zero-width characters, marks of direction, fillers, variation selectors,
# tag characters.
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e01ef"
)
_OTHER = "\u0370-\u03ff\u0400-\u052f\u0561-\u0587\u2c80-\u2cff"  # Greek to Coptic
_SIGNS = str.maketrans("\u02bc\u2011\u207b\ufe63\uff0d\ufe6a\uff05", "'----%%")
_FORMAT = re.compile(f"[{_INVISIBLE}]")
_SUSPECT = re.compile(f"[{_INVISIBLE}{_OTHER}{''.join(map(chr, _SIGNS))}]")
# Letters of other scripts that look like Latin ones, and those.
_LOOK_ALIKES = str.maketrans(
    "аеорсухіјѕһԁԛԝьѵАВЕКМНОРСТХУІЈЅαορνικυχγΑΒΕΖΗΙΚΜΝΟΡΤΥΧոօսհցⲟⲣⲥ",
    "aeopcyxijshdqwbvABEKMHOPCTXYIJSaopvikuxyABEZHIKMNOPTYXnouhgopc",
)
_LATIN = re.compile("[a-zA-Z]")
_LETTERS = re.compile(r"[^\W\d_]+")


def readable(text: str) -> str:
    """Remove format characters; in words that mix scripts, replace look-alikes by Latin letters."""
    if text.isascii() or not _SUSPECT.search(text):
        return text
    return _LETTERS.sub(_latin, _FORMAT.sub("", text).translate(_SIGNS))


def _latin(word: re.Match[str]) -> str:
    return word[0].translate(_LOOK_ALIKES) if _LATIN.search(word[0]) else word[0]
