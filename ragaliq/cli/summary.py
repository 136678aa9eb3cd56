"""The summary of a run as a table."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table

from ragaliq.cli.console import errors, output, plain
from ragaliq.cli.tally import MetricTally, RunTally
from ragaliq.statistics import mean_estimate

__all__ = ["show_summary"]

_MOST_OF_A_CAUSE = 300  # characters


def show_summary(tally: RunTally, causes: Mapping[str, str]) -> None:
    """Print means with intervals, the counts beside every mean, the cost, and why a judge failed.

    Args:
        tally: What was counted.
        causes: What an error of each class said, as far as known.
    """
    table = Table(box=None, pad_edge=False)
    for column in ("metric", "mean", "95 % interval", "scored", "passed", "others"):
        table.add_column(column, overflow="fold")
    for name, metric in tally.metrics.items():
        table.add_row(name, *_cells(metric))
    output.print(table)
    cost = tally.usage.cost_usd
    price = "cost unknown" if cost is None else f"${cost:,.4f}"
    if cost is not None and tally.usage.saved_usd:
        saved = tally.usage.saved_usd
        price += f" (batch price: ${saved:,.4f} less than the list price, ${cost + saved:,.4f})"
    judged = f"{tally.records:,} judged"
    if tally.cases < tally.records:
        judged = f"{tally.cases:,} cases, {judged}"
    output.print(f"{judged}, {tally.usage.total_tokens:,} tokens, {price}")
    for name, metric in tally.metrics.items():
        _show_repeats(name, metric)
    _show_failures(tally, causes)


def _show_failures(tally: RunTally, causes: Mapping[str, str]) -> None:
    found = tally.errors
    for kind, count in found.most_common(1):
        of = "" if len(found) == 1 else f" of {found.total():,}"
        cause = f": {causes[kind]}" if kind in causes else ""
        line = f"failures of the judge: {count:,}{of} with {kind}{cause}"
        errors.print(plain(line, limit=_MOST_OF_A_CAUSE))


def _show_repeats(name: str, metric: MetricTally) -> None:
    if metric.spread is not None:
        output.print(f"{name}: a case's score spreads by {metric.spread:.3f} when repeated")
    if metric.lost:
        output.print(f"{name}: no score at some repeats of a scored case: {_told(metric.lost)}")


def _cells(metric: MetricTally) -> tuple[str, ...]:
    statuses = metric.statuses
    passing = dict.fromkeys(metric.passing, " (pass)")
    others = _told({s: n for s, n in statuses.items() if s != "scored"}, passing)
    found = metric.scores
    scored = f"{len(found):,} of {sum(statuses.values()):,}"
    passed = f"{metric.passed:,}"
    if not found:
        return "none", "", scored, passed, others
    mean = mean_estimate(found)
    interval = f"{mean.low:.3f} to {mean.high:.3f} ({mean.method})"
    return f"{mean.value:.3f}", interval, scored, passed, others


def _told(counts: Mapping[str, int], notes: Mapping[str, str] | None = None) -> str:
    return ", ".join(
        f"{count:,} {status}{(notes or {}).get(status, '')}"
        for status, count in sorted(counts.items())
    )
