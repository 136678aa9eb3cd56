"""A page to look at; see `ragaliq.reports`."""

from __future__ import annotations

from pathlib import Path

from ragaliq.cli.outputs.results import Results

__all__ = ["write_page"]


def write_page(results: Results, path: Path) -> None:
    """Write the results as one HTML page."""
    # jinja2 is only loaded by those who want a page.
    from ragaliq.reports import write_report

    write_report(results.records, path, source_name=results.name)
