"""The pieces of JSON, as models write them: single quotes, bare words, comments, Python literals.

Every pattern moves forward only and looks ahead a bounded distance, so that the time taken is
linear in the text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ragaliq.judges.parsing.json_types import JsonValue

__all__ = [
    "QUOTES",
    "Token",
    "blank_end",
    "opens_key",
    "plain_text",
    "read_bare",
    "read_key",
    "read_string",
]

QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "`": "`"}
"""Opening to closing quotation mark."""

_BLANK = re.compile(r"(?:\s++|//[^\n]*+|(?<!\S)\#\s[^\n]*+|/\*(?s:.*?)(?:\*/|\Z))++")
_BARE = re.compile(r"(?:(?!//|/\*|\s\#)[^\n,，\[\]{}\"“])++")
_BARE_KEY = re.compile(r"[^\s\"'“”‘’`{}\[\],，:：=]{1,64}+")
_COLON = re.compile(r"\s*+(?:[:：]|=>?)")
_NUMBER = re.compile(r"[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,9})?", re.ASCII)
_LITERALS: dict[str, JsonValue] = {
    "true": True,
    "false": False,
    "null": None,
    "none": None,
    "undefined": None,
}

_QUOTED_KEY = r"[\"'“‘`][^\n\"'“”‘’`{}\[\]:]{1,64}+[\"'”’`]\s*+[:：]"
_ENDS_KEYED_VALUE = re.compile(
    rf"\s*+(?:[}}\]]|\Z|//|/\*|[,，]\s*+(?:[}}\]]|\Z|//|/\*|[\w$-]{{1,64}}+\s*+[:：])"
    rf"|[,，]?\s*+{_QUOTED_KEY})"
)
_ENDS_LIST_ITEM = re.compile(r"\s*+(?:[,，\]}]|\Z|//|/\*)|[^\S\n]*+\n\s*+[\"'“‘`{]")
_OPENS_KEY = re.compile(_QUOTED_KEY)
_CLOSES_KEY = re.compile(r"[\"'”’`]\s*+[:：]\s*+(?:[\"'“\[{\d]|(?:true|false|null)\b)")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
_LONGEST_KEY = 400  # characters
_LAST_CHARACTER = 0x10FFFF
_SURROGATE = re.compile("[\ud800-\udfff]")


class Token(NamedTuple):
    """A value and where it ends.

    Attributes:
        value: What was read.
        end: The position after it.
        intact: False when the end had to be guessed.
    """

    value: JsonValue
    end: int
    intact: bool = True


def blank_end(text: str, start: int) -> int:
    """The position after white space and comments."""
    match = _BLANK.match(text, start)
    return match.end() if match else start


def read_string(text: str, start: int, *, in_list: bool) -> Token | None:
    """Read the quoted string at `start`; None when it does not end.

    Models often leave quotation marks inside a string as they are. So a mark ends the string only
    where something follows that can follow a value. A mark around a key instead shows that the
    string's own end is lost, or that the text quotes JSON: the string is then not intact.
    Nor is one that holds both such marks and a line break: it may reach into the next row.

    Args:
        text: The reply.
        start: Where the opening mark stands.
        in_list: Whether the string is an item of a list, not the value of a key.
    """
    closing = QUOTES[text[start]]
    ends = _ENDS_LIST_ITEM if in_list else _ENDS_KEYED_VALUE
    stops = _STOPS[closing]
    position = start + 1
    passed = False
    while (stop := stops.search(text, position)) is not None:
        at = stop.start()
        if text[at] == "\\":
            position = at + 2
        elif ends.match(text, at + 1):
            intact = not passed or text.find("\n", start, at) < 0
            return Token(_unescaped(text[start + 1 : at]), at + 1, intact=intact)
        elif _OPENS_KEY.match(text, at):
            return Token(_unescaped(text[start + 1 : at]), at, intact=False)
        elif _CLOSES_KEY.match(text, at):
            return Token(_unescaped(text[start + 1 : at]), at + 1, intact=False)
        else:
            position = at + 1
            passed = True
    return None


def opens_key(text: str, start: int) -> bool:
    """Whether a quoted key, with its colon, stands at `start`."""
    return _OPENS_KEY.match(text, start) is not None


def read_key(text: str, start: int) -> Token | None:
    """Read a key with its colon, quoted or bare; None when there is none."""
    closing = QUOTES.get(text[start])
    if closing is None:
        match = _BARE_KEY.match(text, start)
        key, end = (match.group(), match.end()) if match else ("", start)
    else:
        end = _quoted_end(text, start, closing)
        key = _unescaped(text[start + 1 : end - 1])
    colon = _COLON.match(text, end) if end > start else None
    return Token(key, colon.end()) if colon else None


def read_bare(text: str, start: int) -> Token:
    """Read a number, a literal or text without quotation marks, up to what ends a value."""
    match = _BARE.match(text, start)
    end = match.end() if match else start + 1
    said = text[start:end].strip()
    if said.casefold() in _LITERALS:
        return Token(_LITERALS[said.casefold()], end)
    if _NUMBER.fullmatch(said):
        whole = said.lstrip("+-").isdecimal()
        return Token(int(said) if whole else float(said), end)
    return Token(said, end)


def plain_text(text: str) -> str:
    """Text without lone surrogates, which JSON can spell but no encoding can carry."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _quoted_end(text: str, start: int, closing: str) -> int:
    # Bounded: where closing marks are missing, each key would be looked for in all that follows.
    position, limit = start + 1, start + _LONGEST_KEY
    while (stop := _STOPS[closing].search(text, position, limit)) is not None:
        if text[stop.start()] != "\\":
            return stop.end()
        position = stop.end() + 1
    return start


def _unescaped(text: str) -> str:
    return plain_text(_ESCAPE.sub(_character, text)) if "\\" in text else text


def _character(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    if code:
        return chr(min(int(code, 16), _LAST_CHARACTER))
    # Anything else after a backslash stands for itself; LaTeX keeps its backslash.
    character = escape[4]
    kept = character if character in "\"'\\/`“”‘’" else f"\\{character}"
    return _ESCAPED.get(character, kept)


_STOPS = {closing: re.compile(rf"[\\{closing}]") for closing in QUOTES.values()}
