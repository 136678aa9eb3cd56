"""What the tables of the telemetry page promise."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

PAGE = (Path(__file__).parents[2] / "docs/pages/telemetry.md").read_text()

# What comes before each table.
_TABLES = {
    "root": "one for each evaluated run:",
    "metric": "`evaluation {metric}`, its child:",
    "claim": "once for metrics that share a check:",
    "event": "and `ragaliq.claim.texts`:",
    "quality": "WARN where it became worse:",
    "metrics": "## Metrics",
}
# What the event does not have of the metric's span, as the page says.
_SPAN_ONLY = {
    "openinference.span.kind",
    "ragaliq.claim.confidences",
    "ragaliq.claim.deciders",
    "ragaliq.claim.texts",
}


class Attribute(NamedTuple):
    name: str
    type: str
    content: bool


class Metric(NamedTuple):
    name: str
    instrument: str
    unit: str
    description: str
    attributes: list[str]


def _rows(table):
    after = PAGE[PAGE.index(_TABLES[table]) :]
    lines = after[after.index("|---") :].split("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def attributes(carrier):
    """The attributes of a span or event: `root`, `metric`, `claim`, `event` or `quality`."""
    found = []
    for named, meaning in _rows(carrier):
        _, name, kind = named.split("`")
        content = meaning.endswith("; only with content")
        found.append(Attribute(name, kind.strip() or "string", content))
    if carrier == "event":
        found += [each for each in attributes("metric") if each.name not in _SPAN_ONLY]
    return found


def metrics():
    """The metrics, links in their descriptions as plain text."""
    found = []
    for named, description, attributes in _rows("metrics"):
        _, name, instrument, unit, _ = named.split("`")
        found.append(
            Metric(
                name,
                instrument.strip(" ,"),
                unit,
                re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", description),
                re.findall("`([^`]+)`", attributes),
            )
        )
    return found
