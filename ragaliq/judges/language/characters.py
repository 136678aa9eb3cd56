"""Normalised characters: no format characters, and look-alikes in the word's script."""

from __future__ import annotations

import re

# Invisible: soft hyphens, zero-width characters, marks of direction, tag characters.
_INVISIBLE = (
    "\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\U000e0000-\U000e007f"
)
_OTHER = "\u0370-\u03ff\u0400-\u052f"  # Greek and Cyrillic
_FORMAT = re.compile(f"[{_INVISIBLE}]")
_SUSPECT = re.compile(f"[{_INVISIBLE}{_OTHER}]")
# Letters of other scripts that look like Latin ones, and those.
_LOOK_ALIKES = str.maketrans(
    "аеорсухіјѕһԁԛԝьѵАВЕКМНОРСТХУІЈЅαορνικυχγΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijshdqwbvABEKMHOPCTXYIJSaopvikuxyABEZHIKMNOPTYX",
)
_LATIN = re.compile("[a-zA-Z]")
_LETTERS = re.compile(r"[^\W\d_]+")


def readable(text: str) -> str:
    """Remove format characters; in words that mix scripts, replace look-alikes by Latin letters."""
    if text.isascii() or not _SUSPECT.search(text):
        return text
    return _LETTERS.sub(_latin, _FORMAT.sub("", text))


def _latin(word: re.Match[str]) -> str:
    return word[0].translate(_LOOK_ALIKES) if _LATIN.search(word[0]) else word[0]
