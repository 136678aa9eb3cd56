"""A table for spreadsheets: a row a case, or a judging where cases are judged several times."""

from __future__ import annotations

import csv
from itertools import chain
from pathlib import Path

from ragaliq.cli.outputs.results import Results
from ragaliq.core.results import EvaluationResult
from ragaliq.records import EvaluationRecord

__all__ = ["safe_cell", "write_csv"]

# A spreadsheet takes a cell that begins so for a formula, and a formula can send data away.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def write_csv(results: Results, path: Path) -> None:
    """Write the results with the columns `METRIC.score`, `.passed`, `.status` for each metric.

    With texts in the records also question, answer, and the claims that are not supported.
    """
    rows = iter(results.records)
    first = next(rows, None)
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.writer(file)
        if first is None:
            table.writerow(["id"])
            return
        names = list(first.results)
        fields = ("score", "passed", "status")
        header = [f"{name}.{field}" for name in names for field in fields]
        table.writerow(["id", "query", "response", *header, "not_supported"])
        for record in chain([first], rows):
            table.writerow([safe_cell(cell) for cell in _cells(record, names)])


def _cells(record: EvaluationRecord, names: list[str]) -> list[str]:
    query = record.case.query if record.case else ""
    response = record.case.response if record.case else ""
    cells = [record.run.run_id, query, response]
    for name in names:
        cells += _metric_cells(record.results.get(name))
    return [*cells, " | ".join(_not_supported(record))]


def _metric_cells(result: EvaluationResult | None) -> list[str]:
    if result is None:
        return ["", "", ""]
    score = "" if result.score is None else f"{result.score:.6g}"
    passed = "" if result.passed is None else str(result.passed).lower()
    return [score, passed, result.status.value]


def _not_supported(record: EvaluationRecord) -> list[str]:
    for result in record.results.values():
        if result.claims:
            claims = [claim for claim in result.claims if claim.verdict != "SUPPORTED"]
            return [f"{claim.verdict}: {claim.claim}" for claim in claims if claim.claim]
    return []


def safe_cell(text: str) -> str:
    """`text`, with a quote before what a spreadsheet would take for a formula."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
