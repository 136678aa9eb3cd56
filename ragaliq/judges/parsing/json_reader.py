"""Reads JSON that is not quite JSON, without recursion and in linear time.

Accepted: missing, doubled and trailing commas, comments, single and typographic quotation marks,
bare keys and values, Python's literals, unescaped quotation marks and line breaks in strings,
missing closing brackets inside closed ones, a missing end. What could not be read is marked, since
it may have taken the place of something else.

Not json-repair, which was measured at this (0.64.6): `[{"verdict": 1, "reason": "` followed by
`{a:` up to 8,000 characters takes it 43 s with the interpreter's lock held, and four times the text
sixteen times as long; and of `[{"verdict": 1}, {garbage here}, {"verdict": 0}]` it gives two rows,
so that the third statement's verdict becomes the second's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from ragaliq.core.printable import encodable

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | JsonObject | None"


class JsonObject(dict[str, "JsonValue"]):
    """A JSON object that remembers what was wrong with it; the last value of a key counts."""

    __slots__ = ("complete", "disputed", "pending")

    def __init__(self, pairs: Iterable[tuple[str, JsonValue]] = ()) -> None:
        super().__init__()
        self.complete = True  # False when it was cut off, or a part of it could not be read
        self.disputed: frozenset[str] = frozenset()  # keys given twice, with different values
        self.pending: str | None = None  # while it is read, the key whose value comes next
        for key, value in pairs:
            self.put(key, value)

    def put(self, key: str, value: JsonValue) -> None:
        """Set a key, noting when it had another value before."""
        if key in self:
            # Nested values may be deeper than a comparison can go; they count as different.
            is_nested = isinstance(value, (list, dict)) or isinstance(self[key], (list, dict))
            if is_nested or self[key] != value:
                self.disputed |= {key}
        self[key] = value


def walk(value: JsonValue) -> Iterator[JsonValue]:
    """A value and all that it holds, at any depth."""
    pending = [value]
    while pending:
        value = pending.pop()
        yield value
        if isinstance(value, (list, dict)):
            pending.extend(value.values() if isinstance(value, dict) else value)


_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "`": "`"}
"""Opening to closing quotation mark."""

_BLANK = re.compile(r"(?:\s++|//[^\n]*+|(?<!\S)\#\s[^\n]*+|/\*(?s:.*?)(?:\*/|\Z))++")
_BARE = re.compile(r"(?:(?!//|/\*|\s\#)[^\n,，\[\]{}\"“])++")
_BARE_KEY = re.compile(r"([^\s\"'“”‘’`{}\[\],，:：=]{1,64}+)")
# Bounded: without closing marks each key would be looked for in all that follows.
_KEYS = {
    opening: re.compile(rf"{opening}((?:[^\\{closing}]|\\.){{0,400}}+){closing}", re.DOTALL)
    for opening, closing in _QUOTES.items()
}
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
_LAST_CHARACTER = 0x10FFFF


class Token(NamedTuple):
    """A value and the position after it; not intact where the end had to be guessed."""

    value: JsonValue
    end: int
    intact: bool = True


def _read_string(text: str, start: int, *, in_list: bool) -> Token | None:
    """Read the quoted string at `start`; None when it does not end.

    Models often leave quotation marks inside a string as they are. So a mark ends the string only
    where something follows that can follow a value. A mark around a key instead shows that the
    string's own end is lost, or that the text quotes JSON: the string is then not intact.
    Nor is one that holds both such marks and a line break: it may reach into the next row.
    """
    closing = _QUOTES[text[start]]
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


def _read_key(text: str, start: int) -> Token | None:
    """Read a key with its colon, quoted or bare; None when there is none."""
    key = _KEYS.get(text[start], _BARE_KEY).match(text, start)
    colon = _COLON.match(text, key.end()) if key else None
    return Token(_unescaped(key[1]), colon.end()) if key and colon else None


def _read_bare(text: str, start: int) -> Token:
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


def _unescaped(text: str) -> str:
    return encodable(_ESCAPE.sub(_character, text)) if "\\" in text else text


def _character(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    if code:
        return chr(min(int(code, 16), _LAST_CHARACTER))
    # Anything else after a backslash stands for itself; LaTeX keeps its backslash.
    character = escape[4]
    kept = character if character in "\"'\\/`“”‘’" else f"\\{character}"
    return _ESCAPED.get(character, kept)


_STOPS = {closing: re.compile(rf"[\\{closing}]") for closing in _QUOTES.values()}


_DEEPEST = 100  # levels; no judge's reply is nested like this
_BRACKET = re.compile(r"[{}\[\]]")
_BRACKETS = re.compile(r"\[++")

Container = list[JsonValue] | JsonObject


class Reading(NamedTuple):
    """One list or object found in a text, from `start` to where reading stopped."""

    value: JsonValue
    start: int
    end: int
    closed: bool = True  # whether the value came to its end
    damaged: bool = False  # whether a part of it could not be read


class JsonReader:
    """Reads the list or object that opens at `start`, without recursion: text may nest for ever."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._start = self._at = start
        self._open: list[Container] = []
        self._closed: Container | None = None
        self._damaged = False

    def read(self) -> Reading:
        """Read it as far as it is JSON."""
        is_json = True
        while is_json and self._closed is None:
            blank = _BLANK.match(self._text, self._at)
            self._at = blank.end() if blank else self._at
            is_json = self._at < len(self._text) and self._step(self._text[self._at])
        closed, damaged = self._closed is not None, self._damaged
        while self._open:  # cut off: what is whole inside is kept, what is open is marked
            self._mark()
            self._pop()
        return Reading(self._closed, self._start, self._at, closed, damaged)

    def _step(self, character: str) -> bool:
        """Read the next piece; False when this is no JSON."""
        if character in "[{":
            return self._push(character)
        if character in "]}":
            self._close(list if character == "]" else JsonObject)
        elif character in ",，;":
            self._at += 1
            if self._awaits_value():
                self._add(None)
        elif (item := self._awaiting_key()) is not None:
            return self._key(item)
        elif isinstance(self._open[-1], list) and _OPENS_KEY.match(self._text, self._at):
            self._open.append(JsonObject())  # the brace before it is missing
            self._mark()
        else:
            self._scalar(character)
        return True

    def _awaiting_key(self) -> JsonObject | None:
        innermost = self._open[-1]
        if isinstance(innermost, JsonObject) and innermost.pending is None:
            return innermost
        return None

    def _awaits_value(self) -> bool:
        return isinstance(self._open[-1], JsonObject) and self._open[-1].pending is not None

    def _push(self, character: str) -> bool:
        if len(self._open) >= _DEEPEST:
            brackets = _BRACKETS.match(self._text, self._at)
            self._at = brackets.end() if brackets else self._at
            return False
        if self._open and self._awaiting_key() is not None:
            self._mark()  # the end of this object is missing, or a key
            if len(self._open) > 1 and isinstance(self._open[-2], list):
                self._pop()
        self._open.append([] if character == "[" else JsonObject())
        self._at += 1
        return True

    def _close(self, kind: type) -> None:
        self._at += 1
        if not any(type(container) is kind for container in self._open):
            self._mark()
            return
        while type(self._open[-1]) is not kind:
            self._pop()
        self._pop()

    def _pop(self) -> None:
        if self._awaits_value():  # which is missing
            self._mark()
        container = self._open.pop()
        if self._open:
            self._add(container)
        else:
            self._closed = container

    def _add(self, value: JsonValue) -> None:
        container = self._open[-1]
        if isinstance(container, list):
            container.append(value)
        elif container.pending is None:
            container.complete = False
        else:
            container.put(container.pending, value)
            container.pending = None

    def _key(self, item: JsonObject) -> bool:
        token = _read_key(self._text, self._at)
        if token is not None:
            item.pending = str(token.value)
            self._at = token.end
            return True
        if len(self._open) == 1 and not item:
            return False
        # Go on after what cannot be read: the objects that follow may be well.
        self._mark()
        bracket = _BRACKET.search(self._text, self._at + 1)
        self._at = bracket.start() if bracket else len(self._text)
        return True

    def _scalar(self, character: str) -> None:
        in_list = isinstance(self._open[-1], list)
        token = (
            _read_string(self._text, self._at, in_list=in_list)
            if character in _QUOTES
            else _read_bare(self._text, self._at)
        )
        if token is None:  # the text ends inside the string
            self._at = len(self._text)
            return
        self._at = token.end
        self._add(token.value)
        if not token.intact:
            self._mark()

    def _mark(self) -> None:
        self._damaged = True
        container = self._open[-1]
        if isinstance(container, JsonObject):
            container.complete = False
