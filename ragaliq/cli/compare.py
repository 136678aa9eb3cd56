"""`ragaliq compare A B`: which scores moved between two results files, and how far."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ragaliq.cli.console import errors, output, plain
from ragaliq.cli.exit_codes import ExitCode
from ragaliq.errors import DatasetError
from ragaliq.sinks.record_file import read_record_file
from ragaliq.sinks.repeats import case_of, joint_score
from ragaliq.statistics import paired_difference

__all__ = ["compare"]

Scores = dict[str, dict[str, float]]


def compare(
    first: Annotated[Path, typer.Argument(help="Results of `evaluate`, a .jsonl file.")],
    second: Annotated[Path, typer.Argument(help="Results over the same cases.")],
    *,
    show: Annotated[int, typer.Option(min=0, help="Changed cases to list for each metric.")] = 10,
) -> int:
    """Compare two runs over the same cases, pair by pair."""
    before, after = _scores(first), _scores(second)
    shared = {
        name: sorted(before[name].keys() & after[name].keys()) for name in before if name in after
    }
    if not any(shared.values()):
        raise DatasetError(f"{first} and {second} share no case with a score in the same metric")
    table = Table(box=None, pad_edge=False)
    for column in ("metric", "pairs", "first", "second", "change", "95 % interval", "up", "down"):
        table.add_column(column, overflow="fold")
    for name, cases in shared.items():
        table.add_row(name, *_cells(before[name], after[name], cases))
    output.print(table)
    for name, cases in shared.items():
        _list_changes(name, before[name], after[name], cases, show)
    _say_what_is_left_out(before, after, shared)
    return ExitCode.OK


def _scores(path: Path) -> Scores:
    """The score of each case by metric: the mean of its judgings, which are one observation."""
    scores: dict[str, dict[str, list[float]]] = {}
    for record in read_record_file(path):
        case = case_of(record)
        for metric in record.metrics:
            found = scores.setdefault(metric.name, {})
            if metric.is_measured and metric.score is not None:
                found.setdefault(case, []).append(metric.score)
    return {
        name: {case: joint_score(judgings) for case, judgings in found.items()}
        for name, found in scores.items()
    }


def _cells(before: dict[str, float], after: dict[str, float], cases: list[str]) -> tuple[str, ...]:
    if not cases:
        return ("0", "", "", "", "", "", "")
    one, two = [before[case] for case in cases], [after[case] for case in cases]
    pairs = paired_difference(one, two)
    change = pairs.difference
    clear = "" if pairs.is_clear else ", not clear"
    return (
        f"{len(cases):,}",
        f"{sum(one) / len(one):.3f}",
        f"{sum(two) / len(two):.3f}",
        f"{change.value:+.3f}",
        f"{change.low:+.3f} to {change.high:+.3f} ({change.method}{clear})",
        f"{pairs.higher:,}",
        f"{pairs.lower:,}",
    )


def _list_changes(
    name: str, before: dict[str, float], after: dict[str, float], cases: list[str], show: int
) -> None:
    changed = [case for case in cases if before[case] != after[case]]
    changed.sort(key=lambda case: (after[case] - before[case], case))
    # The largest losses first: those are what one looks for.
    for case in changed[:show]:
        output.print(plain(f"{name} {before[case]:.3f} -> {after[case]:.3f}  {case}"))
    if len(changed) > show:
        output.print(f"{name}: {len(changed) - show:,} more cases changed")


def _say_what_is_left_out(before: Scores, after: Scores, shared: dict[str, list[str]]) -> None:
    for name in sorted(before.keys() ^ after.keys()):
        errors.print(plain(f"{name} is in one of the two files only"))
    for name, cases in shared.items():
        alone = len(before[name]) + len(after[name]) - 2 * len(cases)
        if alone:
            errors.print(f"{name}: {alone:,} scores have no partner in the other file")
