"""The kinds of tables that are taken, and how columns are read from and added to each."""

from __future__ import annotations

import sys
from typing import Any, Protocol

from ragaliq.backfill.arrow import load_arrow, values_of
from ragaliq.errors import ConfigurationError

__all__ = ["Table", "table_of"]


class Table(Protocol):
    """A table whose columns are known by their place, since two may have one name."""

    names: list[str]
    rows: int

    def values(self, place: int) -> list[Any]:
        """A column's values; None where there is none."""

    def with_columns(self, columns: Any) -> Any:
        """The table with the columns of an Arrow table after its own; itself stays as it is."""


class _ArrowTable:
    """A `pyarrow.Table` or `pyarrow.RecordBatch`."""

    def __init__(self, table: Any) -> None:
        self.names: list[str] = list(table.schema.names)
        self.rows: int = table.num_rows
        self._table = table

    def values(self, place: int) -> list[Any]:
        return values_of(self._table.column(place))

    def with_columns(self, columns: Any) -> Any:
        pa = load_arrow()
        own = self._table.schema
        schema = pa.schema([*own, *columns.schema], metadata=own.metadata)
        arrays = [self._table.column(place) for place in range(len(own))]
        if isinstance(self._table, pa.Table):
            return pa.Table.from_arrays([*arrays, *columns.columns], schema=schema)
        new = [column.combine_chunks() for column in columns.columns]
        return pa.RecordBatch.from_arrays([*arrays, *new], schema=schema)


class _PandasTable:
    """A `pandas.DataFrame`."""

    def __init__(self, frame: Any) -> None:
        self.names = [str(name) for name in frame.columns]
        self.rows = len(frame)
        self._frame = frame

    def values(self, place: int) -> list[Any]:
        column = self._frame.iloc[:, place]
        try:
            values = column.tolist()
        except (ValueError, OverflowError):  # it is Arrow's inside
            values = values_of(load_arrow().array(column.array))
        # Of the several things that pandas has for "nothing", None is the one others know.
        return [
            None if absent else value
            for value, absent in zip(values, column.isna().tolist(), strict=True)
        ]

    def with_columns(self, columns: Any) -> Any:
        import pandas as pd

        frame = self._frame.copy(deep=False)
        for name in columns.schema.names:
            # Arrow's own types, so that every batch has the same ones: pandas would take a column
            # without any score for one of objects, and a list of claims always.
            frame[name] = pd.arrays.ArrowExtensionArray(columns.column(name))
        return frame


def table_of(table: object) -> Table:
    """What was passed in, readable.

    Raises:
        ConfigurationError: It is no table of a known kind.
    """
    # Whoever has such a table has loaded its library.
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(table, pandas.DataFrame):
        return _PandasTable(table)
    pa = load_arrow()
    if isinstance(table, pa.Table | pa.RecordBatch):
        return _ArrowTable(table)
    advice = "; in Ray Data say batch_format='pyarrow'" if isinstance(table, dict) else ""
    raise ConfigurationError(
        "score_batch takes a pandas.DataFrame, a pyarrow.Table or a pyarrow.RecordBatch, got "
        f"{type(table).__module__}.{type(table).__qualname__}{advice}"
    )
