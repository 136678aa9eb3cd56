"""Two runs side by side: one HTML page of their scores and of the answers that changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ragaliq._version import __version__
from ragaliq.core.results import EvaluationResult
from ragaliq.records import EvaluationRecord
from ragaliq.reports.contents import judged_pieces
from ragaliq.reports.gathering import claim_sets
from ragaliq.reports.report import page_file, replace_file, template
from ragaliq.reports.wording import why

_KINDS = {"CONTRADICTED": "c", "NOT_ENOUGH_INFO": "n", "UNVERIFIED": "u", "SUPPORTED": "s"}
"""How verdicts are marked."""


class Change(NamedTuple):
    """A case whose scores differ: its question, or its id, and its record in each run."""

    title: str
    records: tuple[EvaluationRecord, EvaluationRecord]


class _Side(NamedTuple):
    """One run's answer: its results, and its text in pieces with the kind of mark of each."""

    results: Sequence[EvaluationResult]
    reasons: Sequence[str]
    pieces: Sequence[tuple[str, str]]


def write_comparison(
    path: Path,
    *,
    runs: tuple[str, str],
    lead: str,
    columns: Sequence[str],
    scores: Sequence[Sequence[str]],
    changes: Sequence[Change],
    more: int,
) -> None:
    """Write the page, which holds everything it shows and loads nothing.

    `scores` has a row a metric, `lead` is the sentence at the top, and `more` cases changed than
    are in `changes`.
    """
    page = template("comparison.html.j2", style=page_file("report.css")).render(
        version=__version__,
        runs=runs,
        lead=lead,
        columns=columns,
        scores=scores,
        changes=[(change.title, list(map(_side, change.records))) for change in changes],
        more=more,
    )
    replace_file(path, page.encode("utf-8", "replace"))


def _side(record: EvaluationRecord) -> _Side:
    claims = next((found.claims for found in claim_sets(record)), ())
    response = record.case.response if record.case else ""
    return _Side(
        results=list(record.results.values()),
        reasons=[why(result) for result in record.results.values() if result.passed is False],
        pieces=[(text, _KINDS.get(v or "", "")) for text, v in judged_pieces(response, claims)],
    )
