"""Benches and comparisons of judges as tables in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from ragaliq.bench import JudgeBench, JudgeComparison, JudgeFigures
from ragaliq.cli.console import errors, output, plain
from ragaliq.statistics import Estimate, RiskPoint

__all__ = ["show_bench", "show_comparison"]

_COVERAGES = (0.25, 0.5, 0.75, 1.0)


def show_bench(bench: JudgeBench) -> None:
    """Print the figures, overall and by group."""
    output.print(plain(f"{bench.title}: {bench.data}"))
    # In 80 columns, intervals leave hardly any room for the groups' names.
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    table.add_column("group", overflow="fold", min_width=len("group"))
    for column in ("claims", "supp.", "AUROC", "bal. acc.", "macro F1", "kappa", "ECE"):
        table.add_column(column, no_wrap=True)
    for name, figures in {**bench.groups, "all": bench.overall}.items():
        table.add_row(plain(name, limit=40), *_cells(figures))
    output.print(table)
    overall = bench.overall
    classes = "three" if overall.classes == 3 else "two"
    output.print(f"macro F1 and kappa over {classes} classes; 95 % intervals, drawn by context")
    _show_confusion(overall)
    output.print("errors when only the surest are decided: " + _abstention(overall.risk_coverage))
    _show_cost(overall)
    if bench.calibration == "uncalibrated":
        output.print("confidence is uncalibrated: `ragaliq calibrate` makes it a probability")
    if overall.failures:
        told = ", ".join(f"{n:,} {status}" for status, n in sorted(overall.failures.items()))
        errors.print(f"not scored, and in no figure: {told}")


def show_comparison(
    first: JudgeBench,
    second: JudgeBench,
    found: JudgeComparison,
    *,
    files: tuple[Path | None, Path | None],
) -> None:
    """Print how the second judge does against the first; `files` tell two of one name apart."""
    output.print(plain(f"second minus first, on {found.pairs:,} claims that both decided"))
    for place, bench, file in zip(("first: ", "second:"), (first, second), files, strict=True):
        output.print(plain(f"{place} {bench.title}{f' ({file})' if file else ''}"))
    table = Table(box=None, pad_edge=False)
    for column in ("figure", "difference", "method"):
        table.add_column(column, overflow="fold")
    differences = {
        "accuracy": found.accuracy,
        "balanced accuracy": found.balanced_accuracy,
        "AUROC": found.auroc,
    }
    for name, value in differences.items():
        clear = value is not None and (value.low > 0.0 or value.high < 0.0)
        note = "" if value is None else value.method + ("" if clear else ", not clear")
        table.add_row(name, plain(_signed(value)), note)
    output.print(table)
    test = found.mcnemar
    output.print(
        f"McNemar: only the first is right {test.only_first:,} times, only the second "
        f"{test.only_second:,}; p = {test.exact_p:.3g} exact, {test.mid_p:.3g} mid-p"
    )
    if found.left_out:
        errors.print(f"{found.left_out:,} claims are in one bench only, or a judge failed on them")


def _cells(figures: JudgeFigures) -> list[str]:
    values = (
        figures.auroc,
        figures.balanced_accuracy,
        figures.macro_f1,
        figures.kappa,
        figures.ece,
    )
    return [
        f"{figures.scored:,}",
        f"{figures.supported:,}",
        *(_interval(value) for value in values),
    ]


def _interval(value: Estimate | None) -> str:
    if value is None:
        return "-"
    return f"{value.value:.3f}\n{value.low:.2f}..{value.high:.2f}"


def _signed(value: Estimate | None) -> str:
    if value is None:
        return "-"
    return f"{value.value:+.3f} [{value.low:+.3f}, {value.high:+.3f}]"


def _show_confusion(figures: JudgeFigures) -> None:
    table = Table("label", "judged", "claims", box=None, pad_edge=False)
    for pair, count in figures.confusion.items():
        label, _, verdict = pair.partition("/")
        table.add_row(label, verdict, f"{count:,}")
    output.print(table)


def _abstention(points: Sequence[RiskPoint]) -> str:
    told = []
    for wanted in _COVERAGES:
        point = next(each for each in points if each.coverage >= wanted)
        told.append(f"{point.risk:.1%} of {point.coverage:.0%}")
    return ", ".join(dict.fromkeys(told))


def _show_cost(figures: JudgeFigures) -> None:
    usage, median = figures.usage, figures.median_seconds
    cost = "cost unknown" if usage.cost_usd is None else f"${usage.cost_usd:,.4f}"
    line = f"{cost}, {usage.requests:,} requests, {usage.total_tokens:,} tokens"
    if median is not None and figures.slowest_seconds is not None:
        line += (
            f"; median {median.value * 1000:,.1f} ms a claim "
            f"({median.low * 1000:,.1f} to {median.high * 1000:,.1f}), "
            f"19 of 20 within {figures.slowest_seconds * 1000:,.1f} ms"
        )
    output.print(line)
