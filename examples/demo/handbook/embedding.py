"""A deterministic embedding without a model: hashed words, weighted by how rare they are.

It finds the right section of a small handbook by its wording, needs no download and gives the
same vectors on every machine. A real application would use an embedding model in its place.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b

__all__ = ["HashedWords"]

DIMENSIONS = 1024
_WORD = re.compile(r"[a-z0-9]+")
_ENDING = re.compile(r"(?<=[a-z]{3})(?:ing|ed|es|s|e)$")
_STOPWORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be been but by can do does for from get has have how i if in is it its "
        "may me my of on or our that the there they this to us was we what when which will with "
        "you your",
    )
)


class HashedWords:
    """Turns text into vectors of `DIMENSIONS` numbers with length 1."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Count in how many of `texts` each word occurs: rare words say more."""
        seen = Counter[str]()
        self._total = 0
        for text in texts:
            seen.update(set(_words(text)))
            self._total += 1
        self._seen = seen

    def embed(self, text: str) -> list[float]:
        """The vector of a text; all zeros when it holds no word."""
        vector = [0.0] * DIMENSIONS
        for word, count in Counter(_words(text)).items():
            weight = math.log((1 + self._total) / (1 + self._seen[word])) + 1
            vector[_slot(word)] += weight * (1 + math.log(count))
        length = math.sqrt(sum(value * value for value in vector))
        return [value / length for value in vector] if length else vector


def _words(text: str) -> list[str]:
    words = (word for word in _WORD.findall(text.lower()) if word not in _STOPWORDS)
    return [_ENDING.sub("", word) for word in words]


def _slot(word: str) -> int:
    # Python's own hash differs from process to process.
    return int.from_bytes(blake2b(word.encode(), digest_size=4).digest()) % DIMENSIONS
