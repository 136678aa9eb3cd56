"""Split an answer into its claims and skipped parts, which assert nothing.

Claims are verbatim slices of the answer, so that a page can highlight them: the sentences, list
items and table rows of its prose. Every assertion is a claim, also in a heading, a link's text, a
footnote, an image's text or a tag question, and so is any line of four words. Skipped are lists of
sources, notes about AI, a stated confidence, questions, courtesies and refusals, which cannot be
checked, and titles, lead-ins of lists, and code.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from ragaliq.judges.language.refusals import (
    YES_OR_NO,
    is_disclaimer,
    is_lead_in,
    sentence_kind,
)
from ragaliq.judges.language.sentences import WIDE_MARK, Span, detect_language, split_sentences

SkippedKind = Literal[
    "sources", "disclaimer", "confidence", "markup", "question", "courtesy", "reply", "refusal",
    "title", "lead_in", "code",
]  # fmt: skip
"""Kinds of skipped parts; the last three may be informative to a reader."""


SAYS_NOTHING: frozenset[SkippedKind] = frozenset(
    ("sources", "disclaimer", "confidence", "markup", "question", "courtesy", "reply", "refusal")
)
"""Kinds of parts that tell a reader nothing: an answer is covered without these. A `reply`, a yes
or no, tells something where nothing else does."""

AROUND: frozenset[SkippedKind] = frozenset(("sources", "disclaimer", "confidence"))
"""What stands around an answer rather than in it: no judge is asked about it."""


class SkippedPart(NamedTuple):
    """A skipped range of an answer, and its kind."""

    start: int
    end: int
    kind: SkippedKind


class AnswerParts(NamedTuple):
    """Claims and skipped parts of an answer.

    Attributes:
        claims: Non-empty ranges of its claims, in order.
        skipped: The rest of its words, in order.
    """

    claims: Sequence[Span]
    skipped: Sequence[SkippedPart]


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
_PROSE_FENCE = re.compile(
    r"[^\S\n\r]*[`~]{3,}[^\S\n\r]*(?:te?xt|markdown|md|plain|plaintext)?[^\S\n\r]*[\n\r]"
)
_NOT_BREAK = re.compile(r"[^\n\r]")
_HEADING = re.compile(r"\s{0,3}#{1,6}(?:\s|$)")
# "**Summary**" heads what follows; "**It grew.**" is a sentence.
_BOLD_LINE = re.compile(r"(?:\*\*|__)[^*_]{0,119}[^*_.!?。！？](?:\*\*|__)\s*:?")
_UNDERLINE = re.compile(r"=+|-{2,}")
_RULE = re.compile(rf"{_UNDERLINE.pattern}|(?:\*\s?){{3,}}|(?:_\s?){{3,}}")
_TABLE_RULE = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)+\|?|\|\s*:?-+:?\s*\|")
_MARKER = re.compile(r"\s*(?:(?:[-*+•‣◦–]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?|>+\s?)+")
_NOTE = re.compile(r"\s{0,3}\[\^?[\w-]{1,20}\]:\s")


def _blocks(text: str, skip: Callable[[SkippedKind, int, int], None]) -> Iterator[Block]:
    """The blocks of prose in `text`, in order; code and rules are skipped."""

    def blanked(code: re.Match[str]) -> str:
        prose = _blanked(code)
        for line in _LINE.finditer(prose):
            if not line[1].strip():
                start = code.start() + line.start()
                skip("code", start, start + len(line[1]))
        return prose

    pending: Block | None = None
    for line in _LINE.finditer(_CODE.sub(blanked, text)):
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
    """Replace code by blanks, so that positions stay.

    Code without an end mark may continue in prose, and a fence without a language may hold prose:
    its sentences stay.
    """
    if code["end"] is not None and not _PROSE_FENCE.match(code[0]):
        return _NOT_BREAK.sub(" ", code[0])
    return _SENTENCE_LINE.sub(lambda line: line[1] or " " * len(line[0]), code[0])


def _block(content: str, offset: int) -> Block | None:
    """Parse a line of prose, without its marker; None if it is not prose."""
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


# What surrounds an answer: tags, labels, sources, a stated confidence.

# A tag, a document's number, or the label of the answer itself.
_TAG = re.compile(
    r"</?(?:p|br|b|i|u|s|em|strong|su[bp]|ul|ol|li|div|span|a|h[1-6]|hr|table|t[rdh]|thead|tbody|"
    r"code|pre|blockquote|small|mark|details|summary|answer|final_answer|response|result|output)"
    r"(?:\s[^<>\n]{0,200})?/?>",
    re.IGNORECASE,
)
# A reader sees or hears an image's text.
_IMAGE = re.compile(
    r"<img\b(?:[^<>\n]{0,200}?\s(?:alt|title)\s*=\s*[\"'](?P<text>[^<>\"\n]{0,200})[\"'])?"
    r"[^<>\n]{0,200}>",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    r"\[\s*(?:document|doc|source|chunk|passage|context|quelle|fuente)s?\s*#?\d{1,3}"
    r"(?:\s*[,;]\s*\d{1,3}){0,9}\s*\]",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"\s*[*_#> ]{0,4}(?:final answer|answer|response|antwort|réponse|respuesta|risposta|resposta|"
    r"antwoord|odpowiedź)\s*[*_]{0,2}\s*:[*_]{0,2}(?=\s|$)",
    re.IGNORECASE,
)
_SUPERSCRIPT = re.compile(r"<sup>\s*\[?[\d,\s]{1,12}\]?\s*</sup>", re.IGNORECASE)
_CONFIDENCE = re.compile(
    r"\W*(?:(?:my|overall|answer) )?(?:confidence|certainty|konfidenz|sicherheit|confiance|"
    r"confianza|confidenza|confiança|betrouwbaarheid|pewność)(?: (?:level|score|rating))?"
    r"\W{0,4}[:=]\W{0,4}"
    r"(?:(?:very |sehr |très |muy |molto |muito |zeer )?(?:high|medium|moderate|low|hoch|mittel|"
    r"niedrig|gering|élevée?|haute|moyenne|faible|alta|media|média|baja|bassa|baixa|hoog|"
    r"gemiddeld|laag|wysoka|średnia|niska)"
    r"|[01]?[.,]\d{1,4}|\d{1,3}\s?(?:%|percent|/\s?\d{1,3})?)\W*",
    re.IGNORECASE,
)
_SOURCE_LABEL = re.compile(
    r"[\W_]*(?:sources?|references?|citations?|bibliography|further reading|works cited|"
    r"quellen?|quellenangaben?|literatur|références?|fuentes?|referencias?|fonti?|riferimenti|"
    r"fontes?|referências|bronnen|bron|źródła|źródło)(?: (?:used|cited|consulted))?[\W_]*?"
    r"(?:(?P<colon>:)[*_]*\s*(?P<names>.*)|[*_]*\s*)",
    re.IGNORECASE,
)
_SEPARATORS = re.compile(r"[,;|·•]| (?:and|und|et|y|e|en|i) |\s[–—-]\s")
# What names a document: an address, a file, a number in brackets, a page, a note's mark.
_NAME = re.compile(
    r"https?://\S+|www\.\S+|!?\[[^\]]{0,200}\]\([^)]{0,500}\)|\S*\w\.[a-zA-Z]\w{1,4}(?![\w.])"
    rf"|\[\^?[\w.-]{{1,40}}\]:?|{WIDE_MARK}|<[^<>\s]{{0,200}}[./:@][^<>\s]{{1,200}}>"
    r"|\b(?:document|doc|chunk|passage|source|page|pages|pp?|section|sections|sec|chapter|seiten?|"
    r"s|abschnitt|kapitel|p[áa]g(?:ina)?s?|secci[óo]n|no|nr|n)\b\.?\s*#?\d[\w.–-]*"
    r"|§+\s*\d[\w.–-]*",
    re.IGNORECASE,
)
_MOST_NAMED = 3  # words of a document's name without any of these
_LINE_WORDS = 4  # words from which a line is a claim whatever its verb


def names_document(text: str, *, bare: int = _MOST_NAMED) -> bool:
    """True if a text consists of document names: files, addresses, pages, or a few words.

    Args:
        text: Names, with commas between them.
        bare: Most words of a name that is not a file, an address or a page.
    """
    for item in _SEPARATORS.split(_NAME.sub(" ", text)):
        words = _WORD.findall(item)
        if len(words) > bare or not _VERBS.isdisjoint(map(str.lower, words)):
            return False
    return True


def _sources(text: str) -> Iterator[Span]:
    """Find lists of sources: a label with names after it, or with lines of names below."""
    lines = [line for line in _LINE.finditer(text) if line[1].strip()]
    at = 0
    while at < len(lines):
        label = _SOURCE_LABEL.fullmatch(lines[at][1])
        if label is None or not names_document(label["names"] or ""):
            at += 1
            continue
        first, at = at, at + 1
        if not (label["names"] or "").strip(" *_"):
            while at < len(lines) and _is_item_of_sources(lines[at][1]):
                at += 1
            if at == first + 1 and not label["colon"]:
                continue  # a title like any other
        yield Span(lines[first].start(), lines[at - 1].end(1))


def _surroundings(answer: str) -> list[tuple[SkippedKind, Span]]:
    """Parts around the prose, in order: sources, a stated confidence, tags and labels."""
    found: list[tuple[SkippedKind, Span]] = [("sources", span) for span in _sources(answer)]
    if ":" in answer or "=" in answer:
        for line in _LINE.finditer(answer):
            if _CONFIDENCE.fullmatch(line[1]):
                found.append(("confidence", Span(line.start(), line.end(1))))
            elif label := _LABEL.match(line[1]):
                found.append(("markup", Span(line.start(), line.start() + label.end())))
    # Most answers have neither: searching for the character first is far faster.
    for character, pattern in (("<", _SUPERSCRIPT), ("<", _TAG), ("[", _NUMBERED)):
        if character in answer:
            found += [("markup", Span(*mark.span())) for mark in pattern.finditer(answer)]
    for image in _IMAGE.finditer(answer) if "<" in answer else ():
        start, end = image.span("text") if image["text"] else (image.end(), image.end())
        found += [("markup", Span(image.start(), start)), ("markup", Span(end, image.end()))]
    found.sort(key=lambda each: (each[1].start, -each[1].end))
    kept: list[tuple[SkippedKind, Span]] = []
    for kind, span in found:
        if not kept or span.start >= kept[-1][1].end:
            kept.append((kind, span))
    return kept


def _is_item_of_sources(line: str) -> bool:
    return _NAME.search(line) is not None and names_document(_MARKER.sub("", line, count=1))


# The claims in it.

_URL = re.compile(r"https?://\S+|www\.\S+")
# Its groups are what a reader sees: the text, and the title on hovering.
_LINK = re.compile(r"!?\[([^\]]{0,200})\]\([^)\"]{0,500}(?:\"([^)\"]{0,200})\"\s*)?\)")
_CITATION = re.compile(rf"\[\^?\w{{1,20}}(?:[,;–-]\s?\w{{1,20}}){{0,9}}\]|{WIDE_MARK}")
_WORD = re.compile(r"\w+(?:['’]\w+)?")
_POINTERS = frozenset(
    ["read more", *"see source more link visit siehe quelle voir ver fuente".split()]
)
_SOURCES = frozenset(
    "source sources reference references citation citations quelle quellen référence références "
    "fuente fuentes".split()
)
# Verbs that make a title an assertion: "Refunds are free", unlike "Our refund policy".
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
_ASKS = re.compile(r"[?？]")
_ASKING = frozenset(
    "how what when why where who whom which whose wie was wann warum wo wer welche comment quand "
    "pourquoi où qui quel quelle cómo cuándo dónde quién qué cuál come quando perché dove chi "
    "quale como onde quem hoe wat wanneer waarom waar".split()
)
_ITEM = re.compile(r"\d{1,2}[.)]\s+(?=[^\W\d_])")
_SAYS = re.compile(r"[^\W_]")
_LONGEST_READ = 10_000  # characters; a longer sentence is a claim
_LEADS_IN = re.compile(r"[:：]\W*$")
_WRAPPED = re.compile(r"(\*\*|__|\*|_|\"|“)(?P<inside>[^*_\"“”]+)(?:\1|”)", re.DOTALL)


@lru_cache(maxsize=32)  # the claim check reads an answer, and the embedded judge reads it again
def read_answer(answer: str) -> AnswerParts:
    """Find the claims of an answer, and what is skipped."""
    claims: list[Span] = []
    skipped: list[SkippedPart] = []

    def skip(kind: SkippedKind, start: int, end: int) -> None:
        if _SAYS.search(answer, start, end):
            skipped.append(SkippedPart(start, end, kind))

    pieces, at = list[str](), 0
    for kind, (start, end) in _surroundings(answer):
        skip(kind, start, end)
        pieces += [answer[at:start], _NOT_BREAK.sub(" ", answer[start:end])]
        at = end
    text = "".join([*pieces, answer[at:]])
    language = detect_language(text)
    for block in _blocks(text, skip):
        start, end = block.span
        said = text[start:end]
        if block.is_title and not _asserts(said):
            skip("title", start, end)
            continue
        whole = [Span(0, len(said))]
        for sentence in whole if block.is_row else split_sentences(said, language=language):
            first, last = start + sentence.start, start + sentence.end
            # "2. Paris grew." in a list. German writes ordinals so: "3. Oktober 1990".
            if language != "de" and (number := _ITEM.match(text, first, last)):
                first = number.end()
            reason = _kind(text[first:last]) if last - first <= _LONGEST_READ else None
            if reason is not None:
                skip(reason, first, last)
                continue
            wrapped = _WRAPPED.fullmatch(text, first, last)
            claims.append(Span(*wrapped.span("inside")) if wrapped else Span(first, last))
    return AnswerParts(claims, sorted(skipped))


def without(answer: str, skipped: Iterable[SkippedPart]) -> str:
    """An answer without some of its parts, and without the blanks that they leave."""
    pieces, at = list[str](), 0
    for start, end, _ in skipped:
        pieces.append(answer[at:start])
        at = end
    return "".join([*pieces, answer[at:]]).strip() if pieces else answer


def find_claims(answer: str) -> Sequence[Span]:
    """Non-empty ranges of an answer's claims, in order."""
    return read_answer(answer).claims


_MOST_BRIEF = 5  # words of an answer without a verb: "Within five working days"
_LONGEST_QUESTION = 300  # characters
_COUNT_ASKED = re.compile(
    r"\b(?:how many|wie ?viele|combien de|cuánt[oa]s|quant[ie]|quant[oa]s|hoeveel)\s+(\w+)",
    re.IGNORECASE,
)
_COUNT = re.compile(r"\W*(?:about |around |over |at least |up to )?[\d.,  ]*\d\W*", re.IGNORECASE)


def brief_claim(question: str, answer: str) -> str:
    """The statement that a question and an answer of a few words make; empty for other answers.

    "Oslo" asserts nothing; "What is the capital of Norway? Oslo" does. The question is the last
    sentence of what the user wrote.
    """
    said = answer.strip().strip('*_"“”')
    words = _WORD.findall(said.lower().replace("’", "'"))
    if not words or len(words) > _MOST_BRIEF or _ASKS.search(said):
        return ""
    if len(words) >= _LINE_WORDS and said.endswith("."):  # a sentence with a verb of its own
        return ""
    is_reply = YES_OR_NO.issuperset(words)
    asked = [question[start:end] for start, end in split_sentences(question)]
    if not asked or len(asked[-1]) > _LONGEST_QUESTION or asked[-1].endswith((".", "!")):
        return ""
    if not is_reply and (len(find_claims(said)) != 1 or not _VERBS.isdisjoint(words)):
        return ""
    if _COUNT.fullmatch(said) and (counted := _COUNT_ASKED.search(asked[-1])):
        said = f"{said.rstrip(' .')} {counted[1]}"
    return f"{asked[-1].strip().rstrip(' .?？:')}? {said}"


def asserts_nothing(answer: str) -> bool:
    """True if an answer has no claim, yes or no, code, title or lead-in."""
    parts = read_answer(unicodedata.normalize("NFKC", answer))
    if not parts.skipped:  # signs alone, such as a thumb that points up
        return not answer.strip()
    kinds = {part.kind for part in parts.skipped}
    return not parts.claims and kinds <= SAYS_NOTHING - {"reply"}


def _kind(sentence: str) -> SkippedKind | None:
    """Kind of a sentence that makes no claim; None if it makes one."""
    around = _CITATION.sub("", _URL.sub("", _LINK.sub("", sentence))).lower()
    words = " ".join(_WORD.findall(around))
    linked = [text for link in _LINK.findall(sentence) for text in link if text]
    if not words or words in _SOURCES or (words in _POINTERS and (linked or _URL.search(sentence))):
        return None if any(map(_asserts, linked)) else "sources"
    if not _SAYS.search(around):
        return "markup"
    if _LEADS_IN.search(sentence[-8:]) and is_lead_in(sentence):
        return "lead_in"
    if _CONFIDENCE.fullmatch(sentence):
        return "confidence"
    if is_disclaimer(sentence):
        return "disclaimer"
    kind = sentence_kind(sentence)
    return None if kind == "statement" else kind


def _asserts(title: str) -> bool:
    """True if a heading, a footnote or a link's text asserts something, beyond naming a topic."""
    text = _CITATION.sub("", _URL.sub("", _LINK.sub(r"\1", title)))
    words = _WORD.findall(text.lower().replace("’", "'"))
    if not words or words[0] in _ASKING or sentence_kind(text) == "question":
        return False
    ends = text.rstrip(" *_\"'”’)").endswith((".", "!", "。", "！", "।"))
    is_line = len(words) >= _LINE_WORDS
    return (ends and len(words) > 1) or is_line or not _VERBS.isdisjoint(words)
