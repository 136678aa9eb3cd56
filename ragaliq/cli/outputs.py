"""Output files of a command: the results file, and other formats made from it."""

from __future__ import annotations

import csv
import json
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ragaliq.core.files import file_errors, owner_only
from ragaliq.core.results import EvaluationResult
from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.offline.journal import EvaluationJournal
from ragaliq.records import EvaluationRecord
from ragaliq.records.results_file import read_settings
from ragaliq.reports.views import row_of
from ragaliq.reports.wording import why

Named = tuple[str, Path | str | None]
"""What the user knows a file as (`--out`, `the labels`), and the file; None where none is named."""


class Outputs:
    """Output files of a run: `results_path`, formats made from it, and `summary`, for the figures.

    Args:
        out: The paths that the user named.
        reads: The command's inputs, by the user's names for them.
        resume: Whether to continue an existing results file.
        summary: The files for the figures.
    """

    def __init__(
        self, out: Sequence[Path], *, reads: Sequence[Named], resume: bool, summary: Sequence[Path]
    ) -> None:
        journals = [path for path in out if path.suffix.lower() == ".jsonl"]
        if len(journals) > 1:
            raise ConfigurationError("--out: one .jsonl file is enough")
        self.summary = summary
        self._others = [path for path in out if path not in journals]
        for path in self._others:
            if path.suffix.lower() not in _WRITERS:
                known = ", ".join([".jsonl", *_WRITERS])
                raise ConfigurationError(f"--out {path}: end the name in one of {known}")
        for path in summary:
            if path.suffix.lower() not in (".json", ".md"):
                raise ConfigurationError(f"--summary {path}: end the name in .json or .md")
        self.results_path: Path | None = journals[0] if journals else None
        if self.results_path is None and self._others:
            # The other formats are made from it.
            self.results_path = self._others[0].with_suffix(".jsonl")
            if any(path and is_same_file(self.results_path, Path(path)) for _, path in reads):
                self.results_path = self._others[0].with_suffix(".results.jsonl")
        written = [("--out", path) for path in (*self._others, self.results_path)]
        require_writable([*written, *(("--summary", path) for path in summary)], read=reads)
        if self.results_path is None:
            if resume:
                raise ConfigurationError("--resume needs --out with the results file to continue")
        elif self.results_path.exists() and self.results_path.stat().st_size and not resume:
            try:
                read_settings(self.results_path)
            except DatasetError as error:  # never advise to delete another kind of file
                raise ConfigurationError(
                    f"{error}; it is not changed: write to another file"
                ) from None
            raise ConfigurationError(
                f"{self.results_path} already holds the results of an earlier run; continue it "
                "with --resume, delete it, or write to another file"
            )

    def write(self, journal: EvaluationJournal, goals: Goals) -> list[Path]:
        """Write the other formats of the results file, and return all files with results."""
        for path in self._others:
            with file_errors(path):
                _WRITERS[path.suffix.lower()](path, journal.results(), journal.path.name, goals)
        return [journal.path, *self._others]


Goals = Sequence[tuple[str, str]]
"""What was asked of a run, each with what is wrong, empty where nothing is."""


# A spreadsheet treats a cell that begins like this as a formula, which can send data out. Some skip
# blanks and control characters first, and accept full-width signs.
_FORMULA = re.compile(r"[\t\r\n]|[\s\x00-\x1f\u200b-\u200f\ufeff]*[=+\-@＝＋－＠]")


def _write_csv(path: Path, records: Iterable[EvaluationRecord], *_: object) -> None:
    """One row for each result in the order of the input: texts, scores, reasons, input columns."""
    found: list[dict[str, Any]] = []
    columns: dict[str, None] = {"row": None, "id": None}
    for record in records:
        cells = {"row": record.row, **row_of(record.run.run_id, record.case, record.results)}
        columns |= dict.fromkeys(cells)
        found.append(cells)
    found.sort(key=lambda cells: cells["row"] or 0)
    with open(path, "w", encoding="utf-8-sig", newline="", opener=owner_only) as file:
        # Quote every cell: a program that splits at semicolons would split a text at one.
        table = csv.writer(file, quoting=csv.QUOTE_ALL)
        table.writerow([_cell(column) for column in columns])
        for cells in found:
            table.writerow([_cell(cells.get(column)) for column in columns])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    text = str(value)
    return f"'{text}" if isinstance(value, str) and _FORMULA.match(text) else text


# Characters that XML 1.0 cannot contain, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MAX_CLAIMS = 20


def _write_junit(path: Path, records: Iterable[EvaluationRecord], _: str, goals: Goals) -> None:
    """Write JUnit: a low score is a failure, a judge's failure an error; a suite per metric."""
    suites: dict[str, ET.Element] = {}
    for record in sorted(records, key=lambda record: record.row or 0):
        for name, result in record.results.items():
            suite = suites.setdefault(name, ET.Element("testsuite", name=name))
            case = ET.SubElement(
                suite,
                "testcase",
                classname=_xml(f"ragaliq.{name}"),
                name=_xml(record.run.run_id),
                time=f"{result.duration or 0.0:.3f}",
            )
            if result.error_type is not None:
                error, status = _xml(result.error_type), result.status.value
                ET.SubElement(case, "error", type=error, message=status)
            elif result.score is None:
                ET.SubElement(case, "skipped", message=result.status.value)
            elif not result.passed:
                failure = ET.SubElement(case, "failure", message=_xml(why(result)))
                failure.text = _xml("\n".join(_claims(result)))
    if goals:
        suites["goals"] = ET.Element("testsuite", name="goals")
    for goal, problem in goals:
        case = ET.SubElement(suites["goals"], "testcase", classname="ragaliq.goals", name=goal)
        if problem:
            ET.SubElement(case, "failure", message=problem)
    root = ET.Element("testsuites", name="ragaliq")
    for suite in suites.values():
        counts = {"tests": "testcase", "failures": ".//failure", "errors": ".//error"}
        for kind, children in {**counts, "skipped": ".//skipped"}.items():
            suite.set(kind, str(len(suite.findall(children))))
        root.append(suite)
    with open(path, "wb", opener=owner_only) as file:
        ET.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)


def _claims(result: EvaluationResult) -> Iterator[str]:
    claims = [each for each in enumerate(result.claims, 1) if each[1].verdict != "SUPPORTED"]
    for number, claim in claims[:_MAX_CLAIMS]:
        yield f"{claim.verdict}: {claim.claim or f'claim {number}'}"
    if len(claims) > _MAX_CLAIMS:
        yield f"and {len(claims) - _MAX_CLAIMS} more"


def _xml(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _write_page(path: Path, records: Iterable[EvaluationRecord], name: str, _: Goals) -> None:
    # Imported only for a page: it loads jinja2.
    from ragaliq.reports import write_report

    write_report(records, path, source_name=name)


_WRITERS: dict[str, Callable[[Path, Iterable[EvaluationRecord], str, Goals], None]] = {
    ".csv": _write_csv,
    ".html": _write_page,
    ".xml": _write_junit,
}


def require_writable(writes: Sequence[Named], *, read: Sequence[Named]) -> None:
    """Refuse files that cannot be written, or that would overwrite an input or output.

    Data sets and labels are a person's work and verdicts may have cost money: neither may be lost.
    Append-only files are checked here too, and again when they are opened.
    """
    taken = list(read)
    for name, path in [(name, Path(path)) for name, path in writes if path is not None]:
        for other, held in taken:
            if held is not None and is_same_file(path, Path(held)):
                raise ConfigurationError(f"{name} {path} would replace {other}; name another file")
        # Unlike Path's, the functions of os.path take any path.
        if os.path.isdir(path):  # noqa: PTH112
            raise ConfigurationError(f"{name} {path} is a folder; name a file in it")
        if not os.path.isdir(path.parent):  # noqa: PTH112
            raise ConfigurationError(f"{name} {path}: there is no folder {path.parent}")
        if not os.access(path if os.path.exists(path) else path.parent, os.W_OK):  # noqa: PTH110
            raise ConfigurationError(f"{name} {path} cannot be written")
        try:  # a name that is too long even for the file that is written first
            os.lstat(path.with_name(f".{path.name}.part"))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise ConfigurationError(f"{name} {path}: {error.strerror}") from None
        taken.append((name, path))


def is_same_file(one: Path, other: Path) -> bool:
    """True if two paths lead to one file, which need not exist yet."""
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        # At least one of them does not exist; opening an invalid path raises later.
        pass
    try:
        return one.resolve() == other.resolve()
    except (OSError, RuntimeError, ValueError):  # links that lead to each other
        return False
