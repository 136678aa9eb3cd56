"""Files that a command writes: the results file of a run, and the forms that are made of it."""

from __future__ import annotations

import csv
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from ragaliq.cli.console import errors
from ragaliq.cli.resume import Wanted
from ragaliq.core.results import EvaluationResult, passing_scores
from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.records import EvaluationRecord, Summary
from ragaliq.records.results_file import ResultsFile, read_results_file, read_settings

__all__ = [
    "Named",
    "Outputs",
    "Results",
    "Writer",
    "is_same_file",
    "require_writable",
    "safe_cell",
    "write_csv",
    "write_junit",
    "write_page",
    "writer_for",
]


class Outputs:
    """Where the results of a run go.

    Args:
        out: What the user named.
        reads: The command's inputs, by what the user knows them as.

    Raises:
        ConfigurationError: A name does not say the form, there are two results files, or a file
            would be written over that is read.
    """

    def __init__(self, out: Sequence[Path], *, reads: Sequence[Named]) -> None:
        journals = [path for path in out if path.suffix.lower() == ".jsonl"]
        if len(journals) > 1:
            raise ConfigurationError("--out: one .jsonl file is enough")
        self._others: list[tuple[Path, Writer]] = [
            (path, writer_for(path)) for path in out if path not in journals
        ]
        self._wanted: Wanted | None = None
        self.journal: Path | None = journals[0] if journals else None
        if self.journal is None and self._others:
            # The other forms are made from it.
            self.journal = _beside(self._others[0][0], reads)
        written = [*(path for path, _ in self._others), self.journal]
        require_writable([("--out", path) for path in written], read=reads)

    def require_a_choice(self, *, resume: bool) -> None:
        """Refuse to write over results, and to resume without any.

        Raises:
            ConfigurationError: What is to happen is not clear.
        """
        if self.journal is None:
            if resume:
                raise ConfigurationError("--resume needs --out with the results file to continue")
        elif self.journal.exists() and self.journal.stat().st_size and not resume:
            _require_results(self.journal)
            raise ConfigurationError(
                f"{self.journal} already holds the results of an earlier run; continue it with "
                "--resume, delete it, or write to another file"
            )

    def open(
        self,
        settings: dict[str, Any],
        summary: Summary,
        *,
        done: set[str],
        wanted: Wanted | None,
        retry_failed: bool,
    ) -> ResultsFile | None:
        """The results file, with what is in it taken into `summary` and `done`.

        Args:
            settings: How the results are made.
            summary: Takes in what was evaluated before.
            done: Takes in the run ids of that.
            wanted: When resuming: what is to be judged. Results of anything else count for nothing.
            retry_failed: Take out of the file what the judge failed on.

        Raises:
            DatasetError: The file cannot be used, or another run is writing to it.
        """
        if self.journal is None:
            return None
        # Only who holds the file may read what is left to do: another run might be doing it.
        file = ResultsFile(self.journal, settings=settings)
        try:
            if retry_failed:
                file.drop(_is_failure)
            if wanted is not None:
                wanted.sort_out(file)
            self._wanted = wanted
            failed = 0
            for record in self._results(self.journal):
                summary.add(record)
                done.add(record.run.run_id)
                failed += _is_failure(record)
        except BaseException:
            file.close()
            raise
        if failed:
            errors.print(f"the judge failed on {failed:,} earlier cases; --retry-failed for those")
        return file

    def write(self) -> None:
        """Make the other forms of the results file.

        Raises:
            DatasetError: One cannot be written.
        """
        for path, write in self._others:
            if self.journal is not None:
                try:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    write(Results(self.journal.name, self._results(self.journal)), path)
                except OSError as error:
                    raise DatasetError(f"{path}: {error.strerror or error}") from None

    def _results(self, journal: Path) -> Iterator[EvaluationRecord]:
        for record in read_results_file(journal):
            if self._wanted is None or record in self._wanted:
                yield record


def _beside(out: Path, reads: Sequence[Named]) -> Path:
    """The results file that `out` is made from: of the same name, unless that is an input."""
    journal = out.with_suffix(".jsonl")
    if any(path is not None and is_same_file(journal, Path(path)) for _, path in reads):
        return out.with_suffix(".results.jsonl")
    return journal


def _require_results(path: Path) -> None:
    """Never advise to delete a file that is something else.

    Raises:
        ConfigurationError: It is not a results file.
    """
    try:
        read_settings(path)
    except (OSError, DatasetError) as error:
        problem = error if isinstance(error, DatasetError) else f"{path}: {error.strerror}"
        raise ConfigurationError(f"{problem}; it is not changed: write to another file") from None


def _is_failure(record: EvaluationRecord) -> bool:
    return any(result.status.is_failure for result in record.results.values())


class Results(NamedTuple):
    """The records of a run.

    Attributes:
        name: Of the results file they are from.
        records: In the order in which they were judged.
    """

    name: str
    records: Iterable[EvaluationRecord]


# A spreadsheet reads a cell that begins with one of these as a formula, which can send data out.
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


# What XML 1.0 cannot hold, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MAX_CLAIMS = 20


def write_junit(results: Results, path: Path) -> None:
    """Write the results. A low score is a failure, a judge's failure an error."""
    suites: dict[str, ET.Element] = {}
    counts: dict[str, dict[str, int]] = {}
    for record in results.records:
        for name, result in record.results.items():
            suite = suites.setdefault(name, ET.Element("testsuite", name=name))
            kind = _add(suite, record, name, result)
            counted = counts.setdefault(name, dict.fromkeys(("tests", *_KINDS), 0))
            counted["tests"] += 1
            if kind:
                counted[kind] += 1
    root = ET.Element("testsuites", name="ragaliq")
    for name, suite in suites.items():
        suite.attrib.update({kind: str(count) for kind, count in counts[name].items()})
        root.append(suite)
    ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


_KINDS = ("failures", "errors", "skipped")


def _add(suite: ET.Element, record: EvaluationRecord, metric: str, result: EvaluationResult) -> str:
    """Add a test case; returns which count it belongs to."""
    case = ET.SubElement(
        suite,
        "testcase",
        classname=_xml(f"ragaliq.{metric}"),
        name=_xml(record.run.run_id),
        time=f"{result.duration or 0.0:.3f}",
    )
    if result.error_type is not None:
        ET.SubElement(case, "error", type=_xml(result.error_type), message=result.status.value)
        return "errors"
    if result.score is None:
        ET.SubElement(case, "skipped", message=result.status.value)
        return "skipped"
    if result.passed:
        return ""
    passes = passing_scores(result.threshold, higher_is_better=result.higher_is_better)
    message = f"{result.score:.3f}, passes: {passes}"
    failure = ET.SubElement(case, "failure", message=message)
    failure.text = _xml("\n".join(_claims(result)))
    return "failures"


def _claims(result: EvaluationResult) -> Iterator[str]:
    claims = [each for each in enumerate(result.claims, 1) if each[1].verdict != "SUPPORTED"]
    for number, claim in claims[:_MAX_CLAIMS]:
        yield f"{claim.verdict}: {claim.claim or f'claim {number}'}"
    if len(claims) > _MAX_CLAIMS:
        yield f"and {len(claims) - _MAX_CLAIMS} more"


def _xml(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def write_page(results: Results, path: Path) -> None:
    """Write the results as one HTML page."""
    # jinja2 is only loaded by those who want a page.
    from ragaliq.reports import write_report

    write_report(results.records, path, source_name=results.name)


Writer = Callable[[Results, Path], None]

_WRITERS: dict[str, Writer] = {".csv": write_csv, ".html": write_page, ".xml": write_junit}


def writer_for(path: Path) -> Writer:
    """What writes a file of this name.

    Raises:
        ConfigurationError: Nothing does.
    """
    writer = _WRITERS.get(path.suffix.lower())
    if writer is None:
        known = ", ".join([".jsonl", *_WRITERS])
        raise ConfigurationError(f"--out {path}: end the name in one of {known}")
    return writer


Named = tuple[str, Path | str | None]
"""What the user knows a file as (`--out`, `the labels`), and the file; None where none is named."""


def require_writable(writes: Sequence[Named], *, read: Sequence[Named]) -> None:
    """Refuse files that cannot be written, or that would replace what is read or written already.

    Data sets and labels are a person's work and verdicts may have cost money: neither may be lost
    at the end.

    Args:
        writes: The command's outputs; also those that are only added to, whose own check comes
            when they are opened.
        read: Its inputs.

    Raises:
        ConfigurationError: One is another of these files, by whatever path or link, a folder, or
            in no folder that can be written.
    """
    taken = list(read)
    for name, path in [(name, Path(path)) for name, path in writes if path is not None]:
        for other, held in taken:
            if held is not None and is_same_file(path, Path(held)):
                raise ConfigurationError(f"{name} {path} would replace {other}; name another file")
        _require_place(name, path)
        taken.append((name, path))


def _require_place(name: str, path: Path) -> None:
    if os.path.isdir(path):  # noqa: PTH112 - unlike Path's, it takes any path
        raise ConfigurationError(f"{name} {path} is a folder; name a file in it")
    if not os.path.isdir(path.parent):  # noqa: PTH112
        raise ConfigurationError(f"{name} {path}: there is no folder {path.parent}")
    if not os.access(path if os.path.exists(path) else path.parent, os.W_OK):  # noqa: PTH110
        raise ConfigurationError(f"{name} {path} cannot be written")


def is_same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, which need not be there yet."""
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        # At least one of them is not there; a path that cannot be one is refused by who opens it.
        pass
    try:
        return one.resolve() == other.resolve()
    except (OSError, RuntimeError, ValueError):  # links that lead to each other
        return False
