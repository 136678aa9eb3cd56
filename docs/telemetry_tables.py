"""Writes the tables of docs/pages/telemetry.md from ragaliq's own description of what it emits.

python docs/telemetry_tables.py
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from ragaliq.telemetry import catalogue
from ragaliq.telemetry.catalogue import Attribute, Metric

PAGE = Path(__file__).parent / "pages" / "telemetry.md"


def attributes(described: Iterable[Attribute]) -> str:
    """A table of attributes; the page says that one without a type is a string."""
    rows = ["| attribute | |", "|---|---|"]
    for each in described:
        kind = "" if each.type == "string" else f" {each.type}"
        meaning = each.meaning + ("; only with content" if each.content else "")
        rows.append(f"| `{each.name}`{kind} | {meaning} |")
    return "\n".join(rows)


def metrics(described: Iterable[Metric]) -> str:
    """A table of metrics."""
    rows = ["| metric | | attributes |", "|---|---|---|"]
    for each in described:
        names = ", ".join(f"`{name}`" for name in each.attributes)
        kind = f"{each.instrument}, `{each.unit}`"
        rows.append(f"| `{each.name}` {kind} | {each.description} | {names} |")
    return "\n".join(rows)


def tables() -> dict[str, str]:
    """Each table by the name it has on the page."""
    return {
        "root span": attributes(catalogue.ROOT_SPAN),
        "metric span": attributes(catalogue.METRIC_SPAN),
        "claim span": attributes(catalogue.CLAIM_SPAN),
        "event": attributes(each for each in catalogue.EVENT if each not in catalogue.METRIC_SPAN),
        "quality event": attributes(catalogue.QUALITY_EVENT),
        "metrics": metrics(catalogue.METRICS),
    }


def written(page: str) -> str:
    """The page with its tables as they should be.

    Raises:
        ValueError: A table has no place on the page.
    """
    for name, table in tables().items():
        place = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not place.search(page):
            raise ValueError(f"the page has no place for the table {name!r}")
        page = place.sub(lambda match, table=table: f"{match[1]}\n{table}\n\n{match[2]}", page)
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
