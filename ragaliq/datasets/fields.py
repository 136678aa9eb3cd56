"""The names under which tools keep question, context, answer and what was expected."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ragaliq.datasets.row import Row, fault
from ragaliq.errors import ConfigurationError

__all__ = [
    "FIELDS",
    "is_absent",
    "names_in",
    "plain_name",
    "recognised",
    "require_known",
    "sort_fields",
]

FIELDS: dict[str, tuple[str, ...]] = {
    "id": ("id", "case_id", "example_id", "sample_id"),
    "name": ("name", "title"),
    "query": ("query", "question", "user_input", "input", "prompt"),
    "context": (
        "retrieved_contexts",
        "retrieval_context",
        "contexts",
        "context",
        "retrieved_context",
        "documents",
        "source_documents",
        "docs",
        "chunks",
        "passages",
    ),
    "response": ("response", "answer", "actual_output", "output", "prediction", "generated_answer"),
    "expected_answer": (
        "expected_answer",
        "ground_truth",
        "reference",
        "expected_output",
        "reference_answer",
        "ground_truths",
    ),
    "expected_facts": ("expected_facts", "facts"),
    "tags": ("tags",),
    "metadata": ("metadata",),
}
"""Each field of a case with the names it goes by: ragaliq's own, RAGAS's, DeepEval's, LangSmith's.

Where two names of the context are in one row, the first of this list is what was retrieved: other
tools keep an ideal context beside it.
"""

# LangSmith exports an example as nested inputs and outputs.
_NESTED = ("inputs", "outputs", "reference_outputs", "reference")
_NESTED_AS_EXPECTED = ("reference_outputs", "reference")
_FIELD_OF = {alias: field for field, aliases in FIELDS.items() for alias in aliases}


def require_known(fields: Mapping[str, str], *, argument: str = "fields") -> None:
    """Check a user's own names.

    Args:
        fields: Field to the name it has.
        argument: What the user knows them as, for the message.

    Raises:
        ConfigurationError: One is for a field that cases do not have.
    """
    for field in fields:
        if field not in FIELDS:
            raise ConfigurationError(
                f"{argument}: a case has no field {field!r}; it has {', '.join(FIELDS)}"
            )


def recognised(name: str) -> str | None:
    """The field a name stands for."""
    return _FIELD_OF.get(plain_name(name))


def sort_fields(row: Row, own_names: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A row's values by the case's field, and those of no field.

    Args:
        row: The row.
        own_names: Field to the name it has in this file; wins over what is recognised.

    Raises:
        RowError: Two columns claim one field.
    """
    found: dict[str, dict[str, Any]] = {}
    rest: dict[str, Any] = {}
    owned = {name: field for field, name in own_names.items()}
    for path, name, value in _values(row.data):
        field = owned.get(path) or owned.get(name) or _field(path, name, own_names)
        if field is None or is_absent(value):
            rest.update({} if is_absent(value) else {path: value})
        else:
            found.setdefault(field, {})[path] = value
    return {field: _only(row, field, values) for field, values in found.items()}, rest


def names_in(row: Row) -> Iterator[str]:
    """Every name by which a user may speak of a value of the row."""
    for path, name, _ in _values(row.data):
        yield path
        yield name


def _values(data: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Every value with its path and its plain name, nested ones included."""
    for key, value in data.items():
        name = str(key).strip()
        if name in _NESTED and isinstance(value, Mapping):
            for inner, nested in value.items():
                yield f"{name}.{inner}", str(inner).strip(), nested
        else:
            yield name, name, value


def _field(path: str, name: str, own_names: Mapping[str, str]) -> str | None:
    field = recognised(name)
    if field == "response" and path.startswith(tuple(f"{n}." for n in _NESTED_AS_EXPECTED)):
        field = "expected_answer"
    # A user who says where a field is means that it is nowhere else.
    return None if field in own_names else field


def _only(row: Row, field: str, values: dict[str, Any]) -> Any:
    if len(values) == 1:
        return next(iter(values.values()))
    if field == "context":
        return values[min(values, key=lambda path: FIELDS["context"].index(plain_name(path)))]
    if field == "id":
        # A LangSmith experiment names the run and the example: only that is the same next time.
        return values[max(values, key=lambda path: FIELDS["id"].index(plain_name(path)))]
    if all(value == next(iter(values.values())) for value in values.values()):
        return next(iter(values.values()))
    names = " and ".join(repr(path) for path in values)
    raise fault(
        row.where,
        f"{names} both look like the {field}",
        f"say which with fields={{{field!r}: ...}}",
    )


def plain_name(path: str) -> str:
    """A column's name as `FIELDS` would write it."""
    return path.rpartition(".")[2].lower().replace(" ", "_").replace("-", "_")


def is_absent(value: Any) -> bool:
    """Whether a row holds nothing there: no value, an empty text, or NaN.

    pandas writes NaN, which is no JSON, for what is not there.
    """
    # A value may be an array, which `==` would compare item by item.
    return (
        value is None
        or (isinstance(value, str) and not value)
        or (isinstance(value, float) and math.isnan(value))
    )
