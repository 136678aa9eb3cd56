"""Saying what of a file is not evaluated, and why."""

from __future__ import annotations

from ragaliq.cli.console import errors, plain
from ragaliq.datasets import CaseReader, TraceReader
from ragaliq.traces.reasons import REASONS

__all__ = ["show_bad_rows", "show_left_out"]

_SHOWN = 5


def show_bad_rows(reader: CaseReader) -> None:
    """The first rows that could not be read, and how many more there are."""
    for row in reader.skipped_rows[:_SHOWN]:
        errors.print(plain(f"left out: {row.where}: {row.problem}"))
    if reader.skipped > _SHOWN:
        errors.print(f"left out: {reader.skipped - _SHOWN} more rows")


def show_left_out(reader: CaseReader) -> None:
    """The runs of a file of traces that gave no case, by reason."""
    if not isinstance(reader, TraceReader):
        return
    if reader.left_out:
        errors.print(f"runs left out, of {reader.traces:,} traces:")
    for reason, count in reader.left_out.most_common():
        errors.print(plain(f"  {count:,} {reason}: {REASONS.get(reason, reason)}"))
    if reader.late_spans:
        errors.print(f"  {reader.late_spans:,} spans came too late for their trace; sort the file")
