"""Finds verdicts in the JSON of a reply, whatever its outer form.

Understood are rows (`{"statement", "reason", "verdict"}`) in lists, alone or one a line, wrapped or
not; lists of bare verdicts under a key that says so; and objects from statement ids to either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from ragaliq.core.results import Verdict
from ragaliq.judges.parsing.json_reader import JsonObject, JsonValue, Reading, walk
from ragaliq.judges.parsing.rows import Group, ReplyRow
from ragaliq.judges.parsing.texts import leading_verdict

K = TypeVar("K", str, list[JsonValue])


_VERDICT_KEYS = (
    "verdict final_verdict label is_supported supported is_faithful faithful judgement judgment "
    "decision attributed"
).split()
_STATEMENT_KEYS = "statement claim sentence assertion text".split()
_REASON_KEYS = "reason reasoning explanation rationale justification analysis".split()
_EVIDENCE_KEYS = "evidence quote".split()
_NUMBER_KEYS = (
    "claim_id statement_id index statement_index claim_number statement_number index id number"
).split()
_CHUNK_KEYS = "supporting_chunk_ids chunk_ids".split()

_ID = re.compile(r"[a-z_ #-]{0,12}([0-9]{1,6})[.)]?", re.IGNORECASE)
_FLOAT = re.compile(r"[01](?:\.0{0,9})?")


def _fields_of(item: JsonObject) -> JsonObject:
    """An object with its keys written alike."""
    fields = JsonObject()
    for key, value in item.items():
        name = key.strip().casefold().replace(" ", "_").replace("-", "_")
        fields.put(name, value)
        if key in item.disputed:
            fields.disputed |= {name}
    fields.complete = item.complete
    return fields


def _is_row(item: JsonValue) -> bool:
    """Whether a value is an object with a verdict."""
    if not isinstance(item, JsonObject):
        return False
    fields = _fields_of(item)
    return any(key in fields and not _is_container(fields[key]) for key in _VERDICT_KEYS)


def _names_statement(item: JsonObject) -> bool:
    """Whether an object is a row even without a verdict; it still has its place."""
    fields = _fields_of(item)
    return any(isinstance(fields.get(key), str) for key in (*_STATEMENT_KEYS[:2], *_REASON_KEYS))


def _row_of(item: JsonValue) -> ReplyRow:
    """What an item says; nothing where it is no row."""
    if not isinstance(item, JsonObject):
        return ReplyRow(verdict=None)
    fields = _fields_of(item)
    key = next((key for key in _VERDICT_KEYS if key in fields), None)
    whole = fields.complete and key not in fields.disputed
    numbers = (_number_in(fields.get(key)) for key in _NUMBER_KEYS)
    chunks = _first(fields, _CHUNK_KEYS, list) or []
    ids = (_number_in(chunk) for chunk in chunks if not isinstance(chunk, str))
    return ReplyRow(
        verdict=_verdict_in(fields[key]) if key and whole else None,
        number=next((number for number in numbers if number is not None), None),
        whole=whole,
        statement=_first(fields, _STATEMENT_KEYS, str) or "",
        reason=_first(fields, _REASON_KEYS, str) or "",
        evidence=_first(fields, _EVIDENCE_KEYS, str) or "",
        confidence=_confidence(fields.get("confidence")),
        chunk_ids=list(dict.fromkeys(id_ for id_ in ids if id_ is not None)),
    )


def _verdict_in(value: JsonValue) -> Verdict | None:
    """The verdict a value is: a boolean, 0, 1, or words; None for anything else."""
    if isinstance(value, str):
        if _FLOAT.fullmatch(value.strip()):
            return "SUPPORTED" if value.strip()[0] == "1" else "NOT_ENOUGH_INFO"
        said = leading_verdict(value)
        return said.verdict if said else None
    if isinstance(value, (bool, int, float)) and value in (0, 1):
        return "SUPPORTED" if value else "NOT_ENOUGH_INFO"
    return None


def _number_in(value: JsonValue) -> int | None:
    """The number of a statement: 2, "2", "c2", "Statement 2"; None for anything else."""
    if isinstance(value, str):
        match = _ID.fullmatch(value.strip())
        return int(match[1]) if match else None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1_000_000:
        return value
    return None


def _confidence(value: JsonValue) -> float:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return 1.0
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 1.0
    # Compared before it becomes a float: an integer may be too large for one. NaN is never below.
    if value <= 0:
        return 0.0
    return float(value) if value < 1 else 1.0


def _is_container(value: JsonValue) -> bool:
    return isinstance(value, (list, dict))


def _first(fields: JsonObject, keys: Iterable[str], kind: type[K]) -> K | None:
    """The first of these fields that is of a kind."""
    return next((found for key in keys if isinstance(found := fields.get(key), kind)), None)


_DAMAGED = ReplyRow(verdict=None, whole=False)
# What is left of a row whose braces are lost.
_LOST = re.compile(
    r"[\"'](?:final_)?(?:verdict|label|statement|claim|reason|is_supported)[\"']\s{0,3}[:=]",
    re.IGNORECASE,
)
_LIST_KEYS = "verdicts verdict final_verdicts labels judgements judgments".split()
_ATTEMPT_KEYS = frozenset((*_VERDICT_KEYS, *_STATEMENT_KEYS[:2], *_LIST_KEYS))


def json_groups(
    text: str, readings: Iterable[Reading], *, expected: int, alone: bool
) -> list[Group]:
    """The verdicts in the JSON of a reply.

    Objects one after another are one group, unless there are more of them than statements (0:
    that is not known). Only where JSON stands `alone` is `[1, 0]` a list of verdicts; in prose it
    may be a citation.
    """
    groups: list[Group] = []
    singles: list[ReplyRow] = []
    at = 0
    for reading in readings:
        if _LOST.search(text, at, reading.start):
            singles.append(_DAMAGED)
        at = reading.end
        if alone and isinstance(reading.value, list) and _all_verdicts(reading.value):
            groups.append([ReplyRow(verdict=_verdict_in(item)) for item in reading.value])
        found = list(_groups(reading.value))
        if reading.damaged and all(row.whole for group, _ in found for row in group):
            found.append(([_DAMAGED], True))
        for group, single in found:
            if single:
                singles += group
                continue
            groups += [*_told_apart(singles, expected), group]
            singles = []
    return [*groups, *_told_apart(singles, expected)]


def _told_apart(singles: list[ReplyRow], expected: int) -> list[Group]:
    """Single rows as one group; each by itself where they are several answers to one question."""
    if not singles:
        return []
    numbered = all(row.number is not None for row in singles)
    return [[row] for row in singles] if 0 < expected < len(singles) and not numbered else [singles]


def is_attempt(value: JsonValue) -> bool:
    """Whether a value was meant to hold verdicts, whatever became of them."""
    objects = (_fields_of(part).keys() for part in walk(value) if isinstance(part, JsonObject))
    return any(not (_ATTEMPT_KEYS.isdisjoint(keys)) for keys in objects)


def _groups(value: JsonValue) -> Iterator[tuple[Group, bool]]:
    """The groups in one value, in order, each with whether it is a single row."""
    pending = [value]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            if any(map(_is_row, value)):
                yield _rows(value), False
            else:
                pending.extend(reversed(value))
        elif isinstance(value, JsonObject):
            wraps = any(map(_holds_rows, value.values()))
            if not wraps and (_is_row(value) or _names_statement(value)):
                yield [_row_of(value)], True
            elif rows := _listed(value) or _by_id(value):
                yield rows, False
            elif not (value.complete or any(map(_is_container, value.values()))):
                yield [_DAMAGED], True
            else:
                pending.extend(reversed(value.values()))


def _rows(items: list[JsonValue]) -> list[ReplyRow]:
    """The rows of a list; whatever else stands between them may be what is left of one."""
    rows: list[ReplyRow] = []
    for item in items:
        if item is None or isinstance(item, JsonObject):
            rows.append(_row_of(item))
        elif not rows or rows[-1] is not _DAMAGED:
            rows.append(_DAMAGED)
    return rows


def _holds_rows(value: JsonValue) -> bool:
    return any(map(_is_row, value)) if isinstance(value, list) else _is_row(value)


def _listed(item: JsonObject) -> list[ReplyRow]:
    """`{"verdicts": ["yes", 0, null]}`."""
    fields = _fields_of(item)
    for key in _LIST_KEYS:
        items = fields.get(key)
        if isinstance(items, list) and items and not any(map(_is_container, items)):
            usable = fields.complete and key not in fields.disputed
            return [
                ReplyRow(verdict=_verdict_in(x) if usable else None, whole=usable) for x in items
            ]
    return []


def _by_id(item: JsonObject) -> list[ReplyRow]:
    """`{"1": "yes", "2": {"verdict": 0}}`."""
    numbers = [_number_in(key) for key in item]
    if not numbers or None in numbers:
        return []
    rows: list[ReplyRow] = []
    for (key, value), number in zip(item.items(), numbers, strict=True):
        if _is_row(value):
            row = _row_of(value)
        elif not _is_container(value):
            row = ReplyRow(verdict=_verdict_in(value))
        else:
            return []
        verdict = None if key in item.disputed else row.verdict
        rows.append(replace(row, number=number, verdict=verdict))
    return rows if any(row.verdict for row in rows) else []


def _all_verdicts(items: list[JsonValue]) -> bool:
    return (
        bool(items) and not any(map(_is_container, items)) and None not in map(_verdict_in, items)
    )
