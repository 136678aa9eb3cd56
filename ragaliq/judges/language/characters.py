"""Text as a reader sees it: without format characters, look-alike letters in the word's script."""

from __future__ import annotations

import re

# Invisible: soft hyphens, zero-width characters, marks of direction, tag characters.
_FORMAT = re.compile(
    "[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\U000e0000-\U000e007f]"
)
# Letters of other scripts that look like Latin ones, and those.
_LOOK_ALIKES = str.maketrans(
    "аеорсухіјѕһԁԛԝьѵАВЕКМНОРСТХУІЈЅαορνικυχγΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijshdqwbvABEKMHOPCTXYIJSaopvikuxyABEZHIKMNOPTYX",
)
_OTHER_SCRIPTS = re.compile("[\u0370-\u03ff\u0400-\u052f]")
_LATIN = re.compile("[a-zA-Z]")
_LETTERS = re.compile(r"[^\W\d_]+")


def readable(text: str) -> str:
    """Remove format characters; in words that mix scripts, replace look-alikes by Latin letters."""
    if text.isascii():
        return text
    text = _FORMAT.sub("", text)
    if _OTHER_SCRIPTS.search(text):
        text = _LETTERS.sub(_latin, text)
    return text


def _latin(word: re.Match[str]) -> str:
    return word[0].translate(_LOOK_ALIKES) if _LATIN.search(word[0]) else word[0]
