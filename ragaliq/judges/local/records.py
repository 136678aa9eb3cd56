"""Values without sentences, read as statements: JSON records, rows, tables and key-value lists.

A record is one statement, so that no value of another record is taken for its own. A number is
read before its key, as prose has it: `"refunds": 17` is "17 refunds". The text that is quoted stays
word for word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Statement(NamedTuple):
    """A sentence or a record of a chunk.

    Attributes:
        text: Word for word.
        reading: The words it states.
    """

    text: str
    reading: str


_MOST_NESTED = 6
_DECODER = json.JSONDecoder()
_GAP = re.compile(r"[\s,]*")
_ROW = re.compile(r"\(([^()]{0,500})\)")
_ROWS = re.compile(rf"\s*\[\s*{_ROW.pattern}(?:\s*,\s*{_ROW.pattern})*(?:\s*,)?\s*\]\s*")
_TABLE_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")
_KEY_WORDS = re.compile(r"_+|(?<=[a-z])(?=[A-Z])")
# "refunds: 17" and "refunds = 17", where nothing follows the number.
_PAIR = re.compile(
    r"(?P<key>[^\W\d_][\w /-]{0,40}?)\s?(?:[:=]\s|=)\s*(?P<value>[$€£]?\d[\d.,]*\d|\d)"
    r"(?=\s*(?:[,;|.]|$))",
    re.MULTILINE,
)
_PAIR_HINT = re.compile(r"[:=](?:\s|(?<==))[$€£]?\d")


def holds_data(chunk: str) -> bool:
    """True if a chunk may hold a record, a table or a number after its key."""
    begins = chunk[0] if chunk[:1].strip() else chunk.lstrip()[:1]
    return begins in ("{", "[") or "|" in chunk or _may_hold_pairs(chunk)


def _may_hold_pairs(text: str) -> bool:
    # The signs are asked first: a search for one character is far faster.
    return (":" in text or "=" in text) and _PAIR_HINT.search(text) is not None


def statements(chunk: str, sentences: Iterable[str]) -> Iterator[Statement]:
    """The statements of a chunk, in order: its records where it is data, else its sentences."""
    if chunk.lstrip()[:1] in ("{", "["):
        found = list(_records(chunk))
        if found:
            yield from found
            return
    header: list[str] = []
    before = ""
    for text in sentences:
        if "|" not in text:
            header = []
            yield Statement(text, _read_pairs(text))
            continue
        cells, reading = _cells(text), _read_pairs(text)
        if _TABLE_RULE.fullmatch(text):
            header = _cells(before)
        elif len(cells) == len(header):
            reading = _pairs(zip(header, cells, strict=True))
        yield Statement(text, reading)
        before = text


def reading_of(claim: str) -> str:
    """The words that a claim states, which may be a record or a list of keys and values."""
    if claim[:1] in ("{", "["):
        return ", ".join(record.reading for record in _records(claim)) or claim
    return _read_pairs(claim)


def _read_pairs(text: str) -> str:
    """The text itself where it has no such pairs."""
    if not _may_hold_pairs(text):
        return text
    return _PAIR.sub(r"\g<value> \g<key>", text)


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def _pairs(pairs: Iterator[tuple[str, object]]) -> str:
    return ", ".join(_pair(key, value) for key, value in pairs)


def _pair(key: str, value: object) -> str:
    named = _KEY_WORDS.sub(" ", key)
    said = "" if value is None else str(value)
    if isinstance(value, bool):
        said = "yes" if value else "no"
    return f"{said} {named}" if said[:1].isdigit() else f"{named} {said}"


def _records(chunk: str) -> Iterator[Statement]:
    """The records of a chunk that is JSON, a JSON line after the other, or rows of a database."""
    if _ROWS.fullmatch(chunk):
        for row in _ROW.finditer(chunk):
            yield Statement(row[0], row[1])
        return
    found: list[Statement] = []
    at = len(chunk) - len(chunk.lstrip())
    is_list = chunk[at] == "["
    at += is_list
    while at < len(chunk) and not (is_list and chunk[at] == "]"):
        try:
            value, end = _DECODER.raw_decode(chunk, at)
        except (ValueError, RecursionError):
            return
        found += _read_value(value, chunk[at:end])
        gap = _GAP.match(chunk, end)
        at = gap.end() if gap else end
    yield from found


def _read_value(value: object, text: str) -> Iterator[Statement]:
    if not isinstance(value, dict):
        yield Statement(text, _flat(value, _MOST_NESTED))
        return
    lists = {
        key: each
        for key, each in value.items()
        if isinstance(each, list) and each and all(isinstance(one, dict) for one in each)
    }
    own = {key: each for key, each in value.items() if key not in lists}
    if own or not lists:
        yield Statement(text, _flat(own, _MOST_NESTED))
    for key, records in lists.items():
        for record in records:
            yield Statement(text, f"{_KEY_WORDS.sub(' ', key)} {_flat(record, _MOST_NESTED)}")


def _flat(value: object, depth: int) -> str:
    """All that a value holds, as words."""
    if depth and isinstance(value, dict):
        parts = (
            f"{_KEY_WORDS.sub(' ', key)} {_flat(each, depth - 1)}"
            if isinstance(each, (dict, list))
            else _pair(key, each)
            for key, each in value.items()
        )
        return ", ".join(parts)
    if depth and isinstance(value, list):
        return ", ".join(_flat(each, depth - 1) for each in value)
    return str(value)
