"""Find the claims in an answer: the sentences, list items and table rows of its prose.

Claims are verbatim slices of the answer, so that they can be shown where they stand. What cannot
be checked is left out: questions, courtesies, refusals, headings, lines that lead in to a list,
code, bare links and citation markers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ragaliq.judges.language.refusals import declines, is_question, is_small_talk
from ragaliq.judges.language.sentences import Span, detect_language, split_sentences

__all__ = ["find_claims"]


# The prose of an answer that may be Markdown.


class Block(NamedTuple):
    """A stretch of prose: a paragraph, a list item, or a row of a table (`is_row`)."""

    span: Span
    is_row: bool = False


_LINE = re.compile(r"[^\n\r]+|\r\n|\n|\r")
_FENCE = re.compile(r"\s{0,3}(?P<marks>`{3,}+|~{3,}+)(?P<info>[^`]*)")
_OF_CODE = re.compile(r"[{}=;<>\\`]")
_LETTER = re.compile(r"[^\W\d_]")
_HEADING = re.compile(r"\s{0,3}#{1,6}(?:\s|$)")
# "**Summary**" heads what follows; "**It grew.**" is a sentence.
_BOLD_LINE = re.compile(r"(?:\*\*|__)[^*_]{0,119}[^*_.!?。！？](?:\*\*|__)\s*:?")
_RULE = re.compile(r"(?:=+|-{2,}|(?:\*\s?){3,}|(?:_\s?){3,})")
_TABLE_RULE = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)+\|?|\|\s*:?-+:?\s*\|")
_MARKER = re.compile(r"\s*(?:(?:[-*+•‣◦–]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?|>+\s?)+")
_NOTE = re.compile(r"\s{0,3}\[\^?[\w-]{1,20}\]:\s")


def prose(text: str) -> Iterator[Block]:
    """The blocks of prose in `text`, in order; code, headings and rules are left out."""
    pending: Block | None = None
    for line in _outside_code(text):
        content = line.group() if line else ""
        block = _block(content, line.start()) if line else None
        if _makes_heading(content, pending):
            pending = None
        elif block and pending and _joins(content, block, pending):
            pending = Block(Span(pending.span.start, block.span.end))
        elif line and content in ("\n", "\r", "\r\n"):
            if pending and text[line.start() - 1 : line.start()] in ("\n", "\r"):
                yield pending
                pending = None
        else:
            if pending:
                yield pending
            pending = block
    if pending:
        yield pending


def _outside_code(text: str) -> Iterator[re.Match[str] | None]:
    """Lines and line ends that are no code; None where code begins or ends."""
    lines = list(_LINE.finditer(text))
    fence, ends = "", False
    for at, line in enumerate(lines):
        content = line.group()
        if mark := _fence(content):
            if not fence:
                fence = mark
                # An answer that was cut off, or forgot to close its code, may go on with prose.
                # By position: to skip what came before, for each of many fences, takes hours.
                later = (lines[place].group() for place in range(at + 1, len(lines)))
                ends = any(_closes(line_after, mark) for line_after in later)
            elif _closes(content, fence):
                fence = ""
            yield None
        elif not fence or (not ends and _is_sentence(content.strip())):
            yield line


def _is_sentence(line: str) -> bool:
    """Whether a line reads as a sentence and not as code, after a fence that is never closed."""
    said = line.rstrip("'\")*_")
    ends = said.endswith((".", "!", "?", "。", "！", "？", "।"))
    return ends and _LETTER.search(said) is not None and _OF_CODE.search(line) is None


def _fence(content: str) -> str:
    """The marks a line of code begins or ends with; empty where it is another line."""
    match = _FENCE.fullmatch(content)
    return match["marks"] if match else ""


def _closes(content: str, fence: str) -> bool:
    """Whether a line ends the code a fence began: the same mark, as long, and nothing after it."""
    marks = _fence(content)
    return marks.startswith(fence) and marks == content.strip()


def _block(content: str, offset: int) -> Block | None:
    """A line as prose, without its marker; None where it is no prose."""
    line = content.strip()
    if not line or any(pattern.fullmatch(line) for pattern in (_BOLD_LINE, _RULE, _TABLE_RULE)):
        return None
    if _HEADING.match(content) or _NOTE.match(content):
        return None
    is_row = line.startswith("|")
    marker = _MARKER.match(content)
    start = marker.end() if marker else 0
    text = content[start:].strip(" \t|" if is_row else None)
    if not text:
        return None
    start = offset + content.index(text, start)
    return Block(Span(start, start + len(text)), is_row)


def _makes_heading(content: str, pending: Block | None) -> bool:
    """Whether a line underlines the one before, as a heading or as the head of a table."""
    if pending is None or not content.strip():
        return False
    if pending.is_row:
        return _TABLE_RULE.fullmatch(content.strip()) is not None
    return _RULE.fullmatch(content.strip()) is not None and content.strip()[0] in "=-"


def _joins(content: str, block: Block, pending: Block) -> bool:
    """Whether a line goes on with the paragraph before."""
    return not (block.is_row or pending.is_row or _MARKER.match(content))


# The claims in it.

_LINK = re.compile(r"https?://\S+|www\.\S+|!?\[[^\]]{0,200}\]\([^)]{0,500}\)")
_CITATION = re.compile(r"\[\^?[\w\s,;–-]{1,20}\]|【[^】]{1,40}】")
_WORD = re.compile(r"\w+")
_POINTERS = frozenset(
    ["", "read more", *"see source more link visit siehe quelle voir ver fuente".split()]
)
_SOURCES = frozenset(
    "source sources reference references citation citations quelle quellen référence références "
    "fuente fuentes".split()
)
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
    if not _SAYS.search(said) or _LEADS_IN.search(sentence[-8:]):
        return False
    words = " ".join(_WORD.findall(said))
    if words in _SOURCES or (words in _POINTERS and _LINK.search(sentence)):
        return False
    return not (is_question(sentence) or is_small_talk(sentence) or declines(sentence))


def _unwrapped(answer: str, span: Span) -> Span:
    """A claim without the emphasis or quotation marks that enclose all of it."""
    match = _WRAPPED.fullmatch(answer, *span)
    return Span(*match.span("inside")) if match else span
