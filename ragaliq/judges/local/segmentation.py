"""Cut an answer into the claims it makes: sentences, list items and table rows.

Claims are verbatim slices of the answer, so that they can be shown where they stand. What cannot
be checked is left out: questions, courtesies, refusals, headings, lines that lead in to a list,
code, bare links and citation markers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragaliq.judges.language.refusals import declines, is_question, is_small_talk
from ragaliq.judges.language.sentences import Span, detect_language, split_sentences
from ragaliq.judges.local.markdown import prose

__all__ = ["find_claims"]

_LINK = re.compile(r"https?://\S+|www\.\S+|!?\[[^\]]{0,200}\]\([^)]{0,500}\)")
_CITATION = re.compile(r"\[\^?[\w\s,;–-]{1,20}\]|【[^】]{1,40}】")
_POINTER = re.compile(
    r"\W*(?:see|source|read more|more|link|visit|siehe|quelle|voir|ver|fuente)?\W*"
)
_SOURCES = re.compile(r"\W*(?:sources?|references?|citations?|quellen?|références?|fuentes?)\W*")
_ITEM = re.compile(r"\d{1,2}[.)]\s+(?=[^\W\d_])")
_SAYS = re.compile(r"[^\W_]")
_LEADS_IN = re.compile(r"[:：]\W*$")
_WRAPPED = re.compile(r"(\*\*|__|\*|_|\"|“)(?P<inside>[^*_\"“”]+)(?:\1|”)", re.DOTALL)


def find_claims(answer: str) -> list[Span]:
    """Where the claims of an answer stand.

    Args:
        answer: Plain text or Markdown, in any language.

    Returns:
        Ranges in the answer, in order, none of them empty.
    """
    language = detect_language(answer)
    spans = (_without_number(answer, span, language) for span in _sentences(answer, language))
    return [_unwrapped(answer, span) for span in spans if _is_claim(answer, span)]


def _sentences(answer: str, language: str) -> Iterator[Span]:
    for block in prose(answer):
        if block.is_row:
            yield block.span
            continue
        start = block.span.start
        text = answer[start : block.span.end]
        for sentence in split_sentences(text, language=language):
            yield Span(start + sentence.start, start + sentence.end)


def _without_number(answer: str, span: Span, language: str) -> Span:
    """A sentence such as "2. Paris grew." without the number of the list item it is."""
    match = _ITEM.match(answer, *span)
    # German writes ordinals so: "3. Oktober 1990".
    return Span(match.end(), span.end) if match and language != "de" else span


def _is_claim(answer: str, span: Span) -> bool:
    sentence = answer[span.start : span.end]
    said = _CITATION.sub("", _LINK.sub("", sentence)).lower()
    if not _SAYS.search(said) or _LEADS_IN.search(sentence[-8:]) or _SOURCES.fullmatch(said):
        return False
    if _LINK.search(sentence) and _POINTER.fullmatch(said):
        return False
    return not (is_question(sentence) or is_small_talk(sentence) or declines(sentence))


def _unwrapped(answer: str, span: Span) -> Span:
    """A claim without the emphasis or quotation marks that enclose all of it."""
    match = _WRAPPED.fullmatch(answer, *span)
    return Span(*match.span("inside")) if match else span
