"""Reads one JSON value that is not quite JSON, without recursion and in linear time.

Accepted: missing, doubled and trailing commas, comments, single and typographic quotation marks,
bare keys and values, Python's literals, unescaped quotation marks and line breaks in strings,
missing closing brackets inside closed ones, a missing end. What could not be read is marked, since
it may have taken the place of something else.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ragaliq.judges.parsing.json_tokens import (
    QUOTES,
    Token,
    blank_end,
    opens_key,
    read_bare,
    read_key,
    read_string,
)
from ragaliq.judges.parsing.json_types import JsonObject, JsonValue

__all__ = ["Reading", "read_value"]

_DEEPEST = 100  # levels; no judge's reply is nested like this
_BRACKET = re.compile(r"[{}\[\]]")
_BRACKETS = re.compile(r"\[++")

Container = list[JsonValue] | JsonObject


class Reading(NamedTuple):
    """One value found in a text.

    Attributes:
        value: A list or object.
        start: Where it begins.
        end: Where reading stopped.
        closed: Whether the value came to its end.
        damaged: Whether a part of it could not be read.
    """

    value: JsonValue
    start: int
    end: int
    closed: bool = True
    damaged: bool = False


def read_value(text: str, start: int) -> Reading:
    """Read the list or object that opens at `start`."""
    return _Reader(text, start).read()


class _Open:
    """A container that has not been closed yet, and the key whose value comes next."""

    __slots__ = ("container", "key")

    def __init__(self, container: Container) -> None:
        self.container = container
        self.key: str | None = None

    def add(self, value: JsonValue) -> None:
        if isinstance(self.container, list):
            self.container.append(value)
        elif self.key is None:
            self.container.complete = False
        else:
            self.container.put(self.key, value)
            self.key = None

    @property
    def awaits_key(self) -> bool:
        return isinstance(self.container, JsonObject) and self.key is None


class _Reader:
    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._start = self._at = start
        self._open: list[_Open] = []
        self._closed: Container | None = None
        self._depths: dict[type, int] = {list: 0, JsonObject: 0}
        self._damaged = False

    def read(self) -> Reading:
        going = True
        while going and self._closed is None:
            self._at = blank_end(self._text, self._at)
            going = self._at < len(self._text) and self._step(self._text[self._at])
        closed = self._closed is not None
        damaged = self._damaged
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
            if self._open[-1].key is not None:
                self._open[-1].add(None)
        elif self._open[-1].awaits_key:
            return self._key()
        elif isinstance(self._open[-1].container, list) and opens_key(self._text, self._at):
            self._begin(JsonObject())  # the brace before it is missing
            self._mark()
        else:
            self._scalar(character)
        return True

    def _push(self, character: str) -> bool:
        if len(self._open) >= _DEEPEST:
            brackets = _BRACKETS.match(self._text, self._at)
            self._at = brackets.end() if brackets else self._at
            return False
        forgotten = self._open and self._open[-1].awaits_key
        if forgotten:  # either the end of this object is missing, or a key
            self._mark()
            if len(self._open) > 1 and isinstance(self._open[-2].container, list):
                self._pop()
        self._begin([] if character == "[" else JsonObject())
        self._at += 1
        return True

    def _begin(self, container: Container) -> None:
        self._open.append(_Open(container))
        self._depths[type(container)] += 1

    def _close(self, kind: type) -> None:
        self._at += 1
        if not self._depths[kind]:
            self._mark()
            return
        while type(self._open[-1].container) is not kind:
            self._pop()
        self._pop()

    def _pop(self) -> None:
        if self._open[-1].key is not None:  # its value is missing
            self._mark()
        container = self._open.pop().container
        self._depths[type(container)] -= 1
        if self._open:
            self._open[-1].add(container)
        else:
            self._closed = container

    def _key(self) -> bool:
        token = read_key(self._text, self._at)
        if token is not None:
            self._open[-1].key = str(token.value)
            self._at = token.end
            return True
        if len(self._open) == 1 and not self._open[-1].container:
            return False
        # Go on after what cannot be read: the objects that follow may be well.
        self._mark()
        bracket = _BRACKET.search(self._text, self._at + 1)
        self._at = bracket.start() if bracket else len(self._text)
        return True

    def _scalar(self, character: str) -> None:
        token: Token | None
        if character in QUOTES:
            in_list = isinstance(self._open[-1].container, list)
            token = read_string(self._text, self._at, in_list=in_list)
            if token is None:  # the text ends inside the string
                self._at = len(self._text)
                return
        else:
            token = read_bare(self._text, self._at)
        self._at = token.end
        self._open[-1].add(token.value)
        if not token.intact:
            self._mark()

    def _mark(self) -> None:
        self._damaged = True
        container = self._open[-1].container
        if isinstance(container, JsonObject):
            container.complete = False
