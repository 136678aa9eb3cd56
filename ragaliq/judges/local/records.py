"""Values without sentences, read as statements: records, rows, tables and key-value lists.

Records are those of JSON and of Python's `repr`, as databases are shown to models, anywhere in a
text. A record is one statement, so that no value of another record is taken for its own. A number
is read before its key, as prose has it: `"refunds": 17` is "17 refunds". The text that is quoted
stays word for word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple


class Statement(NamedTuple):
    """A sentence or a record of a chunk.

    Attributes:
        text: Word for word.
        reading: The words it states.
        is_record: Whether it is a record or a row of a table.
    """

    text: str
    reading: str
    is_record: bool = False


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
    # The signs are asked first: a search for one character is far faster.
    if "|" in chunk or _may_hold_pairs(chunk):
        return True
    may_open = "{" in chunk or "[" in chunk or "(" in chunk
    return may_open and _OPENS_DATA.search(chunk) is not None


def _may_hold_pairs(text: str) -> bool:
    return (":" in text or "=" in text) and _PAIR_HINT.search(text) is not None


def statements(chunk: str, cut: Callable[[str], Iterable[str]]) -> Iterator[Statement]:
    """The statements of a chunk, in order: its records, and the sentences around them.

    Args:
        chunk: The text.
        cut: Function that cuts a text without records into sentences.
    """
    done = 0
    for data in find_data(chunk):
        before = list(_sentences(cut(chunk[done : data.start])))
        yield from before
        label = before[-1].text if before and before[-1].text.endswith(":") else ""
        for record in _records(data, cut, _columns(chunk[done : data.start])):
            yield record._replace(reading=f"{label} {record.reading}".lstrip())
        done = data.end
    yield from _sentences(cut(chunk[done:]))


def _sentences(texts: Iterable[str]) -> Iterator[Statement]:
    header: list[str] = []
    before = ""
    for text in texts:
        if "|" not in text:
            header = []
            yield Statement(text, _read_pairs(text))
            continue
        cells, reading = _cells(text), _read_pairs(text)
        is_row = len(cells) == len(header)
        if _TABLE_RULE.fullmatch(text):
            header = _cells(before)
        elif is_row:
            reading = ", ".join(map(_pair, header, cells))
        yield Statement(text, reading, is_row)
        before = text


def reading_of(claim: str) -> str:
    """The words that a claim states, which may be a record or a list of keys and values."""
    if claim[:1] in ("{", "[") and (found := next(find_data(claim), None)):
        return ", ".join(record.reading for record in _records(found, lambda text: [text]))
    return _read_pairs(claim)


def _read_pairs(text: str) -> str:
    """The text itself where it has no such pairs."""
    if not _may_hold_pairs(text):
        return text
    return _PAIR.sub(r"\g<value> \g<key>", text)


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def _pair(key: str, value: str) -> str:
    named = _KEY_WORDS.sub(" ", key)
    return f"{value} {named}".strip() if value[:1].isdigit() else f"{named} {value}".strip()


# Records in a text.

_MOST_NESTED = 8
_MOST_FAILURES = 1_000  # brackets that open no data, until the rest is read as prose
# A dict, or a list of records: "[1, 2]" is a citation and "(1932)" prose.
_OPENS_DATA = re.compile(r"""\{\s*["'\d]|[\[(]\s*(?:[\[({]|[A-Z]\w*\()""")
_NAMED = re.compile(r"\s*([^\W\d]\w*)=")  # Row(city='Oslo')
_TOKEN = re.compile(
    r"""\s*(?:"(?P<double>(?:[^"\\\n]|\\.)*)"|'(?P<single>(?:[^'\\\n]|\\.)*)'"""
    r"|(?P<number>-?\d[\w.+-]*)|(?P<word>[^\W\d][\w.]*)|(?P<sign>[][(){},:]))"
)
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_READ_WORDS = {"true": "yes", "false": "no", "none": "", "null": "", "nan": ""}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_ESCAPED_BREAK = re.compile(r"\\[nrtf]")
_PROSE = 100  # characters from which a value is read as sentences, and not as part of its record


class Quoted(str):
    """A quoted value; `written` is its text word for word."""

    __slots__ = ("written",)
    written: str


class Data(NamedTuple):
    """A list or dict of a text.

    Attributes:
        text: Word for word.
        start: Position of its first character.
        end: Position after its last one.
        entries: Keys and values, in order; the keys of a list are empty.
    """

    text: str
    start: int
    end: int
    entries: list[tuple[str, str | Data]]

    @property
    def is_list(self) -> bool:
        """True for a list or a tuple, False for a dict or an object with named values."""
        return self.text[0] in ("[", "(")

    @property
    def is_records(self) -> bool:
        """True for a list of records only."""
        parts = [isinstance(value, Data) for _, value in self.entries]
        return self.is_list and bool(parts) and all(parts)

    @property
    def has_records(self) -> bool:
        """True if a list of records is in it, or it is one."""
        parts = [value for _, value in self.entries if isinstance(value, Data)]
        return self.is_records or any(part.has_records for part in parts)


class _NotDataError(Exception):
    """The text is not a literal."""


def find_data(text: str) -> Iterator[Data]:
    """The dicts and lists of records of a text, in order."""
    opening, failures = _OPENS_DATA.search(text), 0
    while opening and failures < _MOST_FAILURES:
        at = opening.start() + 1
        try:
            found = _read_container(text, opening.start(), _MOST_NESTED)
        except _NotDataError:
            failures += 1
        else:
            if found.entries and (not found.is_list or found.is_records):
                yield found
                at = found.end
        opening = _OPENS_DATA.search(text, at)


def _read_container(text: str, start: int, depth: int) -> Data:
    """Read the list, tuple or dict that opens at a position."""
    close, at = _CLOSING[text[start]], start + 1
    entries: list[tuple[str, str | Data]] = []
    while (token := _token(text, at))["sign"] != close:
        key, named = "", _NAMED.match(text, at) if close == ")" else None
        if named:
            key, at = named[1], named.end()
        value, at = _read_value(text, at, depth)
        if close == "}":
            if isinstance(value, Data) or (colon := _token(text, at))["sign"] != ":":
                raise _NotDataError
            key, (value, at) = value, _read_value(text, colon.end(), depth)
        entries.append((key, value))
        token = _token(text, at)
        if token["sign"] == ",":
            at = token.end()
        elif token["sign"] != close:
            raise _NotDataError
    return Data(text[start : token.end()], start, token.end(), entries)


def _token(text: str, at: int) -> re.Match[str]:
    token = _TOKEN.match(text, at)
    if token is None:
        raise _NotDataError
    return token


def _read_value(text: str, at: int, depth: int) -> tuple[str | Data, int]:
    """A value and the position after it; all values but containers are texts."""
    token = _token(text, at)
    if token["sign"]:
        if depth == 0 or token["sign"] not in _CLOSING:
            raise _NotDataError
        found = _read_container(text, token.end() - 1, depth - 1)
        return found, found.end
    if token["word"] is None:
        if token["number"]:
            return token["number"], token.end()
        written = token["single"] if token["double"] is None else token["double"]
        value = Quoted(_unescaped(written))
        value.written = written
        return value, token.end()
    if token["word"].lower() in _READ_WORDS:
        return _READ_WORDS[token["word"].lower()], token.end()
    # An object's `repr`: Row(city='Oslo'), Decimal('12.50'), datetime.date(2026, 5, 1).
    if not (depth and text.startswith("(", token.end())):
        raise _NotDataError
    found = _read_container(text, token.end(), depth - 1)
    if any(key for key, _ in found.entries):
        start = token.start("word")
        return found._replace(text=text[start : found.end], start=start), found.end
    mark = "-" if token["word"].endswith(("date", "datetime")) else " "
    return mark.join(_flat(value) for _, value in found.entries[:3]), found.end


def _unescaped(text: str) -> str:
    plain = _ESCAPE.sub(
        lambda escape: chr(int(escape[1], 16)) if escape[1] else escape[2],
        _ESCAPED_BREAK.sub("\n ", text),
    )
    # JSON has two escapes for one rare character.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _records(
    data: Data,
    cut: Callable[[str], Iterable[str]],
    columns: Sequence[str] = (),
    path: str = "",
) -> Iterator[Statement]:
    """The records of a list or dict, each with the keys that lead to it and its long texts."""
    if data.is_records:
        for _, record in data.entries:
            if isinstance(record, Data):
                yield from _records(record, cut, columns, path)
        return
    entries = data.entries
    if data.is_list and len(columns) == len(entries):
        entries = [(name, value) for name, (_, value) in zip(columns, entries, strict=True)]
    own: list[tuple[str, str | Data]] = []
    inner: list[tuple[str, Data]] = []
    prose: list[str] = []
    for key, value in entries:
        if isinstance(value, Data) and value.has_records:
            inner.append((key, value))
        elif isinstance(value, Quoted) and len(value) > _PROSE:
            prose.append(value.written)
        else:
            own.append((key, value))
    if own or not (inner or prose):
        yield Statement(data.text, f"{path} {_said(own)}".lstrip(), is_record=True)
    for written in prose:
        yield from _read_prose(written, cut)
    for key, records in inner:
        yield from _records(records, cut, columns, f"{path} {_KEY_WORDS.sub(' ', key)}".lstrip())


def _read_prose(written: str, cut: Callable[[str], Iterable[str]]) -> Iterator[Statement]:
    """The sentences of a quoted text, cut where its escaped line breaks are."""
    text, done = _ESCAPED_BREAK.sub("\n ", written), 0
    for sentence in _sentences(cut(text)):
        start = text.index(sentence.text, done)
        done = start + len(sentence.text)
        yield sentence._replace(text=written[start:done], reading=_unescaped(sentence.reading))


def _flat(value: str | Data) -> str:
    """All that a value holds, as words."""
    return value if isinstance(value, str) else _said(value.entries)


def _said(entries: Iterable[tuple[str, str | Data]]) -> str:
    return ", ".join(
        _pair(key, value) if isinstance(value, str) else _pair(f"{key} ", _flat(value))
        for key, value in entries
    )


# The columns of a database's rows, by the query before them.

_SELECT = re.compile(r"\bselect\s+(?:distinct\s+)?(.{1,1000}?)\s+from\b", re.IGNORECASE | re.DOTALL)
_COLUMN_END = re.compile(r",(?![^(]*\))")
# Of "count(*) AS refunds", "c.name" and "max(price)": refunds, name and none.
_COLUMN_NAME = re.compile(
    r"""(?:.*\)\s*(?:as\s+)?|.*\bas\s+|.*[\s.])?["'`\[]?(\w*)["'`\]]?""", re.IGNORECASE | re.DOTALL
)


def _columns(before: str) -> list[str]:
    """Names of the columns that the last query of a text selects; "" where one has none."""
    queries = _SELECT.findall(before)
    columns = _COLUMN_END.split(queries[-1]) if queries else []
    names = (_COLUMN_NAME.fullmatch(column.strip()) for column in columns)
    return [name[1] if name else "" for name in names]
