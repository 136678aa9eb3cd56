"""Supported kinds of tables, and the columns added to them.

Arrow is imported only when a table is scored.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ragaliq.core.printable import encodable
from ragaliq.core.results import EvaluationResult, JudgeUsage
from ragaliq.errors import ConfigurationError
from ragaliq.evaluators.evaluator import Evaluator
from ragaliq.judges.base import LLMJudge, identity_of

UNREADABLE = object()
"""In the place of a value that its column holds and Python cannot read."""


def _load_arrow() -> Any:
    try:
        import pyarrow as pa
    except ImportError:
        raise ConfigurationError(
            "scoring tables needs pyarrow: pip install 'ragaliq[parquet]'"
        ) from None
    return pa


def _values_of(column: Any) -> list[Any]:
    """Values of a column as Python objects; `UNREADABLE` for a value that cannot be read.

    Engines do not check that a text is UTF-8 or that Python supports a date.
    """
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):
        values = []
        for scalar in column:
            try:
                values.append(scalar.as_py())
            except (ValueError, OverflowError):
                values.append(UNREADABLE)
        return values


@dataclass(frozen=True)
class UnscoredRow:
    """A row without a score: `bad_row`, or `over_budget` if a cap left no money for it.

    The problem names the column and quotes no text of the row.
    """

    status: str
    problem: str


Outcome = Mapping[str, EvaluationResult] | UnscoredRow


class Table(Protocol):
    """A table with columns by position, since two may have the same name."""

    names: list[str]
    rows: int

    def values(self, place: int) -> list[Any]:
        """Values of a column, with None for missing ones."""

    def with_columns(self, columns: Any) -> Any:
        """Copy of the table with the columns of an Arrow table added."""


class _ArrowTable:
    """A `pyarrow.Table` or `pyarrow.RecordBatch`."""

    def __init__(self, table: Any) -> None:
        self.names: list[str] = list(table.schema.names)
        self.rows: int = table.num_rows
        self._table = table

    def values(self, place: int) -> list[Any]:
        return _values_of(self._table.column(place))

    def with_columns(self, columns: Any) -> Any:
        pa = _load_arrow()
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
            values = _values_of(_load_arrow().array(column.array))
        # Convert pandas' several missing values to None, which other libraries know.
        return [
            None if absent else value
            for value, absent in zip(values, column.isna().tolist(), strict=True)
        ]

    def with_columns(self, columns: Any) -> Any:
        import pandas as pd

        frame = self._frame.copy(deep=False)
        for name in columns.schema.names:
            # Arrow's own types, so that every batch has the same ones: pandas would give a column
            # without scores, or with lists of claims, the type object.
            frame[name] = pd.arrays.ArrowExtensionArray(columns.column(name))
        return frame


def table_of(table: object) -> Table:
    """Wrap a table."""
    # A program that has a pandas table has imported pandas.
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(table, pandas.DataFrame):
        return _PandasTable(table)
    pa = _load_arrow()
    if isinstance(table, pa.Table | pa.RecordBatch):
        return _ArrowTable(table)
    advice = "; in Ray Data say batch_format='pyarrow'" if isinstance(table, dict) else ""
    raise ConfigurationError(
        "score_batch takes a pandas.DataFrame, a pyarrow.Table or a pyarrow.RecordBatch, got "
        f"{type(table).__module__}.{type(table).__qualname__}{advice}"
    )


def schema_of(evaluators: Iterable[Evaluator], *, claims: bool) -> Any:
    """Schema of the added columns as a `pyarrow.Schema`."""
    pa = _load_arrow()
    text, number = pa.string(), pa.float64()
    claim = pa.struct(
        [
            ("text", text),
            ("verdict", text),
            ("confidence", number),
            ("evidence_chunk_ids", pa.list_(text)),
        ]
    )
    of_metric = {"score": number, "passed": pa.bool_(), "status": text, "error": text}
    if claims:
        of_metric["claims"] = pa.list_(claim)
    of_row = {"judge": text, "model": text, "tokens": pa.int64(), "cost_usd": number}
    fields = [(f"{each.name}_{name}", of_metric[name]) for each in evaluators for name in of_metric]
    fields += [(f"ragaliq_{name}", kind) for name, kind in of_row.items()]
    return pa.schema(fields)


def columns_of(rows: Iterable[Sequence[Any]], judge: LLMJudge, schema: Any) -> Any:
    """Added columns as a `pyarrow.Table`, from the cells of `cells_of`."""
    pa = _load_arrow()
    name, model, *_ = identity_of(judge)
    columns: list[list[Any]] = [[] for _ in schema]
    for row in rows:
        for column, cell in zip(columns, (*row[:-2], name, model, *row[-2:]), strict=True):
            column.append(cell)
    arrays = [pa.array(c, field.type) for c, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def cells_of(outcome: Outcome, evaluators: Sequence[Evaluator], *, claims: bool) -> list[Any]:
    """Added cells of one row, without those of the judge."""
    cells: list[Any] = []
    spent = JudgeUsage()
    for evaluator in evaluators:
        details: list[dict[str, Any]] = []
        if isinstance(outcome, UnscoredRow):
            cells += [None, None, outcome.status, encodable(outcome.problem)]
        else:
            result = outcome[evaluator.name]
            spent += result.usage
            error = None if result.error is None else encodable(result.error)
            cells += [result.score, result.passed, result.status.value, error]
            details = [
                {
                    "text": encodable(claim.claim),
                    "verdict": claim.verdict,
                    "confidence": claim.confidence,
                    # A chunk's id is a number or a string; a column has one type.
                    "evidence_chunk_ids": [encodable(str(c)) for c in claim.supporting_chunk_ids],
                }
                for claim in result.claims
            ]
        if claims:
            cells.append(details)
    return [*cells, spent.total_tokens, spent.cost_usd]
