"""The summary of a run as a table."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table

from ragaliq.cli.console import errors, output, plain
from ragaliq.records import MetricSummary, Summary

__all__ = ["show_summary"]

_MOST_OF_A_CAUSE = 300  # characters


def show_summary(summary: Summary, causes: Mapping[str, str]) -> None:
    """Print means with intervals, the counts beside every mean, the cost, and why a judge failed.

    Args:
        summary: What was added up.
        causes: What an error of each class said, as far as known.
    """
    table = Table(box=None, pad_edge=False)
    for column in ("metric", "mean", "95 % interval", "scored", "passed", "others"):
        table.add_column(column, overflow="fold")
    for name, metric in summary.metrics.items():
        table.add_row(name, *_cells(metric))
    output.print(table)
    cost = summary.usage.cost_usd
    price = "cost unknown" if cost is None else f"${cost:,.4f}"
    if cost is not None and summary.usage.saved_usd:
        saved = summary.usage.saved_usd
        price += f" (batch price: ${saved:,.4f} less than the list price, ${cost + saved:,.4f})"
    judged = f"{summary.records:,} judged"
    if summary.cases < summary.records:
        judged = f"{summary.cases:,} cases, {judged}"
    output.print(f"{judged}, {summary.usage.total_tokens:,} tokens, {price}")
    for name, metric in summary.metrics.items():
        _show_repeats(name, metric)
    _show_failures(summary, causes)


def _show_failures(summary: Summary, causes: Mapping[str, str]) -> None:
    found = summary.errors
    for kind, count in found.most_common(1):
        of = "" if len(found) == 1 else f" of {found.total():,}"
        cause = f": {causes[kind]}" if kind in causes else ""
        line = f"failures of the judge: {count:,}{of} with {kind}{cause}"
        errors.print(plain(line, limit=_MOST_OF_A_CAUSE))


def _show_repeats(name: str, metric: MetricSummary) -> None:
    if metric.spread is not None:
        output.print(f"{name}: a case's score spreads by {metric.spread:.3f} when repeated")
    if metric.unscored_repeats:
        lost = _counted(metric.unscored_repeats)
        output.print(f"{name}: no score at some repeats of a scored case: {lost}")


def _cells(metric: MetricSummary) -> tuple[str, ...]:
    statuses = metric.statuses
    passing = dict.fromkeys(metric.passing, " (pass)")
    others = _counted({s: n for s, n in statuses.items() if s != "scored"}, passing)
    scored = f"{metric.measured:,} of {metric.cases:,}"
    passed = f"{metric.passed:,}"
    if metric.mean is None or metric.interval is None:
        return "none", "", scored, passed, others
    low, high = metric.interval
    interval = f"{low:.3f} to {high:.3f} ({metric.interval_method})"
    return f"{metric.mean:.3f}", interval, scored, passed, others


def _counted(counts: Mapping[str, int], notes: Mapping[str, str] | None = None) -> str:
    return ", ".join(
        f"{count:,} {status}{(notes or {}).get(status, '')}"
        for status, count in sorted(counts.items())
    )
