"""A page to look at; see `ragaliq.reports`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ragaliq.sinks import EvaluationRecord

__all__ = ["write_page"]


def write_page(records: Iterable[EvaluationRecord], path: Path) -> None:
    """Write the records as one HTML page."""
    # jinja2 is only loaded by those who want a page.
    from ragaliq.reports import write_report

    write_report(records, path)
