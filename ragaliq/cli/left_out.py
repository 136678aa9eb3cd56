"""Saying what of a file is not evaluated, and why."""

from __future__ import annotations

from collections.abc import Sequence

from ragaliq.cli.console import errors, plain
from ragaliq.core.evaluator import Evaluator
from ragaliq.datasets import CaseReader, TraceReader
from ragaliq.evaluators.metrics import RelevanceEvaluator
from ragaliq.traces.cases import REASONS

__all__ = ["show_bad_rows", "show_left_out", "show_no_context"]

_SHOWN = 5


def show_bad_rows(reader: CaseReader) -> None:
    """The first rows that could not be read, and how many more there are."""
    for row in reader.skipped_rows[:_SHOWN]:
        errors.print(plain(f"left out: {row.where}: {row.problem}"))
    if reader.skipped > _SHOWN:
        errors.print(f"left out: {reader.skipped - _SHOWN} more rows")


def show_no_context(reader: CaseReader, evaluators: Sequence[Evaluator]) -> None:
    """That no case has any context, where a metric goes by it: its scores say nothing then."""
    names = [each.name for each in evaluators if not isinstance(each, RelevanceEvaluator)]
    if not names:
        return
    found = f": the rows have {reader.named_columns}" if reader.columns else ""
    errors.print(
        plain(
            f"no case has any context for {', '.join(names)}{found}; say where it is "
            "with --field context=NAME"
        )
    )


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
