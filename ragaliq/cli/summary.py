"""The summary of a run as a table."""

from __future__ import annotations

from rich.table import Table

from ragaliq.cli.console import output
from ragaliq.cli.tally import MetricTally, RunTally
from ragaliq.statistics import mean_estimate

__all__ = ["show_summary"]


def show_summary(tally: RunTally) -> None:
    """Print means with intervals, the counts beside every mean, and the cost."""
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
    output.print(f"{tally.records:,} judged, {tally.usage.total_tokens:,} tokens, {price}")
    for name, metric in tally.metrics.items():
        if metric.spread is not None:
            output.print(f"{name}: a case's score spreads by {metric.spread:.3f} when repeated")


def _cells(metric: MetricTally) -> tuple[str, ...]:
    others = ", ".join(
        f"{count} {status}"
        for status, count in sorted(metric.statuses.items())
        if status != "scored"
    )
    scored = f"{len(metric.scores):,} of {metric.statuses.total():,}"
    passed = f"{metric.passed:,}"
    if not metric.scores:
        return "none", "", scored, passed, others
    mean = mean_estimate(metric.scores)
    interval = f"{mean.low:.3f} to {mean.high:.3f} ({mean.method})"
    return f"{mean.value:.3f}", interval, scored, passed, others
