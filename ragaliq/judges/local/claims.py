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

from ragaliq.judges.language.refusals import sentence_kind
from ragaliq.judges.language.sentences import Span, detect_language, split_sentences

# The prose of an answer that may be Markdown.


class Block(NamedTuple):
    """A stretch of prose: a paragraph, a list item, a row of a table or a title.

    Attributes:
        span: Where it stands.
        is_row: Whether it is a row of a table.
        is_title: Whether it is a heading, the head of a table or a footnote: a claim only where it
            asserts something.
        may_go_on: Whether it may belong to the paragraph or list item of the line before.
    """

    span: Span
    is_row: bool
    is_title: bool
    may_go_on: bool


_LINE = re.compile(r"([^\n\r]*)(?:\r\n?|\n|\Z)")
# What ends code: the mark that began it, or a longer one, and nothing after it. In one pass: a
# search for each of many fences takes hours.
_CODE = re.compile(
    r"(?<![^\n\r])[^\S\n\r]{0,3}(?P<fence>(?P<mark>[`~])(?P=mark){2,}+)[^`\n\r]*(?![^\n\r]).*?"
    r"(?:(?<![^\n\r])[^\S\n\r]{0,3}(?P=fence)(?P=mark)*[^\S\n\r]*(?P<end>(?![^\n\r]))|\Z)",
    re.DOTALL,
)
# A line that reads as a sentence and not as code is group 1.
_SENTENCE_LINE = re.compile(
    r"(?<![^\n\r])((?=[^\n\r]*[^\W\d_])[^{}=;<>\\`\n\r]*[.!?。！？।](?:['\")*_]|[^\S\n\r])*(?![^\n\r]))"
    r"|[^\n\r]+"
)
_HEADING = re.compile(r"\s{0,3}#{1,6}(?:\s|$)")
# "**Summary**" heads what follows; "**It grew.**" is a sentence.
_BOLD_LINE = re.compile(r"(?:\*\*|__)[^*_]{0,119}[^*_.!?。！？](?:\*\*|__)\s*:?")
_UNDERLINE = re.compile(r"=+|-{2,}")
_RULE = re.compile(rf"{_UNDERLINE.pattern}|(?:\*\s?){{3,}}|(?:_\s?){{3,}}")
_TABLE_RULE = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)+\|?|\|\s*:?-+:?\s*\|")
_MARKER = re.compile(r"\s*(?:(?:[-*+•‣◦–]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?|>+\s?)+")
_NOTE = re.compile(r"\s{0,3}\[\^?[\w-]{1,20}\]:\s")


def _blocks(text: str) -> Iterator[Block]:
    """The blocks of prose in `text`, in order; code and rules are skipped."""
    pending: Block | None = None
    for line in _LINE.finditer(_CODE.sub(_blanked, text)):
        block = _block(line[1], line.start())
        if pending:
            underline = _TABLE_RULE if pending.is_row else _UNDERLINE
            if underline.fullmatch(line[1].strip()):
                pending = pending._replace(is_title=True)
            elif block and block.may_go_on and not (pending.is_row or pending.is_title):
                pending = pending._replace(span=Span(pending.span.start, block.span.end))
                continue
            yield pending
        pending = block


def _blanked(code: re.Match[str]) -> str:
    """Blanks in place of code, so that positions stay.

    An answer that was cut off, or forgot to close its code, may continue in prose: its sentences
    stay.
    """
    if code["end"] is not None:
        return " " * len(code[0])
    return _SENTENCE_LINE.sub(lambda line: line[1] or " " * len(line[0]), code[0])


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
    may_go_on = not (marker or is_row or is_title)
    return Block(Span(start, start + len(text)), is_row, is_title, may_go_on)


# The claims in it.

_URL = re.compile(r"https?://\S+|www\.\S+")
_LINK = re.compile(r"!?\[([^\]]{0,200})\]\([^)]{0,500}\)")  # its group is what a reader sees
_CITATION = re.compile(r"\[\^?\w{1,20}(?:[,;–-]\s?\w{1,20}){0,9}\]|【[^】]{1,40}】")
_WORD = re.compile(r"\w+(?:['’]\w+)?")
_POINTERS = frozenset(
    ["read more", *"see source more link visit siehe quelle voir ver fuente".split()]
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
    for block in _blocks(answer):
        start, end = block.span
        text = answer[start:end]
        if block.is_title and not _asserts(text):
            continue
        whole = [Span(0, len(text))]
        for sentence in whole if block.is_row else split_sentences(text, language=language):
            first, last = start + sentence.start, start + sentence.end
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
    return sentence_kind(sentence) == "statement"


def _asserts(title: str) -> bool:
    """Whether a heading, a footnote or the text of a link says something, and not only of what."""
    text = _CITATION.sub("", _URL.sub("", _LINK.sub(r"\1", title)))
    words = _WORD.findall(text.lower().replace("’", "'"))
    if not words or words[0] in _ASKING or sentence_kind(text) == "question":
        return False
    ends = text.rstrip(" *_\"'”’)").endswith((".", "!", "。", "！", "।"))
    return (ends and len(words) > 1) or not _VERBS.isdisjoint(words)
