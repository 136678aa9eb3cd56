"""Split text of any language into sentences, as ranges of characters.

Sentence rules come from `sentencex`, which knows abbreviations for some 240 languages. This module
detects the language, keeps the ranges exact, and bounds the work on hostile input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import sentencex


class Span(NamedTuple):
    """A range of characters, `[start, end)`."""

    start: int
    end: int


# Order matters: Japanese is Han with kana in between, so kana is asked first.
_SCRIPTS = tuple(
    (language, re.compile(f"[{characters}]"))
    for language, characters in (
        ("ja", "\u3040-\u30ff"),
        ("zh", "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"),
        ("ko", "\u1100-\u11ff\uac00-\ud7af"),
        ("ru", "\u0400-\u052f"),
        ("ar", "\u0600-\u06ff\u0750-\u077f"),
        ("hi", "\u0900-\u097f"),
        ("el", "\u0370-\u03ff"),
        ("he", "\u0590-\u05ff"),
        ("th", "\u0e00-\u0e7f"),
        ("hy", "\u0530-\u058f"),
        ("ka", "\u10a0-\u10ff"),
        ("bn", "\u0980-\u09ff"),
        ("pa", "\u0a00-\u0a7f"),
        ("gu", "\u0a80-\u0aff"),
        ("ta", "\u0b80-\u0bff"),
        ("te", "\u0c00-\u0c7f"),
        ("kn", "\u0c80-\u0cff"),
        ("ml", "\u0d00-\u0d7f"),
        ("my", "\u1000-\u109f"),
        ("am", "\u1200-\u137f"),
        ("km", "\u1780-\u17ff"),
    )
)
_LATIN = {
    language: frozenset(words.split())
    for language, words in {
        "en": "the of and is to in was that for with are it a as on by",
        "de": "der die das und ist nicht ein eine mit von den im zu",
        "fr": "le la les des est et une dans pour que du qui pas",
        "es": "el la los las es y una en por que del con se",
        "it": "il lo gli della è e una che di per non del sono",
        "pt": "o os um uma é e em não que da dos das para com",
        "nl": "de het een en van is niet dat op voor met zijn",
    }.items()
}
_FOREIGN = frozenset[str]().union(*_LATIN.values()) - _LATIN["en"]
_NOT_LATIN = re.compile("[^\0-\u024f\u2010-\u203a]")  # punctuation does not count
_SAMPLE = 2_000  # characters looked at to find the language
_PIECE = 2_000  # sentencex is quadratic in unclosed quotes: bound what it sees at once
_SURROGATE = re.compile("[\ud800-\udfff]")  # valid in str, but cannot be handed to sentencex
WIDE_MARK = r"【\d[\d:]{0,8}(?:†[^】\0]{0,60}|[^】\s\0]{0,40})】"
"""Pattern of a citation such as 【4:0†rules.pdf】; 【4 not so】 is a statement."""

_LINE = re.compile(r"[^\n\r\u2028\u2029\x0b\x0c\x85]+")
_ENDS_SENTENCE = re.compile(r"[.!?:;。！？।։؟…][\"'”’»)\]*_]*\s*$")
_CITATIONS = re.compile(r"\s*(?:\[[\d\s,;^–-]{1,20}\]|【[^】]{1,20}】)+")
_SAYS = re.compile(r"[^\W_]")
_TEXT = re.compile(r"\S(?:.*\S)?", re.DOTALL)  # without the white space around it
_LEADING_NUMBER = re.compile(r"(?:\d{1,3}|[A-Za-z])[.)]")
_LONGEST_NUMBER = 4  # characters of it


def detect_language(text: str) -> str:
    """The language whose sentence rules fit, as an ISO 639-1 code; English when in doubt."""
    sample = text[:_SAMPLE]
    if not sample.isascii() and any(map(str.isalpha, _NOT_LATIN.findall(sample))):
        letters = sum(map(str.isalpha, sample))
        for language, script in _SCRIPTS:
            # Japanese kana may be few among Han characters: a tenth of the letters is enough.
            if len(script.findall(sample)) * 10 >= letters:
                return language
    words = sample.lower().split()
    if _FOREIGN.isdisjoint(words):  # as in most English: no other language can have more
        return "en"
    counts = {language: sum(map(of.__contains__, words)) for language, of in _LATIN.items()}
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] > counts["en"] + 1 else "en"


def split_sentences(text: str, *, language: str | None = None) -> list[Span]:
    """Cut `text` into sentences, without the white space around them.

    Line breaks separate sentences unless a line plainly continues on the next one, as in text
    wrapped at a fixed width. A citation marker after the full stop stays with its sentence.

    Args:
        text: Any text.
        language: ISO 639-1 code; detected when None.

    Returns:
        Ranges in `text`, in order, none of them empty.
    """
    safe = text if text.isascii() else _SURROGATE.sub("\ufffd", text)
    code = language or detect_language(safe)
    spans: list[Span] = []
    for start, last in _blocks(safe):
        sentences: list[str] = []
        at = start
        while at < last:
            end = last
            if last - at > _PIECE:
                space = safe.rfind(" ", at + _PIECE // 2, at + _PIECE)
                end = space + 1 if space > 0 else at + _PIECE
            piece = safe[at:end]
            cut = sentencex.segment(code, piece)
            # Ranges would be wrong where something is missing; keep the piece whole.
            sentences += cut if sum(map(len, cut)) == len(piece) else [piece]
            at = end
        spans += _rejoin(safe, start, sentences)
    return spans


def _blocks(text: str) -> list[Span]:
    """Lines, joined where one is only wrapped."""
    blocks: list[Span] = []
    for line in _LINE.finditer(text):
        if not (words := line.group().lstrip()):
            continue
        start, end = blocks[-1] if blocks else (0, 0)
        is_wrapped = (
            text[end : line.start()] in ("\n", "\r\n")
            and words[0].islower()
            and "|" not in words
            and not _ENDS_SENTENCE.search(text[max(start, end - 12) : end])
        )
        if blocks and is_wrapped:
            blocks[-1] = Span(start, line.end())
        else:
            blocks.append(Span(*line.span()))
    return blocks


def _rejoin(text: str, start: int, sentences: Iterable[str]) -> list[Span]:
    """Append to a sentence its citation marker, and to a list item its number."""
    spans: list[Span] = []
    for sentence in sentences:
        end = start + len(sentence)
        if spans:
            last = spans[-1]
            is_short = last.end - last.start <= _LONGEST_NUMBER
            is_number = is_short and _LEADING_NUMBER.fullmatch(text, *last)
            if not is_number and (marker := _CITATIONS.match(text, start, end)):
                start = marker.end()
                spans[-1] = Span(last.start, start)
            # Not the whole sentence is looked at: one that grows by many small parts is long.
            if is_number or not _SAYS.search(text, start, end):  # or closes a quotation, emphasis
                start = spans.pop().start
        if found := _TEXT.search(text, start, end):
            spans.append(Span(*found.span()))
        start = end
    return spans
