"""Finds verdicts behind a label, as in `Verdict: yes`."""

from __future__ import annotations

import re
from typing import NamedTuple

from ragaliq.judges.parsing.rows import Group, Row
from ragaliq.judges.parsing.words import Said, leading_verdict

__all__ = ["Label", "label_in", "labelled_group"]

_NAMES = (
    "verdict|answer|label|judge?ment|conclusion|decision|result|supported|faithful|urteil|ergebnis|"
    "fazit|bewertung|conclusión|résultat|veredicto|verdetto|conclusione|veredito|conclusão|oordeel|"
    "conclusie|werdykt|вердикт|вывод|ответ|结论|結論|判断|判斷|判定|裁定|판정|결론"
)
_LABEL_TEXT = rf"""(?P<final>final\s)?(?P<label>{_NAMES})
    (?:[^\S\n]{{1,2}}\([^()\n]{{0,40}}\))?[*_`]{{0,3}}+
    (?:\s{{0,2}}+[:：=?]|[^\S\n]{{1,2}}is:?(?=\s))[*_`]{{0,3}}+"""
_FLAGS = re.IGNORECASE | re.VERBOSE | re.MULTILINE
_LABEL = re.compile(rf"(?<![\w\"'])(?<!overall\s){_LABEL_TEXT}", _FLAGS)
_LINE_LABEL = re.compile(
    rf"^[^\S\n]{{0,24}}+[-*_>#•]{{0,4}}+[^\S\n]{{0,3}}+[*_]{{0,3}}+{_LABEL_TEXT}", _FLAGS
)


class Label(NamedTuple):
    """A label and the verdict behind it.

    Attributes:
        start: Where the label begins.
        said: The verdict.
    """

    start: int
    said: Said


def labelled_group(text: str) -> Group:
    """What follows "Verdict:" in order, or another label where the last verdict has another."""
    found = [(match, leading_verdict(text, match.end())) for match in _LABEL.finditer(text)]
    names = [match["label"].casefold() for match, said in found if said is not None]
    return [
        Row(verdict=said.verdict if said else None, whole=said is not None)
        for match, said in found
        if names and match["label"].casefold() == names[-1]
    ]


def label_in(body: str, *, own_line: bool) -> Label | None:
    """The last labelled verdict of an item.

    It settles nothing where an earlier one differs, unless it is called final: the item may have
    run into the next one.

    Args:
        body: What an item of a list says.
        own_line: Whether only labels at the beginning of a line count.
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
