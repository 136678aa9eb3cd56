"""`ragaliq metrics`: what can be measured."""

from __future__ import annotations

import inspect

from rich.table import Table

from ragaliq.cli.console import output
from ragaliq.evaluators import get_evaluator, list_evaluators

__all__ = ["metrics"]


def metrics() -> None:
    """List the metrics with their thresholds."""
    table = Table("metric", "passes from", "what it says", box=None, pad_edge=False)
    for name in list_evaluators():
        kind = get_evaluator(name)
        summary = (inspect.getdoc(kind) or "").partition("\n")[0]
        table.add_row(name, f"{kind().threshold:g}", summary)
    output.print(table)
