"""Finds verdicts in lists that were written as text.

1. Yes - the context says so.          Statement 2: Grass is red. Verdict: No
**3)** NOT SUPPORTED: ...              | 4 | The sky is blue. | Yes |
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from ragaliq.judges.parsing.labels import label_in
from ragaliq.judges.parsing.rows import Group, Row
from ragaliq.judges.parsing.words import Said, leading_verdict, whole_verdict

__all__ = ["line_group", "numbered_groups"]

_NOUNS = (
    "statement|claim|sentence|assertion|verdict|item|answer|aussage|behauptung|énoncé|affirmation|"
    "declaración|afirmación|enunciado|dichiarazione|affermazione|declaração|afirmação|stelling|"
    "uitspraak|stwierdzenie|утверждение|陈述|陳述|声明|聲明|主張|文|진술|주장"
)
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
    groups: list[list[Row]] = []
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


def _row(body: str, *, labelled: bool = False) -> Row:
    """The verdict of one item: where it is labelled, at its beginning, or after the statement.

    Args:
        body: What the item says.
        labelled: Whether all items have a label; what one begins with is then its statement.
    """
    first = None if labelled else leading_verdict(body)
    # Within the reason for a verdict "the answer: ..." is no label; on a line of its own it is.
    label = label_in(body, own_line=labelled or first is not None)
    if label is not None and (first is None or first.verdict == label.said.verdict):
        statement = _trimmed(body[: label.start])
        return Row(verdict=label.said.verdict, statement=statement, reason=_rest(body, label.said))
    if first is not None:
        agreed = label is None and _agrees(body, first)
        return Row(verdict=first.verdict if agreed else None, reason=_rest(body, first))
    return _later(body)


def _agrees(body: str, first: Said) -> bool:
    """Whether an item does not end in another verdict: "Yes, the sky is blue. - No"."""
    line = body.strip().partition("\n")[0]
    cuts = _CUT.finditer(line.rstrip(" .*_)"))
    cut = max((match.end() for match in cuts if match.group() not in ":："), default=0)
    said = whole_verdict(line[cut:]) if cut else None
    return said is None or said.verdict == first.verdict


def _later(body: str) -> Row:
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
        return Row(verdict=said.verdict, statement=statement, reason=_rest(line, said))
    if below and (said := leading_verdict(below)) is not None:
        return Row(verdict=said.verdict, statement=_trimmed(line), reason=_rest(below, said))
    return Row(verdict=None)


def _rest(text: str, said: Said) -> str:
    link = _REASON.match(text, said.end)
    return text[link.end() if link else said.end :].strip().removesuffix("|").rstrip("*_ )")


def _trimmed(text: str) -> str:
    return text.strip().strip("*_|:-–—→ \t\n").strip()
