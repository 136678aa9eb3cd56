"""Finds verdicts in what a judge wrote as text.

    Final verdict for each statement in order: Yes. No.
    1. Yes - the context says so.          Statement 2: Grass is red. Verdict: No
    **3)** NOT SUPPORTED: ...              | 4 | The sky is blue. | Yes |

A word decides only where a verdict is expected: at the beginning of what is said, and followed by
what can follow a verdict. "Yesterday" begins with no yes, "no contradiction" with no no. Words are
English: what is not recognised is asked for again, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from ragaliq.core.results import Verdict
from ragaliq.judges.parsing.rows import Group, ReplyRow

# --- Words ----------------------------------------------------------------------------------------

_TICKS = "[✅✔✓☑]\ufe0f?"
_CROSSES = "[❌✗✘✖]\ufe0f?"
_YES = "yes yeah yep true correct"
_NO = (
    "no nope false incorrect unknown unclear undetermined unverifiable neutral baseless partial "
    "partially"
)
_BECAUSE = (
    "because since as it its the this that these they he she there according based per chunk "
    "context"
)
# What may follow "supported" where it is a verdict; "supported formats" is none.
_SUPPORTED_BY = (
    "by in from with through via but and at on directly explicitly fully clearly entirely"
)

# In phrases one space stands for any short gap, and \w+ for a word.
_SURELY = r"(?:(?:fully|directly|clearly|explicitly|strongly|well|completely|entirely) )?"
_HELD = (
    r"supported|entailed|grounded|attributable|verified|confirmed|faithful|substantiated|inferred|"
    r"inferable"
)
_FOUND = r"verifiable|stated|mentioned|found|covered|present|given|true|correct|implied"
_PARTLY = r"(?:only )?(?:partially|partly|mostly|largely|somewhat)"
_SUPPORTED = (
    rf"{_SURELY}(?:{_HELD})",
    r"supports|entails|entailment",
    r"can be (?:\w+ )?(?:inferred|supported|verified|confirmed|deduced)",
)
_NOT_ENOUGH_INFO = (
    rf"(?:un|non )(?:{_HELD})",
    rf"(?:not|isn['’]?t|wasn['’]?t) (?:\w+ )?(?:{_HELD}|{_FOUND})",
    r"(?:does|do|did)(?: not|n['’]?t) (?:\w+ )?(?:support|entail|mention|state)",
    rf"can(?: not|not|['’]?t) be (?:\w+ )?(?:{_HELD}|determined|deduced)",
    r"(?:not enough|insufficient) (?:info|information|evidence|context)",
    r"no (?:\w+ )?(?:evidence|mention|information|support|basis)",
    r"neither supported nor contradicted",
    rf"{_PARTLY} (?:{_HELD}|{_FOUND}|accurate)|partial support",
)
_CONTRADICTED = (
    r"(?:(?:directly|clearly|explicitly) )?(?:contradicted|refuted|disproved|disproven)",
    r"contradicts|contradiction|contradictory|refutes|conflicts",
)
# Said often and settling nothing: a claim that nobody contradicts may still have no support.
_UNSETTLED = (
    r"(?:no|not|never|without) (?:\w+ )?(?:contradict|refut|conflict|disprove)\w{0,6}",
    r"yes and no|n/?a|maybe|possibly|perhaps",
)


class Said(NamedTuple):
    """A verdict at the beginning of a text (None for words that settle nothing), and its end."""

    verdict: Verdict | None
    end: int


def _any(words: str) -> str:
    return "|".join(re.escape(word) for word in sorted(words.split(), key=len, reverse=True))


def _phrases(patterns: Sequence[str]) -> str:
    # Gaps of any kind, so that _NOT_ENOUGH_INFO and not-supported are recognised too.
    return "|".join(patterns).replace(r"\w+", r"[^\W_]{1,20}").replace(" ", r"[ \t\xa0_-]{1,2}")


# What can stand after a verdict. "No" may begin a sentence that says something else, such as "No
# contradiction was found", and "supported" may be an adjective.
_ENDS = (
    r"\s*+\Z|[^\S\n]*+[.,;:!?…)\]}|*_`\"”’»。、，；：！？）」』\n]|'(?!\w)|\s++[-–—=→(|]|[–—→=]|"
    r"\s++[(\[#]?\d{1,4}[.)\]:]"
)
_AFTER_WORD = (
    rf"(?={_ENDS}|\s++(?:{_any(_BECAUSE)})\b|\s++(?:{_any(_YES + ' ' + _NO)})(?=\Z|\s|[.,;]))(?!\?)"
)
_AFTER_SUPPORTED = rf"(?={_ENDS}|\s++(?:{_any(_BECAUSE + ' ' + _SUPPORTED_BY)})\b)(?![|]\w)"
_AFTER_PHRASE = r"(?![\w/]|['’|-]\w)"
_AFTER_DIGIT = r"(?=[^\S\n]*+(?:\n|\Z)|[:;)\]|*_`\"”,]|\s++[-–—=→(|:]|\.(?!\d))(?!,\d)"
_MARKUP = re.compile(r"[\s*_`~\"'“”‘’«»「『>#(\[{=:：|-]{0,40}+")
_LEAD = (
    r"(?:(?:so|therefore|hence|thus),? )?(?:(?:the |this |that )?"
    r"(?:statement|claim|assertion|sentence|fact|it)(?: \d{1,4})? "
    r"(?:(?:is|was|are|has been|appears to be|seems to be|is judged|is considered) )?|"
    r"is |it's )?"
)


_WORDS = re.compile(
    rf"(?P<unsettled>(?:{_phrases(_UNSETTLED)})(?!\w))|"
    rf"(?:{_phrases([_LEAD])})(?:"
    rf"(?P<supported>(?:{_phrases(_SUPPORTED)}){_AFTER_SUPPORTED})|"
    rf"(?P<contradicted>(?:{_phrases(_CONTRADICTED)}){_AFTER_PHRASE})|"
    rf"(?P<lacking>(?:{_phrases(_NOT_ENOUGH_INFO)}){_AFTER_PHRASE})|"
    rf"(?P<yes>(?:{_any(_YES)}){_AFTER_WORD})|"
    rf"(?P<no>(?:{_any(_NO)}){_AFTER_WORD}))|"
    rf"(?P<tick>{_TICKS})|(?P<cross>{_CROSSES})|"
    rf"(?<![-.\d])(?:(?P<one>1)|(?P<zero>0)){_AFTER_DIGIT}",
    re.IGNORECASE,
)
_MEANINGS: dict[str, Verdict | None] = {
    "supported": "SUPPORTED",
    "yes": "SUPPORTED",
    "tick": "SUPPORTED",
    "one": "SUPPORTED",
    "contradicted": "CONTRADICTED",
    "lacking": "NOT_ENOUGH_INFO",
    "no": "NOT_ENOUGH_INFO",
    "cross": "NOT_ENOUGH_INFO",
    "zero": "NOT_ENOUGH_INFO",
    "unsettled": None,
}
_PHRASES = ("supported", "contradicted", "lacking")
# A template repeated instead of filled in: "SUPPORTED | CONTRADICTED", "yes or no".
_ALTERNATIVE = re.compile(r"[\"'*`]*+\s*+(?:[/|]|or\b)\s*+[\"'*`]*+", re.IGNORECASE)
_MOST_ALTERNATIVES = 5
_ASKED = re.compile(r"[*_`\"']*+\s*+([:?：？])\s*+[*_`\"']*+")
_AFTERWARDS = re.compile(r"[\s*_`~\"'”’»」』)\]}|.。!！]*+")


def leading_verdict(text: str, start: int = 0) -> Said | None:
    """The verdict a text begins with, past markup and quotation marks; None without one."""
    match = _match(text, start)
    if match is None:
        return None
    if match.lastgroup in ("tick", "cross"):  # a word next to it says more
        match = _match(text, match.end()) or match
    kind, end = match.lastgroup or "", match.end()
    verdict = _MEANINGS[kind]
    others = _others_end(text, end)
    if others > end:
        return Said(None, others)
    if kind in _PHRASES and (asked := _ASKED.match(text, end)) is not None:
        return _answered(text, verdict, asked)
    return Said(verdict, end)


def _others_end(text: str, end: int) -> int:
    """The position after the alternatives that a verdict is only one of."""
    for _ in range(_MOST_ALTERNATIVES):
        other = _ALTERNATIVE.match(text, end)
        word = _WORDS.match(text, other.end()) if other else None
        if word is None:
            break
        end = word.end()
    return end


def _match(text: str, start: int) -> re.Match[str] | None:
    markup = _MARKUP.match(text, start)
    return _WORDS.match(text, markup.end() if markup else start)


def whole_verdict(text: str) -> Said | None:
    """The verdict a text consists of, or None when it says anything else."""
    said = leading_verdict(text)
    if said is None or _AFTERWARDS.fullmatch(text, said.end) is None:
        return None
    return said


def _answered(text: str, verdict: Verdict | None, asked: re.Match[str]) -> Said | None:
    # "Supported: no", "Contradicted? Yes": the phrase asks, and what follows is the verdict.
    answer = _WORDS.match(text, asked.end())
    kind = answer.lastgroup if answer else None
    if answer is None or kind not in ("yes", "no", "one", "zero"):
        is_question = asked[1] in "?？"
        return Said(None if is_question else verdict, asked.start())
    if kind in ("yes", "one"):
        return Said(verdict, answer.end())
    return Said("NOT_ENOUGH_INFO" if verdict == "SUPPORTED" else None, answer.end())


# --- Labels: Verdict: yes -------------------------------------------------------------------------

_NAMES = "verdict|answer|label|judge?ment|conclusion|decision|result|supported|faithful"
_LABEL_TEXT = rf"""(?P<final>final\s)?(?P<label>{_NAMES})
    (?:[^\S\n]{{1,2}}\([^()\n]{{0,40}}\))?[*_`]{{0,3}}+
    (?:\s{{0,2}}+[:：=?]|[^\S\n]{{1,2}}is:?(?=\s))[*_`]{{0,3}}+"""
_FLAGS = re.IGNORECASE | re.VERBOSE | re.MULTILINE
_LABEL = re.compile(rf"(?<![\w\"'])(?<!overall\s){_LABEL_TEXT}", _FLAGS)
_LINE_LABEL = re.compile(
    rf"^[^\S\n]{{0,24}}+[-*_>#•]{{0,4}}+[^\S\n]{{0,3}}+[*_]{{0,3}}+{_LABEL_TEXT}", _FLAGS
)


class Label(NamedTuple):
    """Where a label begins, and the verdict behind it."""

    start: int
    said: Said


def labelled_group(text: str) -> Group:
    """What follows "Verdict:" in order, or another label where the last verdict has another."""
    found = [(match, leading_verdict(text, match.end())) for match in _LABEL.finditer(text)]
    names = [match["label"].casefold() for match, said in found if said is not None]
    return [
        ReplyRow(verdict=said.verdict if said else None, whole=said is not None)
        for match, said in found
        if names and match["label"].casefold() == names[-1]
    ]


def label_in(body: str, *, own_line: bool) -> Label | None:
    """The last labelled verdict of an item; with `own_line` only labels that begin a line count.

    It settles nothing where an earlier one differs, unless it is called final: the item may have
    run into the next one.
    """
    pattern = _LINE_LABEL if own_line else _LABEL
    found = [(match, leading_verdict(body, match.end())) for match in pattern.finditer(body)]
    decisive = [(match, said) for match, said in found if said is not None]
    if not decisive:
        return None
    last, said = decisive[-1]
    name = last["label"].casefold()
    verdicts = {said.verdict for _, said in decisive}
    unreadable = any(other is None and match["label"].casefold() == name for match, other in found)
    if (len(verdicts) > 1 or unreadable) and not last["final"]:
        said = Said(None, said.end)
    return Label(last.start(), said)


# --- Sequences: Yes. No. Yes. ---------------------------------------------------------------------

_ANNOUNCED = re.compile(
    r"\bfinal\s{1,2}verdicts?\s{1,2}for\s{1,2}(?:each|every|all|the)\b[^\n:：.]{0,60}[:：]|"
    r"\bfinal\s{1,2}verdicts?\s{1,2}for\s{1,2}each\s{1,2}statement\s{1,2}in\s{1,2}order\b|"
    r"\b(?:verdicts|answers)[*_]{0,3}\s{0,2}[:：]",
    re.IGNORECASE,
)
_SEPARATORS = re.compile(r"[\s.,;:!|*_`>#(){}\[\]\"'“”、。，；：•–—-]++")
_NUMBER = re.compile(
    r"(?P<named>(?:statement|claim|s|c)[\s#]{0,2}+)?(?P<number>\d{1,4}+)(?![\d%/])(?!\.\d)",
    re.IGNORECASE,
)
_ONE_DIGIT = re.compile(r"[\s*`\"']*+\d[\s*`\"']*+")
_OTHER = re.compile(r"[^.,;:\n|、。，；：]++")
_LONGEST = 3  # words; more than that is a sentence, and the verdicts are over


class _Piece(NamedTuple):
    """A number, a verdict (None where it settles nothing), or words that are no verdict."""

    kind: Literal["number", "digit", "verdict", "words"]
    verdict: Verdict | None = None
    number: int | None = None


def announced_group(text: str) -> Group:
    """What follows "Final verdict for each statement in order:"; the last one that has verdicts."""
    end = len(text)
    for marker in reversed(list(_ANNOUNCED.finditer(text))):
        pieces, _ = _pieces(text[marker.end() : end])
        if rows := _rows(pieces):
            return rows
        end = marker.start()
    return []


def bare_group(text: str, expected: int) -> Group:
    """The verdicts of a reply that consists of nothing else."""
    pieces, complete = _pieces(text)
    kinds = {piece.kind for piece in pieces}
    if not complete or "words" in kinds:
        return []
    rows = _rows(pieces)
    # A single "Yes." for several statements does not say for which; "1 2" may be anything.
    if len(rows) < min(expected, 2) or ("verdict" not in kinds and len(rows) != expected):
        return []
    # "1." begins a list that did not come.
    return rows if len(rows) > 1 or "verdict" in kinds or _ONE_DIGIT.fullmatch(text) else []


def _pieces(text: str) -> tuple[list[_Piece], bool]:
    """The pieces of a sequence, and whether it goes on to the end of the text."""
    pieces: list[_Piece] = []
    at = 0
    while True:
        if (gap := _SEPARATORS.match(text, at)) is not None:
            at = gap.end()
        if at == len(text):
            return pieces, True
        if (number := _NUMBER.match(text, at)) is not None:
            kind: Literal["number", "digit"] = "number" if number["named"] else "digit"
            pieces.append(_Piece(kind, number=int(number["number"])))
            at = number.end()
        elif (said := leading_verdict(text, at)) is not None:
            pieces.append(_Piece("verdict", verdict=said.verdict))
            at = said.end
        else:
            other = _OTHER.match(text, at)
            words = other.group().split() if other else []
            if other is None or len(words) > _LONGEST:
                return pieces, False
            pieces.append(_Piece("words"))
            at = other.end()


def _rows(pieces: list[_Piece]) -> list[ReplyRow]:
    if not any(piece.verdict for piece in pieces):
        digits = [piece.number for piece in pieces if piece.kind == "digit"]
        if len(digits) < len(pieces) or not set(digits) <= {0, 1}:
            return []
        return [ReplyRow(verdict="SUPPORTED" if digit else "NOT_ENOUGH_INFO") for digit in digits]
    rows, number = [], None
    for piece in pieces:
        if piece.number is not None:
            number = piece.number
        else:
            rows.append(
                ReplyRow(verdict=piece.verdict, number=number, whole=piece.kind == "verdict")
            )
            number = None
    if any(row.number is not None for row in rows):  # what has no number then only explains
        rows = [row for row in rows if row.number is not None]
    while rows and rows[-1].verdict is None:  # words after the last verdict
        rows.pop()
    return rows


# --- Lists ----------------------------------------------------------------------------------------

_NOUNS = "statement|claim|sentence|assertion|verdict|item|answer"
_MARKER = re.compile(
    rf"""^(?P<indent>[^\S\n]{{0,24}}+)(?:[-+•>*|#_]{{1,6}}+[^\S\n]{{0,3}}+)?[*_]{{0,3}}+
    (?:
      (?:{_NOUNS})[^\S\n]{{0,3}}+(?:no\.?|nr\.?|\#)?[^\S\n]{{0,2}}+[(\[]?(?P<named>\d{{1,4}}+)
        (?=[\s.):\]*_、．）：|–—-])
      | [(\[\#]{{0,2}}+[cs]?(?P<bare>\d{{1,4}}+)
        (?:[)\].:、．）：*_]{{1,4}}+(?!\d)|[^\S\n]{{1,3}}+[-–—:|])
    )[)\]*_.:、．）：]{{0,5}}+""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_LINE_NUMBER = re.compile(r"[\W_]*+\d")
_CUT = re.compile(r"[^\S\n][-–—][^\S\n]|→|=>|->|[|]|[:：](?=\s)|[.!?](?=\s)|[。！？]|[(（]")
_REASON = re.compile(
    r"[\s\-–—:.,;|*_()→=>，。：；]*+(?:(?:because|reason(?:ing)?:?)\s)?", re.IGNORECASE
)
_MOST_CUTS = 40  # parts of an item that are looked at from its beginning


class _Item(NamedTuple):
    number: int
    body: str


def numbered_groups(text: str) -> list[Group]:
    """The numbered lists of a text; a number that was there before begins another list."""
    groups: list[list[ReplyRow]] = []
    seen: set[int] = set()
    items = list(_items(text))
    all_labelled = all(label_in(item.body, own_line=True) for item in items)
    for item in items:
        if not groups or item.number in seen:
            groups.append([])
            seen = set()
        groups[-1].append(replace(_row(item.body, labelled=all_labelled), number=item.number))
        seen.add(item.number)
    return list(groups)


def line_group(text: str, expected: int) -> Group:
    """Lines that begin with a verdict, bulleted or not, where it is clear which ones they are."""
    lines = [line for line in text.splitlines() if line.strip()]
    while lines and lines[0].rstrip(" *_").endswith((":", "：")) and not _starts(lines[0]):
        del lines[0]
    if expected == 1:  # what follows the first line only explains it
        return [_row(lines[0])] if lines and _starts(lines[0]) else []
    rows = [_row(line) for line in lines if _starts(line)]
    return rows if len(rows) == expected or len(rows) == len(lines) > 1 else []


def _starts(line: str) -> Said | None:
    if _LINE_NUMBER.match(line):  # it is no verdict
        return None
    return leading_verdict(line)


def _items(text: str) -> Iterator[_Item]:
    markers = list(_MARKER.finditer(text))
    if not markers:
        return
    # A list inside an item is indented deeper and belongs to it.
    outer = len(markers[0]["indent"]) + 1
    markers = [marker for marker in markers if len(marker["indent"]) <= outer]
    ends = [marker.start() for marker in markers[1:]] + [len(text)]
    for marker, end in zip(markers, ends, strict=True):
        yield _Item(int(marker["named"] or marker["bare"]), text[marker.end() : end])


def _row(body: str, *, labelled: bool = False) -> ReplyRow:
    """The verdict of one item: where it is labelled, at its beginning, or after the statement."""
    # Where all items have a label, what one begins with is its statement.
    first = None if labelled else leading_verdict(body)
    # Within the reason for a verdict "the answer: ..." is no label; on a line of its own it is.
    label = label_in(body, own_line=labelled or first is not None)
    if label is not None and (first is None or first.verdict == label.said.verdict):
        statement = _trimmed(body[: label.start])
        return ReplyRow(
            verdict=label.said.verdict, statement=statement, reason=_rest(body, label.said)
        )
    if first is not None:
        agreed = label is None and _agrees(body, first)
        return ReplyRow(verdict=first.verdict if agreed else None, reason=_rest(body, first))
    return _later(body)


def _agrees(body: str, first: Said) -> bool:
    """Whether an item does not end in another verdict: "Yes, the sky is blue. - No"."""
    line = body.strip().partition("\n")[0]
    cuts = _CUT.finditer(line.rstrip(" .*_)"))
    cut = max((match.end() for match in cuts if match.group() not in ":："), default=0)
    said = whole_verdict(line[cut:]) if cut else None
    return said is None or said.verdict == first.verdict


def _later(body: str) -> ReplyRow:
    """The verdict that follows the statement: "The sky is blue. - Yes, it is"."""
    line, _, below = body.strip().partition("\n")
    for number, match in enumerate(_CUT.finditer(line)):
        if number == _MOST_CUTS:
            break
        is_sentence = match.group() in ".!?。！？:："
        said = leading_verdict(line, match.end())
        if said is None or (is_sentence and whole_verdict(line[match.end() :]) is None):
            continue
        statement = _trimmed(line[: match.start() + is_sentence])
        return ReplyRow(verdict=said.verdict, statement=statement, reason=_rest(line, said))
    if below and (said := leading_verdict(below)) is not None:
        return ReplyRow(verdict=said.verdict, statement=_trimmed(line), reason=_rest(below, said))
    return ReplyRow(verdict=None)


def _rest(text: str, said: Said) -> str:
    link = _REASON.match(text, said.end)
    return text[link.end() if link else said.end :].strip().removesuffix("|").rstrip("*_ )")


def _trimmed(text: str) -> str:
    return text.strip().strip("*_|:-–—→ \t\n").strip()
