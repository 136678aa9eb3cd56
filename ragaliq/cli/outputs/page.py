"""A page to look at; see `ragaliq.reports`."""

from __future__ import annotations

from pathlib import Path

__all__ = ["write_page"]


def write_page(results: Path, path: Path) -> None:
    """Write the results as one HTML page."""
    # jinja2 is only loaded by those who want a page.
    from ragaliq.reports import write_report

    write_report(results, path)
