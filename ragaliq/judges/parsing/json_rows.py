"""Finds verdicts in the JSON of a reply, whatever its outer form.

Understood are rows (`{"statement", "reason", "verdict"}`) in lists, alone or one a line, wrapped or
not; lists of bare verdicts under a key that says so; and objects from statement ids to either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ragaliq.judges.parsing.json_fields import (
    ROW_KEYS,
    fields_of,
    is_container,
    is_row,
    names_statement,
    number_in,
    row_of,
    verdict_in,
)
from ragaliq.judges.parsing.json_reader import Reading
from ragaliq.judges.parsing.json_types import JsonObject, JsonValue
from ragaliq.judges.parsing.rows import Group, Row

__all__ = ["is_attempt", "json_groups"]

_DAMAGED = Row(verdict=None, whole=False)
# What is left of a row whose braces are lost.
_LOST = re.compile(
    r"[\"'](?:final_)?(?:verdict|label|statement|claim|reason|is_supported)[\"']\s{0,3}[:=]",
    re.IGNORECASE,
)
_LIST_KEYS = "verdicts verdict final_verdicts labels judgements judgments".split()


def json_groups(text: str, readings: Iterable[Reading], *, alone: bool) -> list[Group]:
    """The verdicts in the JSON of a reply; objects one after another are one group.

    Args:
        text: The reply.
        readings: What was found in it.
        alone: Whether nothing but JSON was. Only then is `[1, 0]` a list of verdicts; in prose it
            may be a citation.
    """
    groups: list[Group] = []
    singles: list[Row] = []
    at = 0
    for reading in readings:
        if _LOST.search(text, at, reading.start):
            singles.append(_DAMAGED)
        at = reading.end
        if alone and isinstance(reading.value, list) and _all_verdicts(reading.value):
            groups.append([Row(verdict=verdict_in(item)) for item in reading.value])
        found = list(_groups(reading.value))
        if reading.damaged and all(row.whole for group, _ in found for row in group):
            found.append(([_DAMAGED], True))
        for group, single in found:
            if single:
                singles += group
                continue
            groups += [singles, group] if singles else [group]
            singles = []
    return [*groups, singles] if singles else groups


def is_attempt(value: JsonValue) -> bool:
    """Whether a value was meant to hold verdicts, whatever became of them."""
    pending = [value]
    while pending:
        value = pending.pop()
        if isinstance(value, JsonObject):
            keys = fields_of(value).keys()
            if not (ROW_KEYS.isdisjoint(keys) and keys.isdisjoint(_LIST_KEYS)):
                return True
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
    return False


def _groups(value: JsonValue) -> Iterator[tuple[Group, bool]]:
    """The groups in one value, in order, each with whether it is a single row."""
    pending = [value]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            if any(map(is_row, value)):
                yield _rows(value), False
            else:
                pending.extend(reversed(value))
        elif isinstance(value, JsonObject):
            wraps = any(map(_holds_rows, value.values()))
            if not wraps and (is_row(value) or names_statement(value)):
                yield [row_of(value)], True
            elif rows := _listed(value) or _by_id(value):
                yield rows, False
            elif not (value.complete or any(map(is_container, value.values()))):
                yield [_DAMAGED], True
            else:
                pending.extend(reversed(value.values()))


def _rows(items: list[JsonValue]) -> list[Row]:
    """The rows of a list; whatever else stands between them may be what is left of one."""
    rows: list[Row] = []
    for item in items:
        if item is None or isinstance(item, JsonObject):
            rows.append(row_of(item))
        elif not rows or rows[-1] is not _DAMAGED:
            rows.append(_DAMAGED)
    return rows


def _holds_rows(value: JsonValue) -> bool:
    return any(map(is_row, value)) if isinstance(value, list) else is_row(value)


def _listed(item: JsonObject) -> list[Row]:
    """`{"verdicts": ["yes", 0, null]}`."""
    fields = fields_of(item)
    for key in _LIST_KEYS:
        items = fields.get(key)
        if isinstance(items, list) and items and not any(map(is_container, items)):
            usable = fields.complete and key not in fields.disputed
            return [Row(verdict=verdict_in(x) if usable else None, whole=usable) for x in items]
    return []


def _by_id(item: JsonObject) -> list[Row]:
    """`{"1": "yes", "2": {"verdict": 0}}`."""
    numbers = [number_in(key) for key in item]
    if not numbers or None in numbers:
        return []
    rows: list[Row] = []
    for (key, value), number in zip(item.items(), numbers, strict=True):
        if is_row(value):
            row = row_of(value)
        elif not is_container(value):
            row = Row(verdict=verdict_in(value))
        else:
            return []
        verdict = None if key in item.disputed else row.verdict
        rows.append(replace(row, number=number, verdict=verdict))
    return rows if any(row.verdict for row in rows) else []


def _all_verdicts(items: list[JsonValue]) -> bool:
    return bool(items) and not any(map(is_container, items)) and None not in map(verdict_in, items)
