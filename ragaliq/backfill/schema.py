"""What is added to a table: the same columns and types for every batch, whatever is in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ragaliq.backfill.arrow import load_arrow, valid_text
from ragaliq.backfill.cases import BadRow
from ragaliq.core.evaluator import Evaluator, judge_name
from ragaliq.core.results import ClaimDetail, EvaluationResult, JudgeUsage
from ragaliq.judges.base import LLMJudge

__all__ = ["BAD_ROW", "Outcome", "cells_of", "columns_of", "schema_of"]

BAD_ROW = "bad_row"
"""The status of every metric of a row that is no case."""

Outcome = Mapping[str, EvaluationResult] | BadRow


def schema_of(evaluators: Iterable[Evaluator], *, claims: bool, prefix: str) -> Any:
    """The added columns as a `pyarrow.Schema`."""
    pa = load_arrow()
    claim = pa.struct(
        [
            ("text", pa.string()),
            ("verdict", pa.string()),
            ("confidence", pa.float64()),
            ("evidence_chunk_ids", pa.list_(pa.string())),
        ]
    )
    fields: list[tuple[str, Any]] = []
    for evaluator in evaluators:
        fields += [
            (f"{evaluator.name}_score", pa.float64()),
            (f"{evaluator.name}_passed", pa.bool_()),
            (f"{evaluator.name}_status", pa.string()),
            (f"{evaluator.name}_error", pa.string()),
        ]
        if claims:
            fields.append((f"{evaluator.name}_claims", pa.list_(claim)))
    fields += [
        ("ragaliq_judge", pa.string()),
        ("ragaliq_model", pa.string()),
        ("ragaliq_tokens", pa.int64()),
        ("ragaliq_cost_usd", pa.float64()),
    ]
    return pa.schema([(prefix + name, kind) for name, kind in fields])


def columns_of(rows: Iterable[Sequence[Any]], judge: LLMJudge, schema: Any) -> Any:
    """The added columns as a `pyarrow.Table`.

    Args:
        rows: What `cells_of` made of each outcome.
        judge: Who was asked.
        schema: The columns, from `schema_of`.
    """
    pa = load_arrow()
    model = getattr(judge, "model", None)
    decider = [judge_name(judge), model if isinstance(model, str) else None]
    columns: list[list[Any]] = [[] for _ in schema]
    for row in rows:
        for column, cell in zip(columns, (*row[:-2], *decider, *row[-2:]), strict=True):
            column.append(cell)
    arrays = [pa.array(c, field.type) for c, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def cells_of(outcome: Outcome, evaluators: Sequence[Evaluator], *, claims: bool) -> list[Any]:
    """What is added to a row, but for who was asked."""
    cells: list[Any] = []
    for evaluator in evaluators:
        if isinstance(outcome, BadRow):
            cells += [None, None, BAD_ROW, valid_text(outcome.problem)]
            details: tuple[ClaimDetail, ...] = ()
        else:
            result = outcome[evaluator.name]
            error = None if result.error is None else valid_text(result.error)
            cells += [result.score, result.passed, result.status.value, error]
            details = result.claims
        if claims:
            cells.append([_claim(detail) for detail in details])
    return cells + _spent(outcome)


def _claim(detail: ClaimDetail) -> dict[str, Any]:
    return {
        "text": valid_text(detail.claim),
        "verdict": detail.verdict,
        "confidence": detail.confidence,
        # A chunk's id is a number or a text; a column has one type.
        "evidence_chunk_ids": [valid_text(str(chunk)) for chunk in detail.supporting_chunk_ids],
    }


def _spent(outcome: Outcome) -> list[Any]:
    results = [] if isinstance(outcome, BadRow) else outcome.values()
    usage = sum((result.usage for result in results), JudgeUsage())
    return [usage.total_tokens, usage.cost_usd]
