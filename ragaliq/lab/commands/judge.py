"""`ragaliq judge bench`, `judge compare`, `calibrate`: quality of a judge on labelled claims."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ragaliq.cli.console import (
    Command,
    ExitCode,
    errors,
    escape_for_terminal,
    output,
    progress,
    say_what_is_left,
)
from ragaliq.cli.options import (
    BaseUrl,
    CalibrationFile,
    Judge,
    Model,
    Pipeline,
    choose_judge,
)
from ragaliq.cli.outputs import require_writable
from ragaliq.datasets import read_labelled_claims
from ragaliq.errors import BudgetExceeded, ConfigurationError, DatasetError, JudgeError
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.calibration import Calibration, Side
from ragaliq.lab.agreement import RiskPoint
from ragaliq.lab.bench import JudgeBench, JudgeFigures, bench_of, compare_benches
from ragaliq.lab.calibration import fit_calibration, level_calibration
from ragaliq.lab.judging import (
    JudgedClaim,
    claims_job,
    claims_support,
    judged_claim,
)
from ragaliq.lab.recording import RequestRecorder, replay_judge
from ragaliq.offline.journal import EvaluationJournal
from ragaliq.records.sqlite_file import parse_location
from ragaliq.reports.wording import cost_of
from ragaliq.scoring.scorer import CostCap
from ragaliq.statistics import Estimate

judge = typer.Typer(
    help="Measure judges on labelled claims.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@judge.command(cls=Command)
def bench(
    data: Labels,
    *,
    judge: Judge = None,
    model: Model = None,
    base_url: BaseUrl = None,
    calibration: CalibrationFile = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="A .json file for figures and decisions, without texts."),
    ] = None,
    journal: JournalFile = None,
    max_cost: MaxCost = None,
    concurrency: Concurrency = 8,
    timeout: Timeout = 120.0,
    render: Annotated[
        Path | None,
        typer.Option(help="Write the requests to this file, one a line, and send none."),
    ] = None,
    replies: Annotated[
        Path | None,
        typer.Option(help="Read the replies to rendered requests from this file, one a line."),
    ] = None,
) -> int:
    """Measure a judge on labelled claims."""
    if render is not None and replies is not None:
        raise ConfigurationError("give --render or --replies, not both")
    asked = choose_judge(
        judge,
        model=model,
        base_url=base_url,
        calibration=calibration,
        is_asked=render is None and replies is None,
    )
    require_writable(
        [("--journal", journal), ("--out", out), ("--render", render)],
        read=[
            ("the labels", data),
            ("the calibration", asked.calibration),
            ("--model", model),
            ("--replies", replies),
        ],
    )
    if render is not None:
        return _render(data, asked.judge, render)
    decider = asked.judge if replies is None else replay_judge(asked.judge, replies)
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
    result = bench_of(judged, decider, data=data.name)
    show_bench(result)
    if out is not None:
        result.save(out)
    return ExitCode.OK


@judge.command(name="compare", cls=Command)
def compare_files(
    first: Annotated[Path, typer.Argument(help="What `judge bench --out` wrote.", metavar="FIRST")],
    second: Annotated[
        Path, typer.Argument(help="The same of another judge on the same claims.", metavar="SECOND")
    ],
) -> int:
    """Compare two judges claim by claim, from what `judge bench --out` wrote."""
    one, other = JudgeBench.load(first), JudgeBench.load(second)
    show_comparison(one, other, files=(first, second))
    return ExitCode.OK


def _render(data: Path, judge: LLMJudge, path: Path) -> int:
    """Write the requests that the bench would send."""
    writer = RequestRecorder(judge, path)
    judge_file(data, writer.judge, concurrency=1)
    errors.print(f"{path}: {writer.count} requests; nothing was sent")
    return ExitCode.OK


_COVERAGES = (0.25, 0.5, 0.75, 1.0)


def show_bench(bench: JudgeBench) -> None:
    """Print the figures, overall and by group."""
    output.print(f"{bench.title}: {bench.data}")
    # In 80 columns, intervals leave hardly any room for the groups' names.
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    table.add_column("group", overflow="fold", min_width=len("group"))
    for column in ("claims", "supp.", "AUROC", "bal. acc.", "macro F1", "kappa", "ECE"):
        table.add_column(column, no_wrap=True)
    for name, figures in {**bench.groups, "all": bench.overall}.items():
        table.add_row(escape_for_terminal(name, limit=40), *_cells(figures))
    output.print(table)
    overall = bench.overall
    classes = "three" if overall.classes == 3 else "two"
    output.print(f"macro F1 and kappa over {classes} classes; 95 % intervals, drawn by context")
    confusion = Table("label", "judged", "claims", box=None, pad_edge=False)
    for pair, count in overall.confusion.items():
        confusion.add_row(*pair.split("/"), f"{count:,}")
    output.print(confusion)
    output.print("errors when only the surest are decided: " + _abstention(overall.risk_coverage))
    _show_cost(overall)
    if bench.calibration == "uncalibrated":
        output.print("confidence is uncalibrated: `ragaliq calibrate` makes it a probability")
    if overall.failures:
        shown = ", ".join(f"{n:,} {status}" for status, n in sorted(overall.failures.items()))
        errors.print(f"not scored, and in no figure: {shown}")


def show_comparison(
    first: JudgeBench, second: JudgeBench, *, files: tuple[Path | None, Path | None]
) -> None:
    """Print the comparison of two judges; `files` distinguish two of one name."""
    found = compare_benches(first, second)
    output.print(f"second minus first, on {found.pairs:,} claims that both decided")
    for place, bench, file in zip(("first: ", "second:"), (first, second), files, strict=True):
        output.print(f"{place} {bench.title}{f' ({file})' if file else ''}")
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
        table.add_row(name, escape_for_terminal(_signed(value)), note)
    output.print(table)
    if found.left_out:
        errors.print(f"{found.left_out:,} claims are in one bench only, or a judge failed on them")


def _cells(figures: JudgeFigures) -> list[str]:
    of = figures
    values = of.auroc, of.balanced_accuracy, of.macro_f1, of.kappa, of.ece
    return [f"{of.scored:,}", f"{of.supported:,}", *map(_interval, values)]


def _interval(value: Estimate | None) -> str:
    if value is None:
        return "-"
    return f"{value.value:.3f}\n{value.low:.2f}..{value.high:.2f}"


def _signed(value: Estimate | None) -> str:
    if value is None:
        return "-"
    return f"{value.value:+.3f} [{value.low:+.3f}, {value.high:+.3f}]"


def _abstention(points: Sequence[RiskPoint]) -> str:
    shown = []
    for wanted in _COVERAGES:
        point = next(each for each in points if each.coverage >= wanted)
        shown.append(f"{point.risk:.1%} of {point.coverage:.0%}")
    return ", ".join(dict.fromkeys(shown))


def _show_cost(figures: JudgeFigures) -> None:
    usage, median = figures.usage, figures.median_seconds
    line = f"{cost_of(usage)}, {usage.requests:,} requests, {usage.total_tokens:,} tokens"
    if median is not None and figures.slowest_seconds is not None:
        line += (
            f"; median {median.value * 1000:,.1f} ms a claim "
            f"({median.low * 1000:,.1f} to {median.high * 1000:,.1f}), "
            f"19 of 20 within {figures.slowest_seconds * 1000:,.1f} ms"
        )
    output.print(line)


_SIDES: tuple[tuple[Side, str], ...] = (
    ("faithfulness", "called supported from a probability of"),
    ("hallucination", "flagged as unsupported below"),
)
_PRECISIONS = (0.8, 0.9, 0.95)


def calibrate(
    labels: OptionalLabels = None,
    *,
    unlabelled: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|STORE",
            help="Instead of labels: answers, or results of the embedded judge, whose threshold "
            "then follows the application's own claims; at least 300 claims.",
        ),
    ] = None,
    pipeline: Pipeline = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The .json file to write.")],
    judge: Judge = None,
    model: Model = None,
    base_url: BaseUrl = None,
    precision: Annotated[
        float | None,
        typer.Option(
            help="Choose the probability from which a claim counts as supported so that this "
            "share of those claims is."
        ),
    ] = None,
    min_support: Annotated[
        float | None, typer.Option(help="Set this probability itself (default 0.5).")
    ] = None,
    journal: JournalFile = None,
    max_cost: MaxCost = None,
    concurrency: Concurrency = 8,
    timeout: Timeout = 120.0,
) -> int:
    """Fit a judge's confidence to labelled claims: at least 100, 20 of each kind."""
    if (labels is None) == (unlabelled is None):
        raise ConfigurationError("give a file of labelled claims, or --unlabelled")
    asked = choose_judge(judge, model=model, base_url=base_url, is_calibrated=False)
    decider = asked.judge
    if unlabelled is not None:
        if precision is not None or min_support is not None or journal is not None:
            raise ConfigurationError("--precision, --min-support and --journal need labels")
        require_writable([("--out", out)], read=[("the claims", parse_location(unlabelled))])
        calibration = level_calibration(
            decider, claims_support(unlabelled, decider, pipeline=pipeline)
        )
        calibration.save(out)
        output.print(f"{calibration.id} in {out}")
        output.print(
            f"{calibration.unlabelled:,} claims without labels: a claim counts as supported from "
            f"a support of {calibration.min_support:.2f}, without this file {decider.min_support}"
        )
        return ExitCode.OK
    if labels is None or pipeline is not None:
        raise ConfigurationError("--pipeline goes with --unlabelled")
    require_writable(
        [("--journal", journal), ("--out", out)],
        read=[("the labels", labels), ("--model", model)],
    )
    asked.announce()
    judged = judge_file(
        labels,
        decider,
        journal=journal,
        max_cost=max_cost,
        concurrency=concurrency,
        timeout=timeout,
    )
    require_some_success(judged, labels)
    # In the file's order, not that of the replies, so that the same labels give the same
    # calibration.
    rows = sorted((row for row in judged if row.failure is None), key=lambda row: row.id)
    if len(rows) < len(judged):
        errors.print(f"{len(judged) - len(rows):,} claims are skipped: the judge failed on them")
    calibration = fit_calibration(
        decider,
        [row.support for row in rows if row.support is not None],
        [row.is_supported for row in rows],
        clusters=[row.cluster for row in rows],
        precision=precision,
        min_support=min_support,
    )
    calibration.save(out)
    _show(calibration, out)
    return ExitCode.OK


def _show(calibration: Calibration, out: Path) -> None:
    output.print(f"{calibration.id} in {out}")
    output.print(
        f"{calibration.method}, {calibration.labels:,} labels, {calibration.supported:,} supported"
    )
    if figures := calibration.figures:
        low, high = figures.auroc_interval
        output.print(f"AUROC {figures.auroc:.3f} [{low:.3f}, {high:.3f}]")
        output.print(
            "on held-out labels: "
            f"Brier score {figures.brier:.3f} (was {figures.brier_uncalibrated:.3f}), "
            f"ECE {figures.ece:.3f} (was {figures.ece_uncalibrated:.3f})"
        )
    for side, words in _SIDES:
        for wanted in _PRECISIONS:
            try:
                shown = f"{words} {calibration.threshold_for(wanted, metric=side):.3f}"
            except ConfigurationError:
                shown = "no threshold; these labels do not show that precision"
            output.print(f"{wanted:.0%} precise for {side}: {shown}")
    output.print(f"a claim counts as supported from a probability of {calibration.min_support:g}")


_LABELS = typer.Argument(
    help="A file of labelled claims (claim, context, label): .jsonl, .csv and so on, also .gz.",
    metavar="LABELS",
)
Labels = Annotated[Path, _LABELS]
OptionalLabels = Annotated[Path | None, _LABELS]
JournalFile = Annotated[
    Path | None,
    typer.Option("--journal", help="Store each decision in this file; rerun to continue."),
]
MaxCost = Annotated[
    float | None, typer.Option(min=0.0, help="Start no further claim after this many US dollars.")
]
Concurrency = Annotated[int, typer.Option(min=1, help="Claims to ask about at the same time.")]
Timeout = Annotated[float, typer.Option(min=0.001, help="Seconds for each claim.")]


def judge_file(
    data: Path,
    judge: LLMJudge,
    *,
    journal: Path | None = None,
    max_cost: float | None = None,
    concurrency: int = 8,
    timeout: float = 120.0,
) -> list[JudgedClaim]:
    """Let the judge decide the claims of a file, except those in the journal."""
    if max_cost is not None and journal is None:
        raise ConfigurationError("--max-cost needs --journal, or what was paid for would be lost")
    # Reading all first finds a bad row before anything is spent.
    claims = list(read_labelled_claims(data))
    kept = None
    if journal is not None:
        about = {"fingerprint": judge.fingerprint()}
        kept = EvaluationJournal(journal, about=about, keeps_text=False, retry_failed=True)
    job = claims_job(
        claims,
        judge,
        concurrency=concurrency,
        deadline=timeout,
        cap=CostCap(max_cost, option="--max-cost"),
        journal=kept,
    )
    job.start()
    earlier = list(kept.results()) if kept else []
    judged = [judged_claim(claims[each.row - 1], each) for each in earlier if each.row]

    async def run() -> None:
        try:
            async with aclosing(aiter(job)) as evaluations:
                async for each in evaluations:
                    judged.append(judged_claim(each.case.metadata["labelled"], each))
                    show(each.usage)
        finally:
            await judge.aclose()

    try:
        with progress(len(claims), len(judged)) as show:
            asyncio.run(run())
    except KeyboardInterrupt:
        option = f"--journal {journal or 'journal.jsonl'}"
        say_what_is_left(len(judged), len(claims), journal, option=option)
        raise
    if job.is_cut:
        raise BudgetExceeded(f"{job.cap.reached}; rerun with a higher one to resume")
    return judged


def require_some_success(judged: Sequence[JudgedClaim], data: Path) -> None:
    """Refuse figures if the judge failed on every claim."""
    if not judged:
        raise DatasetError(f"{data}: there are no claims in it")
    failed = {row.error_type for row in judged if row.failure is not None}
    if all(row.failure is not None for row in judged):
        kinds = ", ".join(sorted(str(kind) for kind in failed))
        why = next((f": {row.error}" for row in judged if row.error), "")
        raise JudgeError(f"the judge failed on all {len(judged)} claims ({kinds}){why}")
