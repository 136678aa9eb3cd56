"""How much a word tells: its inverse document frequency in the texts the judge was trained on."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from ragaliq.judges.local.words import FUNCTION_WORDS, is_pair

__all__ = ["WordFrequencies"]

_FULL_LENGTH = 6  # letters from which an unseen word counts as fully rare
_PAIR_SHARE = 0.5  # of the highest weight, for a pair of characters
_SOFT_PAIR_SHARE = 0.15  # for a pair of Japanese syllable signs, which mostly is grammar


class WordFrequencies:
    """Weights of words, from document counts, and which of them are names.

    The weight of a word in `n` of `N` documents is `ln((N + 1) / (n + 0.5))` (Spärck Jones 1972,
    smoothed). A word never seen weighs the more the longer it is: in most languages the short
    words are the grammatical ones.

    Args:
        documents: How many texts were counted, at least 1.
        counts: Documents by word, at least 1 each.
        names: Words that are nearly always written with a capital.
    """

    def __init__(
        self, documents: int, counts: Mapping[str, int], names: Collection[str] = ()
    ) -> None:
        self.highest = math.log((documents + 1) / 1.5)
        self._names = frozenset(names)
        self._weights = {
            word: math.log((documents + 1) / (count + 0.5)) for word, count in counts.items()
        }

    def weight(self, word: str) -> float:
        """The weight of a stem, from 0 (grammatical) to `highest` (seen in one text at most)."""
        if word in FUNCTION_WORDS:
            return 0.0
        known = self._weights.get(word)
        if known is not None:
            return known
        if is_pair(word):
            soft = all("\u3040" <= character <= "\u309f" for character in word)
            return self.highest * (_SOFT_PAIR_SHARE if soft else _PAIR_SHARE)
        if word[0] == "#":
            return self.highest
        return self.highest * min(len(word), _FULL_LENGTH) / _FULL_LENGTH

    def is_name(self, word: str) -> bool:
        """Whether a word with a capital is a name even where every word would have one."""
        return word in self._names or word not in self._weights
