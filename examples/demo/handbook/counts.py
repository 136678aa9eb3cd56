"""Shows what became of the runs: outcomes, statuses by metric, and what the judge cost."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group
from rich.table import Table
from rich.text import Text

from ragaliq import JudgeUsage, MonitorStats

__all__ = ["counts_view"]


def counts_view(stats: MonitorStats) -> Group:
    """Counts by outcome and by status."""
    return Group(
        Text(f"Runs started: {stats.started}   {_listed(stats.outcomes)}"),
        _status_table(stats.evaluations),
        Text(_cost(stats.usage)),
    )


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count)


def _status_table(evaluations: Mapping[str, Mapping[str, int]]) -> Table:
    statuses = list(dict.fromkeys(s for counts in evaluations.values() for s in counts))
    table = Table("evaluations by status", header_style="bold")
    for status in statuses:
        table.add_column(Text(str(status)), justify="right")
    for metric, counts in evaluations.items():
        table.add_row(Text(metric), *(Text(str(counts.get(s, 0))) for s in statuses))
    return table


def _cost(usage: JudgeUsage) -> str:
    money = "unknown" if usage.cost_usd is None else f"{usage.cost_usd:.4f} US dollars"
    return f"Judge: {usage.requests} requests, {usage.total_tokens} tokens, cost {money}"
