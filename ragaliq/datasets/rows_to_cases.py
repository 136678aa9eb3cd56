"""A row as a case, or the reason why it is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from ragaliq.core.test_case import RAGTestCase
from ragaliq.datasets.fields import FIELDS, recognised, sort_fields
from ragaliq.datasets.row import Row, fault
from ragaliq.datasets.values import as_chunks, as_mapping, as_text, as_texts

__all__ = ["case_of"]

# Stores keep that much: two longer ids could become one there.
_MAX_ID = 128


def case_of(row: Row, own_names: Mapping[str, str]) -> RAGTestCase:
    """Make a case of a row. What belongs to no field goes into the case's metadata.

    A row without an id is named after its place, so that the same file gives the same ids.

    Raises:
        RowError: A field is missing or wrong; the message names it and quotes no text.
    """
    values, rest = sort_fields(row, own_names)
    where = row.where
    for needed in ("query", "response"):
        if needed not in values:
            raise fault(where, f"no {needed} was found", _advice(needed, row))
    case_id = as_text(values.get("id", where), where=where, field="id")
    if len(case_id) > _MAX_ID:
        raise fault(where, f"its id is longer than {_MAX_ID} characters")
    try:
        return RAGTestCase(
            id=case_id,
            name=as_text(values.get("name", ""), where=where, field="name"),
            query=as_text(values["query"], where=where, field="query"),
            context=as_chunks(values.get("context", []), where=where),
            response=as_text(values["response"], where=where, field="response"),
            tags=as_texts(values.get("tags", []), where=where, field="tags"),
            metadata=_metadata(values, rest, where),
            **_expected(values, where),
        )
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"]) or "the row"
        raise fault(where, f"{place}: {problem['msg']}") from None


def _expected(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    facts = as_texts(values.get("expected_facts", []), where=where, field="expected_facts")
    answer = values.get("expected_answer")
    # A list of reference answers is a list of what should have been said.
    if isinstance(answer, list) and len(answer) != 1:
        facts += as_texts(answer, where=where, field="expected_answer")
        answer = None
    if answer is not None:
        answer = as_text(answer, where=where, field="expected_answer")
    return {"expected_answer": answer, "expected_facts": facts}


def _metadata(values: Mapping[str, Any], rest: dict[str, Any], where: str) -> dict[str, Any]:
    held = values.get("metadata")
    own = as_mapping(held, where=where, field="metadata") if held is not None else {}
    return rest | own


def _advice(field: str, row: Row) -> str:
    known = ", ".join(FIELDS[field])
    advice = (
        f"name it one of {known}, or say what it is called with fields={{{field!r}: ...}} "
        f"(on the command line --field {field}=...)"
    )
    # A table without a header would be quoted here: names are shown where some are known.
    if any(recognised(str(name)) for name in row.data):
        present = ", ".join(repr(str(name)[:40]) for name in list(row.data)[:12])
        return f"the row has {present}; {advice}"
    return f"none of its {len(row.data)} columns has a known name; {advice}"
