"""`ragaliq judge bench` and `ragaliq judge compare`: how good a judge is, and which is better."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragaliq.bench import JudgeBench, bench_of, compare_benches, reliability_svg
from ragaliq.cli.claim_judging import (
    Concurrency,
    JournalFile,
    Labels,
    MaxCost,
    Timeout,
    judge_file,
    require_some_success,
)
from ragaliq.cli.console import errors
from ragaliq.cli.exit_codes import ExitCode
from ragaliq.cli.judge_choice import choose_judge, judge_of
from ragaliq.cli.judge_tables import show_bench, show_comparison
from ragaliq.cli.options import BaseUrl, CalibrationFile, Judge, Model
from ragaliq.cli.output_files import require_writable
from ragaliq.errors import ConfigurationError, DatasetError

__all__ = ["judge"]

judge = typer.Typer(
    help="Measure judges on labelled claims.", no_args_is_help=True, rich_markup_mode=None
)


@judge.command()
def bench(
    data: Labels,
    *,
    judge: Judge = None,
    model: Model = None,
    base_url: BaseUrl = None,
    calibration: CalibrationFile = None,
    out: Annotated[
        Path | None, typer.Option(help="A .json file for figures and decisions; holds no text.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="An .svg file: reliability.")] = None,
    compare: Annotated[
        str | None, typer.Option(help="Another judge (local, claude), or a bench .json of one.")
    ] = None,
    journal: JournalFile = None,
    max_cost: MaxCost = None,
    concurrency: Concurrency = 8,
    timeout: Timeout = 120.0,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
) -> int:
    """Have labelled claims judged, and say how well the judge did."""
    if plot is not None and plot.suffix.lower() != ".svg":
        raise ConfigurationError(f"--plot {plot}: the plot is an .svg file")
    asked = choose_judge(judge, model=model, base_url=base_url, calibration=calibration)
    decider = asked.judge
    require_writable(
        [("--journal", journal), ("--out", out), ("--plot", plot)],
        read=[
            ("the labels", data),
            ("the calibration", asked.calibration),
            ("--compare", compare),
            ("--model", model),
        ],
    )
    other = _other(compare, data)
    asked.announce()
    judged = judge_file(
        data,
        decider,
        journal=journal,
        max_cost=max_cost,
        concurrency=concurrency,
        timeout=timeout,
    )
    require_some_success(judged, data)
    result = bench_of(judged, decider, data=data.name, seed=seed)
    show_bench(result)
    if out is not None:
        result.save(out)
    if plot is not None:
        _plot(result, plot)
    if other is not None:
        file = _bench_file(compare)
        show_comparison(result, other, compare_benches(result, other, seed=seed), files=(out, file))
    return ExitCode.OK


@judge.command(name="compare")
def compare_files(
    first: Annotated[Path, typer.Argument(help="What `judge bench --out` wrote.")],
    second: Annotated[Path, typer.Argument(help="The same of another judge on the same claims.")],
    *,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
) -> int:
    """Compare two benches claim by claim."""
    one, other = JudgeBench.load(first), JudgeBench.load(second)
    show_comparison(one, other, compare_benches(one, other, seed=seed), files=(first, second))
    return ExitCode.OK


def _bench_file(compare: str | None) -> Path | None:
    return Path(compare) if compare is not None and compare.endswith(".json") else None


def _other(compare: str | None, data: Path) -> JudgeBench | None:
    """The judge to compare with, before anything is spent on the first one."""
    if compare is None:
        return None
    file = _bench_file(compare)
    if file is not None:
        return JudgeBench.load(file)
    other = judge_of(compare)
    if other.model is not None:
        raise ConfigurationError(
            f"--compare {compare}: bench a judge that costs money by itself, with --out and "
            "--journal, and name its file here"
        )
    return bench_of(judge_file(data, other), other, data=data.name)


def _plot(result: JudgeBench, path: Path) -> None:
    figures = result.overall
    if figures.ece is None:
        errors.print("no plot: the judge decided nothing")
        return
    picture = reliability_svg(
        figures.reliability, title=f"{result.title}, {result.data}", ece=figures.ece.value
    )
    try:
        path.write_text(picture, encoding="utf-8")
    except OSError as error:
        raise DatasetError(f"{path}: {error.strerror or error}") from None
