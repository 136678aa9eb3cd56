"""Tables of a run: for a notebook, for pandas, for a spreadsheet."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from importlib import import_module
from typing import Any

from ragaliq.core.results import Evaluation, EvaluationResult
from ragaliq.core.test_case import RAGTestCase
from ragaliq.records.record import observation_of
from ragaliq.records.summary import Summary
from ragaliq.reports.contents import judged_pieces
from ragaliq.reports.gathering import badness
from ragaliq.reports.wording import is_drawn, metric_table, pass_line, why

_MOST_ANSWERS = 20
_EVERY = 0.2  # seconds
_COLOURS = {
    "SUPPORTED": "#c8ecd0",
    "CONTRADICTED": "#f9c9c6",
    "NOT_ENOUGH_INFO": "#fbe6b3",
    "UNVERIFIED": "#dddddd",
}


def row_of(
    run_id: str, case: RAGTestCase | None, results: Mapping[str, EvaluationResult]
) -> dict[str, Any]:
    """Result as a table row, by column; without texts if there is no case."""
    row: dict[str, Any] = {
        "id": run_id,
        "query": case.query if case else "",
        "response": case.response if case else "",
    }
    not_supported: list[str] = []
    for name, result in results.items():
        row[f"{name}.score"] = result.score
        row[f"{name}.passed"] = result.passed
        row[f"{name}.status"] = result.status.value
        row[f"{name}.reason"] = result.reasoning
        not_supported = not_supported or [
            f"{claim.verdict}: {claim.claim}"
            for claim in result.claims
            if claim.claim and claim.verdict != "SUPPORTED"
        ]
    row["not_supported"] = " | ".join(not_supported)
    if case:
        row["context"] = case.context_texts
        for name, value in case.metadata.items():
            # A column of the input never replaces one of ours.
            row[f"input.{name}" if name in row else name] = value
    return row


def failures_of(evaluations: Iterable[Evaluation]) -> list[Evaluation]:
    """Evaluations with a metric that does not pass, the lowest score first."""
    failed = [
        (badness(*each.results.values()) or (0.0, 0, 0), each)
        for each in evaluations
        if any(result.passed is False for result in each.results.values())
    ]
    return [each for _, each in sorted(failed, key=lambda pair: pair[0], reverse=True)]


def html_of(evaluations: Sequence[Evaluation], summary: Summary) -> str:
    """Figures, and the lowest answers with their claims marked; every text is escaped."""
    columns, *rows = metric_table(summary)
    lines = [f"<div><p>{pass_line(*summary.passing, summary.cases)}</p><table><tr>"]
    lines += [*(f"<th>{column}</th>" for column in columns), "</tr>"]
    for row in rows:
        lines += ["<tr>", *(f"<td>{escape(cell)}</td>" for cell in row), "</tr>"]
    lines.append("</table>")
    failures = failures_of(evaluations)
    # An answer that is evaluated several times is shown once, by its lowest evaluation.
    once = {observation_of(each.case.id, each.run.run_id): each for each in reversed(failures)}
    failures = list(reversed(once.values()))
    lines += [_answer(each) for each in failures[:_MOST_ANSWERS]]
    more = len(failures) - _MOST_ANSWERS
    if more > 0:
        lines.append(f"<p>and {more:,} more that do not pass: see <code>failures</code></p>")
    return "".join([*lines, "</div>"])


def notebook_progress() -> Callable[[int, int], object] | None:
    """Function that shows a progress bar in a notebook, given cases done and in all."""
    notebook = sys.modules.get("IPython")
    shell = notebook.get_ipython() if notebook is not None else None
    if shell is None or not hasattr(shell, "kernel"):  # a terminal's IPython has none
        return None
    ipython = import_module("IPython.display")
    bar, shown = ipython.display(ipython.HTML(""), display_id=True), 0.0

    def show(done: int, total: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown >= _EVERY or done == total:
            shown = now
            element = f'<progress value="{done}" max="{total}"></progress>'
            bar.update(ipython.HTML(f"{element} {done:,} of {total:,} evaluated"))

    return show


def _answer(evaluation: Evaluation) -> str:
    results = evaluation.results.values()
    claims = next((result.claims for result in results if result.claims), ())
    pieces = judged_pieces(evaluation.case.response, claims)
    marked = "".join(_marked(text, verdict) for text, verdict in pieces)
    reasons = "".join(f"<li>{escape(why(r))}</li>" for r in results if r.passed is False)
    name = evaluation.run.run_id
    shown = "" if is_drawn(name) else f" <code>{escape(name)}</code>"
    return f"<p><b>{escape(evaluation.case.query)}</b>{shown}<br>{marked}</p><ul>{reasons}</ul>"


def _marked(text: str, verdict: str | None) -> str:
    if verdict is None:
        return escape(text)
    colour, title = _COLOURS[verdict], verdict.replace("_", " ").lower()
    # Black on these colours is readable in dark notebooks too.
    return f'<mark title="{title}" style="background:{colour};color:#000">{escape(text)}</mark>'
