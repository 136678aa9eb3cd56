"""Recognises a verdict in words.

A word decides only where a verdict is expected: at the beginning of what is said, and followed by
what can follow a verdict. "Yesterday" begins with no yes, "no contradiction" with no no.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ragaliq.core.results import Verdict
from ragaliq.judges.parsing.vocabulary import (
    BECAUSE,
    CONTRADICTED,
    CROSSES,
    NO,
    NOT_ENOUGH_INFO,
    SUPPORTED,
    SUPPORTED_BY,
    TICKS,
    UNSETTLED,
    YES,
)

__all__ = ["Said", "leading_verdict", "whole_verdict"]


class Said(NamedTuple):
    """A verdict found at the beginning of a text.

    Attributes:
        verdict: The verdict; None where words were said that settle nothing.
        end: The position after the words.
    """

    verdict: Verdict | None
    end: int


def _any(words: str) -> str:
    return "|".join(re.escape(word) for word in sorted(words.split(), key=len, reverse=True))


def _phrases(patterns: Sequence[str]) -> str:
    # Gaps of any kind, so that NOT_ENOUGH_INFO and not-supported are recognised too.
    return "|".join(patterns).replace(r"\w+", r"[^\W_]{1,20}").replace(" ", r"[ \t\xa0_-]{1,2}")


# What can stand after a verdict. "No" may begin a sentence that says something else, such as "No
# contradiction was found", and "supported" may be an adjective.
_ENDS = (
    r"\s*+\Z|[^\S\n]*+[.,;:!?…)\]}|*_`\"”’»。、，；：！？）」』\n]|'(?!\w)|\s++[-–—=→(|]|[–—→=]|"
    r"\s++[(\[#]?\d{1,4}[.)\]:]"
)
_AFTER_WORD = (
    rf"(?={_ENDS}|\s++(?:{_any(BECAUSE)})\b|\s++(?:{_any(YES + ' ' + NO)})(?=\Z|\s|[.,;]))(?!\?)"
)
_AFTER_SUPPORTED = rf"(?={_ENDS}|\s++(?:{_any(BECAUSE + ' ' + SUPPORTED_BY)})\b)(?![|]\w)"
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
    rf"(?P<unsettled>(?:{_phrases(UNSETTLED)})(?!\w))|"
    rf"(?:{_phrases([_LEAD])})(?:"
    rf"(?P<supported>(?:{_phrases(SUPPORTED)}){_AFTER_SUPPORTED})|"
    rf"(?P<contradicted>(?:{_phrases(CONTRADICTED)}){_AFTER_PHRASE})|"
    rf"(?P<lacking>(?:{_phrases(NOT_ENOUGH_INFO)}){_AFTER_PHRASE})|"
    rf"(?P<yes>(?:{_any(YES)}){_AFTER_WORD})|"
    rf"(?P<no>(?:{_any(NO)}){_AFTER_WORD}))|"
    rf"(?P<tick>{TICKS})|(?P<cross>{CROSSES})|"
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
_ALTERNATIVE = re.compile(r"[\"'*`]*+\s*+(?:[/|]|or\b|oder\b|ou\b|或)\s*+[\"'*`]*+", re.IGNORECASE)
_MOST_ALTERNATIVES = 5
_ASKED = re.compile(r"[*_`\"']*+\s*+([:?：？])\s*+[*_`\"']*+")
_AFTERWARDS = re.compile(r"[\s*_`~\"'”’»」』)\]}|.。!！]*+")


def leading_verdict(text: str, start: int = 0) -> Said | None:
    """The verdict a text begins with, past markup and quotation marks; None without one."""
    match = _match(text, start)
    if match is None:
        return None
    if match.lastgroup in ("tick", "cross"):  # a word beside it says more
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
