"""`ragaliq cases`: evaluated answers as test cases for every release."""

from __future__ import annotations

import heapq
import json
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from ragaliq.cli.console import ExitCode, errors, output
from ragaliq.cli.options import Pipeline, Since, Until
from ragaliq.cli.outputs import require_writable
from ragaliq.core.files import file_errors, owner_only
from ragaliq.datasets.rows import is_place
from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.records import EvaluationRecord
from ragaliq.records.reading import records_of
from ragaliq.records.sqlite_file import parse_location
from ragaliq.reports.wording import number_of


def cases(
    source: Annotated[
        str,
        typer.Argument(
            help="A store (sqlite:///PATH or its file), or a results .jsonl file, with texts.",
            metavar="SOURCE",
        ),
    ],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="The .jsonl file to write.")],
    failed: Annotated[
        bool, typer.Option("--failed", help="Only answers that fail a metric.")
    ] = False,
    unsure: Annotated[
        bool,
        typer.Option("--unsure", help="Only answers with a claim that the judge is unsure of."),
    ] = False,
    random: Annotated[
        int | None, typer.Option(min=1, help="Draw this many answers, with equal chances.")
    ] = None,
    stratified: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Draw this many, in equal parts from the failed, unsure, passed and "
            "unscored answers of each pipeline.",
        ),
    ] = None,
    since: Since = None,
    until: Until = None,
    pipeline: Pipeline = None,
) -> int:
    """Turn evaluated answers into regression cases. Drawn cases keep their weights."""
    if random is not None and stratified is not None:
        raise ConfigurationError("--random and --stratified exclude each other")
    if out.suffix.lower() != ".jsonl":
        raise ConfigurationError(f"--out {out}: cases go to a .jsonl file")
    file = parse_location(source) if source.startswith("sqlite:") else Path(source)
    require_writable([("--out", out)], read=[("the results", file)])
    if out.exists():  # people add expected answers to such files
        raise ConfigurationError(f"{out} exists; delete it, or name another file")

    def records() -> Generator[EvaluationRecord, None, None]:
        return records_of(source, since=since, until=until, pipeline=pipeline)

    wanted = {name for name, asked in (("failed", failed), ("unsure", unsure)) if asked}
    answers, without_text = _answers(records())
    found = {name: each for name, each in answers.items() if not wanted or wanted & each.kinds}
    if not found:
        raise DatasetError(f"{source}: {_nothing(answers, without_text, wanted)}")
    if random is not None:
        found = _drawn(found, random, by_kind=False)
    elif stratified is not None:
        found = _drawn(found, stratified, by_kind=True)
    # Close it here: the garbage collector may run in a thread that SQLite refuses.
    with closing(records()) as to_write:
        written = _write(out, to_write, found)
    kinds = Counter(kind for each in found.values() for kind in each.kinds)
    counts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()))
    of = number_of(len(answers), "answer")
    output.print(f"{out}: {number_of(written, 'case')} of {of} ({counts})")
    if without_text:
        errors.print(f"answers without texts in the results, which give no case: {without_text:,}")
    return ExitCode.OK


class _Answer(NamedTuple):
    """An answer's data before its texts are read again.

    Its `kinds` are `failed`, `unsure` or both; else `passed` or `unscored`. Its `probability` is
    the chance of being in the source.
    """

    evaluation_id: str
    kinds: frozenset[str]
    pipeline: str
    probability: float


def _answers(records: Iterator[EvaluationRecord]) -> tuple[dict[str, _Answer], int]:
    """Answers with texts by their case's id, as evaluated last; and the number without."""
    found: dict[str, _Answer] = {}
    without_text: set[str] = set()
    for record in records:
        results, name = record.results, _case_id(record)
        if record.case is None or not (record.case.query and record.case.response):
            without_text.add(name)
            continue
        kinds = set()
        if any(result.passed is False for result in results.values()):
            kinds.add("failed")
        if any(claim.is_unsure for result in results.values() for claim in result.claims):
            kinds.add("unsure")
        if not kinds:
            scored = any(result.score is not None for result in results.values())
            kinds.add("passed" if scored else "unscored")
        run = record.run
        found[name] = _Answer(
            record.evaluation_id, frozenset(kinds), run.pipeline, run.sampling_probability
        )
    return found, len(without_text - found.keys())


def _case_id(record: EvaluationRecord) -> str:
    name = record.observation
    # Rows without ids have their places in some file as ids.
    return f"{record.run.pipeline} {name}" if is_place(name) and record.run.pipeline else name


def _nothing(answers: Mapping[str, _Answer], without_text: int, wanted: set[str]) -> str:
    if answers:
        kinds = {"failed": "fails a threshold", "unsure": "has an unsure claim"}
        what = " or ".join(kinds[kind] for kind in sorted(wanted))
        return f"{number_of(len(answers), 'answer')}, of which none {what}"
    if without_text:
        return (
            f"it holds no texts of its {number_of(without_text, 'answer')}; evaluate with "
            "capture_content=True or RAGALIQ_CAPTURE_CONTENT=true, and without --no-text"
        )
    return "it holds no answers"


def _drawn(found: Mapping[str, _Answer], number: int, *, by_kind: bool) -> dict[str, _Answer]:
    """Draw a random sample without replacement, each answer with its chance of inclusion.

    The chance is the answer's own, times the drawn share of its stratum (Cochran 1977, "Sampling
    Techniques", sections 2.3 and 5.2). The draw depends on the ids alone, so the same results give
    the same cases.
    """
    strata: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, each in found.items():
        kind = next(k for k in ("failed", "unsure", "passed", "unscored") if k in each.kinds)
        strata[(each.pipeline, kind) if by_kind else ()].append(name)
    if number < len(strata):
        raise ConfigurationError(
            f"--stratified {number}: there are {len(strata)} strata; ask for at least as many cases"
        )
    drawn: dict[str, _Answer] = {}
    left = number
    # Small strata first: the rest of their part goes to the others.
    for place, names in enumerate(sorted(strata.values(), key=len)):
        part = min(len(names), left // (len(strata) - place))
        left -= part
        for name in heapq.nsmallest(part, names, key=_place):
            each = found[name]
            drawn[name] = each._replace(probability=each.probability * part / len(names))
    return drawn


def _place(name: str) -> bytes:
    # A separate hash key: the sampler has chosen the runs by a hash of their ids too.
    return blake2b(
        name.encode("utf-8", "surrogatepass"), digest_size=8, person=b"ragaliq-cases"
    ).digest()


def _write(out: Path, records: Iterator[EvaluationRecord], found: Mapping[str, _Answer]) -> int:
    written = 0
    with file_errors(out):
        file = open(out, "x", encoding="utf-8", opener=owner_only)  # noqa: SIM115 - closed below
        try:
            with file:
                for record in records:
                    name = _case_id(record)
                    if name in found and found[name].evaluation_id == record.evaluation_id:
                        row = _row(record, name, found[name].probability)
                        file.write(json.dumps(row) + "\n")
                        written += 1
        except BaseException:
            out.unlink(missing_ok=True)  # some of the cases would look like all of them
            raise
    return written


def _row(record: EvaluationRecord, name: str, probability: float) -> dict[str, Any]:
    """Case as `read_cases` reads it; other values become its metadata."""
    assert record.case is not None  # noqa: S101 - only those with texts are chosen
    row = record.case.model_dump(mode="json", exclude_defaults=True, exclude={"sources"})
    row["id"] = name
    return row | {
        "sampling_probability": probability,
        "earlier_scores": {metric: result.score for metric, result in record.results.items()},
        "evaluated_at": datetime.fromtimestamp(record.created_at, UTC).isoformat(
            timespec="seconds"
        ),
    }
