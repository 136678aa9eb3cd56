"""Find the claims in an answer: the sentences, list items and table rows of its prose.

Claims are verbatim slices of the answer, so that they can be shown where they stand. What a reader
sees as an assertion is one, also in a heading, a link's text, a footnote, an image's text or a tag
question. Not claims: questions, courtesies, refusals, titles that assert nothing, lines that lead
in to a list, code, bare links and citation markers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ragaliq.judges.language.refusals import declines, is_question, is_small_talk
from ragaliq.judges.language.sentences import Span, detect_language, split_sentences

# The prose of an answer that may be Markdown.


class Block(NamedTuple):
    """A stretch of prose: a paragraph, a list item, a row of a table or a title.

    Attributes:
        span: Where it stands.
        is_row: Whether it is a row of a table.
        is_title: Whether it is a heading, the head of a table or a footnote: a claim only where it
            asserts something.
    """

    span: Span
    is_row: bool = False
    is_title: bool = False


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


def _blocks(text: str) -> Iterator[Block]:
    """The blocks of prose in `text`, in order; code and rules are skipped."""
    pending: Block | None = None
    for line in _outside_code(text):
        content = line.group() if line else ""
        block = _block(content, line.start()) if line else None
        if pending and _underlines(content.strip(), pending):
            yield pending._replace(is_title=True)
            pending = None
        elif pending and block and _goes_on(content, block, pending):
            pending = Block(Span(pending.span.start, block.span.end))
        elif not (line and content in ("\n", "\r", "\r\n")):
            if pending:
                yield pending
            pending = block
        elif pending and text[line.start() - 1 : line.start()] in ("\n", "\r"):
            yield pending
            pending = None
    if pending:
        yield pending


def _outside_code(text: str) -> Iterator[re.Match[str] | None]:
    """Lines and line ends that are no code; None where code begins or ends."""
    lines = list(_LINE.finditer(text))
    fences = [_FENCE.fullmatch(line.group()) for line in lines]
    # What ends code: the mark that began it, or a longer one, and nothing after it.
    ends = [mark["marks"] if mark and not mark["info"].strip() else "" for mark in fences]
    open_with, is_closed = "", False
    for at, (line, mark) in enumerate(zip(lines, fences, strict=True)):
        if mark:
            if not open_with:
                open_with = mark["marks"]
                # An answer that was cut off, or forgot to close its code, may go on with prose.
                # By position: a slice for each of many fences takes hours.
                is_closed = any(ends[i].startswith(open_with) for i in range(at + 1, len(ends)))
            elif ends[at].startswith(open_with):
                open_with = ""
            yield None
        elif not open_with or (not is_closed and _is_sentence(line.group().strip())):
            yield line


def _is_sentence(line: str) -> bool:
    """Whether a line reads as a sentence and not as code, after a fence that is never closed."""
    said = line.rstrip("'\")*_")
    ends = said.endswith((".", "!", "?", "。", "！", "？", "।"))
    return ends and _LETTER.search(said) is not None and _OF_CODE.search(line) is None


def _block(content: str, offset: int) -> Block | None:
    """A line as prose, without its marker; None where it is not prose."""
    line = content.strip()
    if not line or _RULE.fullmatch(line) or _TABLE_RULE.fullmatch(line):
        return None
    is_row = line.startswith("|")
    title = _HEADING.match(content) or _NOTE.match(content)
    marker = title or _MARKER.match(content)
    start = marker.end() if marker else 0
    text = content[start:].strip(" \t|" if is_row else None)
    if not text:
        return None
    start = offset + content.index(text, start)
    is_title = title is not None or _BOLD_LINE.fullmatch(line) is not None
    return Block(Span(start, start + len(text)), is_row, is_title)


def _underlines(line: str, pending: Block) -> bool:
    """Whether a line underlines the one before, as a heading or as the head of a table."""
    if pending.is_row:
        return _TABLE_RULE.fullmatch(line) is not None
    return line[:1] in ("=", "-") and _RULE.fullmatch(line) is not None


def _goes_on(content: str, block: Block, pending: Block) -> bool:
    """Whether a line goes on with the paragraph before."""
    apart = block.is_row or pending.is_row or block.is_title or pending.is_title
    return not (apart or _MARKER.match(content))


# The claims in it.

_URL = re.compile(r"https?://\S+|www\.\S+")
_LINK = re.compile(r"!?\[([^\]]{0,200})\]\([^)]{0,500}\)")  # its group is what a reader sees
_CITATION = re.compile(r"\[\^?\w{1,20}(?:[,;–-]\s?\w{1,20}){0,9}\]|【[^】]{1,40}】")
_WORD = re.compile(r"\w+(?:['’]\w+)?")
_POINTERS = frozenset(
    ["", "read more", *"see source more link visit siehe quelle voir ver fuente".split()]
)
_SOURCES = frozenset(
    "source sources reference references citation citations quelle quellen référence références "
    "fuente fuentes".split()
)
# What makes a title an assertion: "Refunds are free" against "Our refund policy".
_VERBS = frozenset(
    "is isn't are aren't was wasn't were weren't has hasn't have had can can't cannot could "
    "may might must will won't would should does doesn't do don't did didn't not never no "
    "nobody nothing none takes take took costs cost opens open opened closes closed pays pay "
    "paid gets get got needs need requires require required includes included allows allowed "
    "offers offered starts started begins began ends ended lasts lasted runs ran ships "
    "arrives arrived applies applied expires expired works worked makes made gives gave wins "
    "won loses lost becomes became remains grew grows rises rose falls fell said says built "
    "founded invented discovered died born lies stands ist sind war waren hat haben hatte "
    "kann können muss müssen wird werden darf nicht kein keine kostet dauert gilt est sont "
    "était ont peut doit sera n'est pas coûte dure son fue era está están tiene tienen "
    "puede debe cuesta dura è sono ha hanno può deve non costa são tem têm pode não heeft "
    "hebben niet geen kost duurt jest są не".split()
)
_ASKING = frozenset(
    "how what when why where who whom which whose wie was wann warum wo wer welche comment quand "
    "pourquoi où qui quel quelle cómo cuándo dónde quién qué cuál come quando perché dove chi "
    "quale como onde quem hoe wat wanneer waarom waar".split()
)
_ITEM = re.compile(r"\d{1,2}[.)]\s+(?=[^\W\d_])")
_SAYS = re.compile(r"[^\W_]")
_LEADS_IN = re.compile(r"[:：]\W*$")
_WRAPPED = re.compile(r"(\*\*|__|\*|_|\"|“)(?P<inside>[^*_\"“”]+)(?:\1|”)", re.DOTALL)


def find_claims(answer: str) -> list[Span]:
    """Where the claims of an answer stand: ranges, in order, none of them empty."""
    language = detect_language(answer)
    claims: list[Span] = []
    for (start, end), is_row, is_title in _blocks(answer):
        text = answer[start:end]
        if is_title and not _asserts(text):
            continue
        for sentence in [(0, len(text))] if is_row else split_sentences(text, language=language):
            first, last = start + sentence[0], start + sentence[1]
            # "2. Paris grew." in a list. German writes ordinals so: "3. Oktober 1990".
            if language != "de" and (number := _ITEM.match(answer, first, last)):
                first = number.end()
            if _is_claim(answer[first:last]):
                wrapped = _WRAPPED.fullmatch(answer, first, last)
                claims.append(Span(*wrapped.span("inside")) if wrapped else Span(first, last))
    return claims


def _is_claim(sentence: str) -> bool:
    around = _CITATION.sub("", _URL.sub("", _LINK.sub("", sentence))).lower()
    words = " ".join(_WORD.findall(around))
    linked = _LINK.findall(sentence)
    if not words or words in _SOURCES or (words in _POINTERS and (linked or _URL.search(sentence))):
        return any(map(_asserts, linked))
    if not _SAYS.search(around) or _LEADS_IN.search(sentence[-8:]):
        return False
    return not (is_question(sentence) or is_small_talk(sentence) or declines(sentence))


def _asserts(title: str) -> bool:
    """Whether a heading, a footnote or the text of a link says something, and not only of what."""
    text = _CITATION.sub("", _URL.sub("", _LINK.sub(r"\1", title)))
    words = _WORD.findall(text.lower().replace("’", "'"))
    if not words or words[0] in _ASKING or is_question(text):
        return False
    ends = text.rstrip(" *_\"'”’)").endswith((".", "!", "。", "！", "।"))
    return (ends and len(words) > 1) or not _VERBS.isdisjoint(words)
