"""Reads one JSON object as a row: which keys say what, and what counts as a verdict."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ragaliq.core.results import Verdict
from ragaliq.judges.parsing.json_types import JsonObject, JsonValue
from ragaliq.judges.parsing.rows import Row
from ragaliq.judges.parsing.words import leading_verdict

__all__ = [
    "ROW_KEYS",
    "fields_of",
    "is_container",
    "is_row",
    "names_statement",
    "number_in",
    "row_of",
    "verdict_in",
]

_VERDICT_KEYS = (
    "verdict final_verdict label is_supported supported is_faithful faithful judgement judgment "
    "decision attributed"
).split()
_STATEMENT_KEYS = "statement claim sentence assertion text".split()
_REASON_KEYS = "reason reasoning explanation rationale justification analysis".split()
_EVIDENCE_KEYS = "evidence quote".split()
_NUMBER_KEYS = (
    "claim_id statement_id claim_index statement_index claim_number statement_number index id "
    "number"
).split()
_CHUNK_KEYS = "supporting_chunk_ids chunk_ids".split()

ROW_KEYS = frozenset((*_VERDICT_KEYS, *_STATEMENT_KEYS[:2]))
"""Keys that only a row has."""

_ID = re.compile(r"[a-z_ #-]{0,12}([0-9]{1,6})[.)]?", re.IGNORECASE)
_FLOAT = re.compile(r"[01](?:\.0{0,9})?")


def fields_of(item: JsonObject) -> JsonObject:
    """An object with its keys written alike."""
    fields = JsonObject()
    for key, value in item.items():
        name = key.strip().casefold().replace(" ", "_").replace("-", "_")
        fields.put(name, value)
        if key in item.disputed:
            fields.disputed |= {name}
    fields.complete = item.complete
    return fields


def is_row(item: JsonValue) -> bool:
    """Whether a value is an object with a verdict."""
    if not isinstance(item, JsonObject):
        return False
    fields = fields_of(item)
    return any(key in fields and not is_container(fields[key]) for key in _VERDICT_KEYS)


def names_statement(item: JsonObject) -> bool:
    """Whether an object is a row even without a verdict; it still has its place."""
    fields = fields_of(item)
    return any(isinstance(fields.get(key), str) for key in (*_STATEMENT_KEYS[:2], *_REASON_KEYS))


def row_of(item: JsonValue) -> Row:
    """What an item says; nothing where it is no row."""
    if not isinstance(item, JsonObject):
        return Row(verdict=None)
    fields = fields_of(item)
    key = next((key for key in _VERDICT_KEYS if key in fields), None)
    whole = fields.complete and key not in fields.disputed
    numbers = (number_in(fields.get(key)) for key in _NUMBER_KEYS)
    return Row(
        verdict=verdict_in(fields[key]) if key and whole else None,
        number=next((number for number in numbers if number is not None), None),
        whole=whole,
        statement=_text(fields, _STATEMENT_KEYS),
        reason=_text(fields, _REASON_KEYS),
        evidence=_text(fields, _EVIDENCE_KEYS),
        confidence=_confidence(fields.get("confidence")),
        chunk_ids=_chunk_ids(fields),
    )


def verdict_in(value: JsonValue) -> Verdict | None:
    """The verdict a value is: a boolean, 0, 1, or words; None for anything else."""
    if isinstance(value, str):
        if _FLOAT.fullmatch(value.strip()):
            return "SUPPORTED" if value.strip()[0] == "1" else "NOT_ENOUGH_INFO"
        said = leading_verdict(value)
        return said.verdict if said else None
    if isinstance(value, (bool, int, float)) and value in (0, 1):
        return "SUPPORTED" if value else "NOT_ENOUGH_INFO"
    return None


def number_in(value: JsonValue) -> int | None:
    """The number of a statement: 2, "2", "c2", "Statement 2"; None for anything else."""
    if isinstance(value, str):
        match = _ID.fullmatch(value.strip())
        return int(match[1]) if match else None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1_000_000:
        return value
    return None


def is_container(value: JsonValue) -> bool:
    """Whether a value holds others."""
    return isinstance(value, (list, dict))


def _text(fields: JsonObject, keys: Iterable[str]) -> str:
    return next((said for key in keys if isinstance(said := fields.get(key), str)), "")


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


def _chunk_ids(fields: JsonObject) -> list[int]:
    items = next((found for key in _CHUNK_KEYS if isinstance(found := fields.get(key), list)), [])
    ids = (number_in(item) for item in items if not isinstance(item, str))
    return list(dict.fromkeys(number for number in ids if number is not None))
