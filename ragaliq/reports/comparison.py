"""Comparison of two runs: the change of each metric, as a page, JSON, Markdown and JUnit."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ragaliq._version import __version__
from ragaliq.core.files import replace_file
from ragaliq.core.results import EvaluationResult
from ragaliq.records import EvaluationRecord
from ragaliq.reports.contents import judged_pieces
from ragaliq.reports.gathering import claim_sets
from ragaliq.reports.report import page_file, template
from ragaliq.reports.wording import interval_text, why
from ragaliq.statistics import PairedDifference

_KINDS = {"CONTRADICTED": "c", "NOT_ENOUGH_INFO": "n", "UNVERIFIED": "u", "SUPPORTED": "s"}
"""Marks of the verdicts on the page."""


class Change(NamedTuple):
    """A case whose scores differ: its question or id, and its record in each run."""

    title: str
    records: tuple[EvaluationRecord, EvaluationRecord]


class _Side(NamedTuple):
    """Answer of one run: its results, and its text in pieces with the mark of each."""

    results: Sequence[EvaluationResult]
    reasons: Sequence[str]
    pieces: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricChange:
    """Change of one metric's scores over the cases that both runs scored.

    Attributes:
        name: The metric.
        higher_is_better: False where a low score is good.
        before: The mean of the first run; None if no case is scored in both.
        after: The mean of the second run, likewise.
        pairs: The change case by case, likewise.
        problem: The gate's objection; empty if the gate passes or was not requested.
    """

    name: str
    higher_is_better: bool
    before: float | None = None
    after: float | None = None
    pairs: PairedDifference | None = None
    problem: str = ""

    @property
    def word(self) -> str:
        """`better`, `worse`, or `no clear change` where the interval holds 0."""
        if self.pairs is None:
            return "not scored"
        if not self.pairs.is_clear:
            return "no clear change"
        return "better" if (self.pairs.difference.value > 0.0) == self.higher_is_better else "worse"

    @property
    def loss(self) -> float:
        """Distance that the mean moved in the bad direction."""
        moved = 0.0 if self.pairs is None else self.pairs.difference.value
        return -moved if self.higher_is_better else moved

    def cells(self) -> tuple[str, ...]:
        """Table row, in the order of `columns_of`."""
        if self.pairs is None or self.before is None or self.after is None:
            return (self.name, "", "", "", "", "", "", self.word)
        change = self.pairs.difference
        return (
            self.name,
            f"{self.before:.2f}",
            f"{self.after:.2f}",
            f"{change.value:+.2f}",
            interval_text(change, signed=True),
            f"{self.pairs.higher:,}",
            f"{self.pairs.lower:,}",
            self.word,
        )


def columns_of(runs: tuple[str, str]) -> tuple[str, ...]:
    """The columns of a table of changes."""
    return ("metric", *runs, "change", "95 % interval", "up", "down", "verdict")


class Comparison(NamedTuple):
    """Two runs: their names, the sentence at the top, and how each metric changed."""

    runs: tuple[str, str]
    lead: str
    metrics: Sequence[MetricChange]

    def write(self, path: Path, changes: Sequence[Change], more: int) -> None:
        """Write the format of the path's ending: .html, .json, .md or .xml (JUnit)."""
        if path.suffix.lower() in (".html", ".htm"):
            text = template("comparison.html.j2", style=page_file("report.css")).render(
                version=__version__,
                runs=self.runs,
                lead=self.lead,
                columns=columns_of(self.runs),
                scores=[metric.cells() for metric in self.metrics],
                changes=[(change.title, list(map(_side, change.records))) for change in changes],
                more=more,
            )
        else:
            forms = {".json": self._json, ".md": self._markdown, ".xml": self._junit}
            text = forms[path.suffix.lower()]()
        replace_file(path, text)

    def _json(self) -> str:
        metrics = {}
        for each in self.metrics:
            change = each.pairs.difference if each.pairs else None
            metrics[each.name] = {
                "verdict": each.word,
                "higher_is_better": each.higher_is_better,
                "pairs": change.n if change else 0,
                "before": each.before,
                "after": each.after,
                "change": change and change.value,
                "interval": change and change.interval,
                "interval_method": change and change.method,
                "up": each.pairs and each.pairs.higher,
                "down": each.pairs and each.pairs.lower,
                "problem": each.problem,
            }
        found = {"runs": self.runs, "lead": self.lead, "metrics": metrics}
        return json.dumps(found, indent=2, ensure_ascii=False) + "\n"

    def _markdown(self) -> str:
        columns = columns_of(self.runs)
        rows = [columns, ["---"] * len(columns), *(each.cells() for each in self.metrics)]
        table = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
        problems = [f"- **{each.problem}**" for each in self.metrics if each.problem]
        return "\n".join([f"{self.lead}.", "", *table, "", *problems]).rstrip() + "\n"

    def _junit(self) -> str:
        failed = [each for each in self.metrics if each.problem]
        suite = ET.Element(
            "testsuite",
            name="ragaliq compare",
            tests=str(len(self.metrics)),
            failures=str(len(failed)),
        )
        for each in self.metrics:
            case = ET.SubElement(suite, "testcase", classname="ragaliq.compare", name=each.name)
            if each.problem:
                ET.SubElement(case, "failure", message=each.problem)
            elif each.pairs is None:
                ET.SubElement(case, "skipped", message="no case is scored in both runs")
        return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _side(record: EvaluationRecord) -> _Side:
    claims = next((found.claims for found in claim_sets(record)), ())
    response = record.case.response if record.case else ""
    return _Side(
        results=list(record.results.values()),
        reasons=[why(result) for result in record.results.values() if result.passed is False],
        pieces=[(text, _KINDS.get(v or "", "")) for text, v in judged_pieces(response, claims)],
    )
