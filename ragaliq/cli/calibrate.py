"""`ragaliq calibrate`: make a judge's confidence a probability."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragaliq.cli.claim_judging import (
    Concurrency,
    JournalFile,
    Labels,
    MaxCost,
    Timeout,
    judge_file,
    require_some_success,
)
from ragaliq.cli.console import errors, output, plain
from ragaliq.cli.exit_codes import ExitCode
from ragaliq.cli.judge_choice import choose_judge
from ragaliq.cli.options import BaseUrl, Judge, Model
from ragaliq.cli.output_files import require_writable
from ragaliq.errors import ConfigurationError
from ragaliq.judges.base import BatchingJudge
from ragaliq.judges.calibration import Calibration, Side, fit_calibration

__all__ = ["calibrate"]

_SIDES: tuple[tuple[Side, str], ...] = (
    ("faithfulness", "called supported from a probability of"),
    ("hallucination", "flagged as unsupported below"),
)
_PRECISIONS = (0.8, 0.9, 0.95)


def calibrate(
    labels: Labels,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="The .json file to write.")],
    judge: Judge = None,
    model: Model = None,
    base_url: BaseUrl = None,
    precision: Annotated[
        float | None,
        typer.Option(help="Call a claim supported only where this share of such claims is."),
    ] = None,
    journal: JournalFile = None,
    max_cost: MaxCost = None,
    concurrency: Concurrency = 8,
    timeout: Timeout = 120.0,
    seed: Annotated[int, typer.Option(help="Of the cross-validation.")] = 0,
) -> int:
    """Fit a judge's confidence to labelled claims. At least 100 are needed, 20 of each kind."""
    require_writable(
        [("--journal", journal), ("--out", out)],
        read=[("the labels", labels), ("--model", model)],
    )
    asked = choose_judge(judge, model=model, base_url=base_url, is_calibrated=False)
    decider = asked.judge
    if not isinstance(decider, BatchingJudge):
        raise ConfigurationError(f"{decider.name} cannot be calibrated: it is no BatchingJudge")
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
    # In the file's order and not in that of the replies: the same labels give the same calibration.
    rows = sorted((row for row in judged if row.failure is None), key=lambda row: row.id)
    if len(rows) < len(judged):
        errors.print(f"{len(judged) - len(rows):,} claims are left out: the judge failed on them")
    calibration = fit_calibration(
        decider,
        [row.support for row in rows if row.support is not None],
        [row.is_supported for row in rows],
        clusters=[row.cluster for row in rows],
        precision=precision,
        seed=seed,
    )
    calibration.save(out)
    _show(calibration, out)
    return ExitCode.OK


def _show(calibration: Calibration, out: Path) -> None:
    figures = calibration.figures
    output.print(plain(f"{calibration.id} in {out}"))
    output.print(
        f"{calibration.method}, {calibration.labels:,} labels, {calibration.supported:,} supported"
    )
    low, high = figures.auroc_interval
    output.print(plain(f"AUROC {figures.auroc:.3f} [{low:.3f}, {high:.3f}]"))
    output.print(
        "on left-out labels: "
        f"Brier score {figures.brier:.3f} (was {figures.brier_uncalibrated:.3f}), "
        f"ECE {figures.ece:.3f} (was {figures.ece_uncalibrated:.3f})"
    )
    for side, words in _SIDES:
        for wanted in _PRECISIONS:
            try:
                told = f"{words} {calibration.threshold_for(wanted, evaluator=side):.3f}"
            except ConfigurationError:
                told = "no threshold; these labels do not show that precision"
            output.print(f"{wanted:.0%} precise for {side}: {told}")
    output.print(
        f"a claim counts as supported from a probability of {calibration.supported_from:g}"
    )
