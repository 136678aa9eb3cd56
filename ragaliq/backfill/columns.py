"""Which column of a table is which field of a case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragaliq.datasets.cases import FIELDS, plain_name, recognised, require_known
from ragaliq.errors import ConfigurationError, DatasetError

__all__ = ["Place", "find_columns"]

# What scores depend on. The others only label a case, and their odd values would spoil rows for
# nothing: they are read where `columns` names them.
_RECOGNISED = ("query", "context", "response", "expected_answer", "expected_facts")
_SHOWN = 30


@dataclass(frozen=True)
class Place:
    """Where a field is: a column, and in it the names of nested fields.

    Attributes:
        column: The column's number.
        path: What to look up in its values, one after the other.
        name: As the user would write it.
    """

    column: int
    path: tuple[str, ...]
    name: str


def find_columns(
    names: Sequence[str], own_names: Mapping[str, str], *, needed: Sequence[str]
) -> dict[str, Place]:
    """Find each field's column.

    Args:
        names: The table's columns.
        own_names: Field to column; a nested field with a dot.
        needed: Fields that must be there.

    Raises:
        ConfigurationError: `own_names` has a field that cases do not have, or a column that the
            table does not have.
        DatasetError: A needed field is missing, or two columns claim one.
    """
    _require_names(own_names)
    found = {field: _named(field, name, names) for field, name in own_names.items()}
    for field in _RECOGNISED:
        if field not in own_names:
            place = _recognised(field, names)
            found.update({} if place is None else {field: place})
    for field in needed:
        if field not in found:
            raise DatasetError(
                f"no column was found for the {field}: {_present(names)}. Name it one of "
                f"{', '.join(FIELDS[field])}, or say which it is with columns={{{field!r}: ...}}"
            )
    return found


def _require_names(own_names: object) -> None:
    if not isinstance(own_names, Mapping):
        raise ConfigurationError(
            "columns must be a mapping of fields to columns, such as {'query': 'frage'}, "
            f"got {type(own_names).__name__}"
        )
    require_known(own_names, argument="columns")
    for field, name in own_names.items():
        if not isinstance(name, str):
            raise ConfigurationError(
                f"columns: the {field}'s column must be its name as a text, got {name!r}"
            )


def _named(field: str, name: str, names: Sequence[str]) -> Place:
    if names.count(name) == 1:
        return Place(names.index(name), (), name)
    if name in names:
        raise DatasetError(f"{names.count(name)} columns are called {name!r}; rename all but one")
    root, *path = name.split(".")
    if path and names.count(root) == 1:
        return Place(names.index(root), tuple(path), name)
    raise ConfigurationError(
        f"columns: there is no column {name!r} for the {field}: {_present(names)}"
    )


def _recognised(field: str, names: Sequence[str]) -> Place | None:
    meant = [place for place, name in enumerate(names) if recognised(name) == field]
    if field == "context" and meant:
        # Other tools keep an ideal context beside the one that was retrieved.
        meant = [min(meant, key=lambda place: FIELDS["context"].index(plain_name(names[place])))]
    if len(meant) > 1:
        several = " and ".join(repr(names[place]) for place in meant)
        raise DatasetError(
            f"the columns {several} both look like the {field}; say which with "
            f"columns={{{field!r}: ...}}"
        )
    return Place(meant[0], (), names[meant[0]]) if meant else None


def _present(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:40]) for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"the table's columns are {shown}{more}" if names else "the table has no columns"
