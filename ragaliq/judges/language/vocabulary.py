"""Vocabulary of declines and courtesies by language, from a data file.

`declines.json` has word classes for each language: the documents, their content, verbs of saying,
of holding and of knowing, negations, small words. An item may be a phrase; one that ends in `*`
matches every word with this prefix.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import NamedTuple

_UNSPACED = ("zh", "ja", "ko")
_PREFIX = 4  # letters by which prefixes are looked up
_WORD = re.compile(r"n/a\b|\w+(?:\w|[\u0900-\u097f\u064b-\u065f\u0300-\u036f])*")
_NOTHING = frozenset[str]()


class KnownWord(NamedTuple):
    """A word or phrase of a sentence, with the classes it is in; none for a word of the topic."""

    text: str
    classes: frozenset[str]


class Vocabulary:
    """The words of one language, by class.

    Args:
        language: ISO 639-1 code.
        classes: Items of each class, separated by commas.
    """

    def __init__(self, language: str, classes: Mapping[str, str]) -> None:
        found: dict[str, set[str]] = {}
        for name, entries in classes.items():
            for entry in entries.split(", "):
                found.setdefault(entry, set()).add(name)
        self._exact = {
            " ".join(_WORD.findall(entry)) if language not in _UNSPACED else entry: frozenset(names)
            for entry, names in found.items()
            if not entry.endswith("*")
        }
        self._prefixes: dict[str, list[tuple[str, frozenset[str]]]] = {}
        for entry, names in found.items():
            if entry.endswith("*"):
                stub = entry[:-1]
                self._prefixes.setdefault(stub[:_PREFIX], []).append((stub, frozenset(names)))
        self._longest: dict[str, int] = {}  # by the first word of phrases
        for entry in self._exact:
            parts = entry.split()
            if len(parts) > 1:
                self._longest[parts[0]] = max(len(parts), self._longest.get(parts[0], 1))
        self._single: dict[tuple[str, ...], frozenset[str]] = {}
        self._pieces: re.Pattern[str] | None = None
        if language in _UNSPACED:
            longest = sorted(self._exact, key=len, reverse=True)
            self._pieces = re.compile("|".join(map(re.escape, longest)))

    def is_made_of(
        self, words: frozenset[str], classes: tuple[str, ...], *, spare: int = 0
    ) -> bool:
        """True if most words of a sentence are in some classes; an approximation."""
        if self._pieces is not None:
            return True
        known = self._single.get(classes)
        if known is None:
            entries = (entry for entry, names in self._exact.items() if names & {*classes})
            known = self._single[classes] = frozenset(
                word for entry in entries for word in entry.split()
            )
        return sum(len(word) > 1 for word in words - known) <= spare

    def tokens(self, text: str) -> list[KnownWord]:
        """The words and phrases of a part of a sentence, the longest known ones first."""
        if self._pieces is not None:
            return self._cut(text, self._pieces)
        words, found, at = _WORD.findall(text), list[KnownWord](), 0
        while at < len(words):
            longest = min(self._longest.get(words[at], 1), len(words) - at)
            for length in range(longest, 0, -1):
                phrase = " ".join(words[at : at + length])
                classes = self._exact.get(phrase, _NOTHING)
                if length == 1 and self._prefixes:
                    classes |= self._by_prefix(phrase)
                if classes:
                    break
            found.append(KnownWord(phrase, classes))
            at += length
        return found

    def _by_prefix(self, word: str) -> frozenset[str]:
        if len(word) == 1 and word.isalpha():
            return frozenset({"fill"})  # what an apostrophe left: "the CEO's", "l'adresse"
        for stub, names in self._prefixes.get(word[:_PREFIX], ()):
            if word.startswith(stub):
                return names
        return _NOTHING

    def _cut(self, text: str, pieces: re.Pattern[str]) -> list[KnownWord]:
        found, at = list[KnownWord](), 0
        for piece in pieces.finditer(text):
            if between := "".join(_WORD.findall(text[at : piece.start()])):
                found.append(KnownWord(between, _NOTHING))
            found.append(KnownWord(piece.group(), self._exact[piece.group()]))
            at = piece.end()
        if between := "".join(_WORD.findall(text[at:])):
            found.append(KnownWord(between, _NOTHING))
        return found


# Read on import: reading a file later would block an event loop.
_DATA = (resources.files(__package__) / "declines.json").read_text("utf-8")


class _Trigger(NamedTuple):
    """A word or phrase of a class, which selects the languages to check."""

    language: str
    text: str


class _Index:
    """Index of all vocabularies, from the words of a class to their languages.

    Most sentences have no word of the class, and are done after one look-up of each word.
    """

    def __init__(self) -> None:
        data: dict[str, dict[str, str]] = json.loads(_DATA)
        self.vocabularies = {code: Vocabulary(code, classes) for code, classes in data.items()}
        # By the first word; of what ends in "*" by its first letters; and of unspaced scripts.
        self._first: dict[str, dict[str, list[_Trigger]]] = {}
        self._stubs: dict[str, dict[str, list[_Trigger]]] = {}
        self._within: dict[str, list[_Trigger]] = {}
        for code, classes in data.items():
            for name, entries in classes.items():
                first, stubs = self._first.setdefault(name, {}), self._stubs.setdefault(name, {})
                for entry in entries.split(", "):
                    trigger = _Trigger(code, entry.rstrip("*"))
                    if code in _UNSPACED:
                        self._within.setdefault(name, []).append(trigger)
                    elif entry.endswith("*"):
                        stubs.setdefault(entry[:_PREFIX], []).append(trigger)
                    else:
                        first.setdefault(entry.split()[0], []).append(trigger)

    def languages(self, said: str, name: str) -> set[str]:
        """Languages in which a sentence has a word of a class."""
        found = set[str]()
        words = _words(said)
        first, stubs = self._first[name], self._stubs[name]
        for word in first.keys() & words.all:
            for trigger in first[word]:
                if trigger.text == word or f" {trigger.text} " in words.padded:
                    found.add(trigger.language)
        for stub in stubs.keys() & words.stubs:
            for trigger in stubs[stub]:
                if any(word.startswith(trigger.text) for word in words.all):
                    found.add(trigger.language)
        if not said.isascii() and any(character >= "\u1100" for character in said):
            within = self._within.get(name, ())
            found.update(trigger.language for trigger in within if trigger.text in said)
        return found


class _SentenceWords(NamedTuple):
    """Distinct words of a sentence, their prefixes, and the sentence as one text."""

    all: frozenset[str]
    stubs: frozenset[str]
    padded: str


@lru_cache(maxsize=8)  # a sentence is asked about several classes, one after the other
def _words(said: str) -> _SentenceWords:
    words = _WORD.findall(said)
    stubs = frozenset([word[:_PREFIX] for word in words])
    return _SentenceWords(frozenset(words), stubs, f" {' '.join(words)} ")


@cache
def _index() -> _Index:
    return _Index()


def vocabularies_with(
    said: str, name: str, *, made_of: tuple[str, ...] = (), spare: int = 0
) -> list[Vocabulary]:
    """Vocabularies of the languages in which a sentence has a word of a class.

    Args:
        said: A sentence in lower case.
        name: The class, such as `negation`.
        made_of: Classes that all words must be in; empty for any.
        spare: Number of words that need not be in these classes.
    """
    index = _index()
    found = [index.vocabularies[code] for code in index.languages(said, name)]
    if not made_of or not found:
        return found
    words = _words(said).all
    return [each for each in found if each.is_made_of(words, made_of, spare=spare)]
