"""`ragaliq evaluate`: score a file of cases."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ragaliq.cli.campaign import Campaign
from ragaliq.cli.console import errors, output, plain
from ragaliq.cli.exit_codes import ExitCode
from ragaliq.cli.goals import Goal, missed
from ragaliq.cli.going_on import Wanted
from ragaliq.cli.interruption import say_what_is_left
from ragaliq.cli.journal import Outputs
from ragaliq.cli.judge_choice import choose_judge
from ragaliq.cli.left_out import show_bad_rows, show_left_out, show_no_context
from ragaliq.cli.options import (
    BaseUrl,
    CalibrationFile,
    Data,
    Fields,
    Judge,
    Metrics,
    Model,
    Policy,
    PolicyName,
    SkipBadRows,
    Strategy,
    evaluators_of,
    policy_of,
    reader_of,
)
from ragaliq.cli.progress import RunProgress
from ragaliq.cli.summary import show_summary
from ragaliq.cli.termination import heeding_sigterm
from ragaliq.core.evaluator import Evaluator
from ragaliq.datasets import CaseReader
from ragaliq.errors import ConfigurationError
from ragaliq.records import EvaluationRecord, Summary
from ragaliq.records.results_file import ResultsFile

__all__ = ["evaluate"]

_WORTH_A_PROCESS = 200

Out = Annotated[
    list[Path] | None,
    typer.Option(help="Where results go: .jsonl, .csv, .html, .xml (JUnit); repeatable."),
]


def evaluate(
    data: Data,
    *,
    out: Out = None,
    judge: Judge = None,
    model: Model = None,
    base_url: BaseUrl = None,
    calibration: CalibrationFile = None,
    metrics: Metrics = "faithfulness,relevance",
    policy: Policy = PolicyName.RAGALIQ,
    strategy: Strategy = None,
    field: Fields = None,
    skip_bad_rows: SkipBadRows = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the results file that is there.")
    ] = False,
    retry_failed: Annotated[
        bool,
        typer.Option("--retry-failed", help="With --resume: judge again what the judge failed on."),
    ] = False,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(help="METRIC=MEAN: end with code 1 when the mean is lower; repeatable."),
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0.0, help="US dollars after which no case is begun.")
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, help="Cases judged at the same time, in each process.")
    ] = 8,
    processes: Annotated[
        int | None,
        typer.Option(min=0, help="For the embedded judge; by default one a core, 0 for few cases."),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="How often each case is judged.")] = 1,
    timeout: Annotated[float, typer.Option(min=0.001, help="Seconds each metric may take.")] = 300,
    no_text: Annotated[
        bool, typer.Option("--no-text", help="Keep no questions, answers or claims in results.")
    ] = False,
) -> int:
    """Score the cases of a file. Interrupted, it goes on with --resume where it stopped."""
    scoring = policy_of(policy)
    asked = choose_judge(judge, model=model, base_url=base_url, calibration=calibration)
    decider = asked.judge
    chosen = evaluators_of(metrics, policy=scoring, strategy=strategy)
    for evaluator in chosen:
        evaluator.require(decider)
    goals = [Goal.of(text, [each.name for each in chosen]) for text in fail_under or ()]
    reads = [("the cases", data), ("the calibration", asked.calibration), ("--model", model)]
    outputs = Outputs(out or [], reads=reads)
    outputs.require_a_choice(resume=resume)
    if retry_failed and not resume:
        raise ConfigurationError("--retry-failed goes with --resume")

    reader = reader_of(data, field, skip_bad_rows=skip_bad_rows)
    wanted = Wanted(repeats) if resume else None
    total = _count(reader, chosen, wanted) * repeats
    settings: dict[str, Any] = {
        "data": data.name,
        "judge": decider.name,
        "model": decider.model,
        "calibration": decider.calibration,
        "metrics": {each.name: each.threshold for each in chosen},
        "policy": scoring.name,
        "strategy": strategy.value if strategy else None,
        "repeats": repeats,
        "text": not no_text,
    }
    summary, done = Summary(), set[str]()
    journal = outputs.open(settings, summary, done=done, wanted=wanted, retry_failed=retry_failed)
    campaign = Campaign(
        chosen,
        decider,
        name=data.stem,
        concurrency=concurrency,
        processes=_processes(total - summary.records) if processes is None else processes,
        timeout=timeout,
        repeats=repeats,
        keep_text=not no_text,
        max_cost=max_cost,
        already_spent=summary.usage,
    )
    work = campaign.records(reader, done=done)
    asked.announce()
    try:
        with RunProgress(total, summary.records) as progress:
            asyncio.run(_run(work, journal, summary, progress))
    except (KeyboardInterrupt, typer.Exit):  # Ctrl-C, SIGTERM
        option = "--resume" if outputs.journal else "--out results.jsonl"
        say_what_is_left(summary.records, total, outputs.journal, option=option)
        raise
    finally:
        # Whatever ended the run, what was judged is shown and handed on.
        if summary.records:
            show_summary(summary, campaign.causes)
            output.print(plain(asked.title))
            show_left_out(reader)
            outputs.write()
            if outputs.journal is None:
                errors.print("claim by claim: add --out report.html or --out results.csv")
    return _code(summary, goals)


def _processes(judgings: int) -> int:
    # Starting one takes half a second, in which the embedded judge decides some hundred cases.
    return (os.cpu_count() or 1) if judgings >= _WORTH_A_PROCESS else 0


async def _run(
    work: AsyncIterator[EvaluationRecord],
    file: ResultsFile | None,
    summary: Summary,
    progress: RunProgress,
) -> None:
    try:
        with heeding_sigterm():
            async for record in work:
                if file is not None:
                    file.append(record)
                summary.add(record)
                progress.judged(record.usage)
    finally:
        if file is not None:
            file.close()


def _count(reader: CaseReader, chosen: Sequence[Evaluator], wanted: Wanted | None) -> int:
    """How many cases there are. Reading all first finds a bad row before anything is spent."""
    count, has_context = 0, False
    for case in reader:
        count += 1
        has_context = has_context or case.has_context
        if wanted is not None:
            wanted.add(case)
    show_bad_rows(reader)
    if count and not has_context:
        show_no_context(reader, chosen)
    return count


def _code(summary: Summary, goals: list[Goal]) -> int:
    failed = summary.failed_throughout
    problems = [missed(goal, summary) for goal in goals if goal.metric not in failed]
    for problem in filter(None, problems):
        errors.print(plain(problem))
    # An outage of the judge is no bad answer, whatever mean was asked for.
    if failed:
        errors.print(plain(f"the judge failed on every case: {', '.join(failed)}"))
        return ExitCode.JUDGE
    return ExitCode.BELOW_THRESHOLD if any(problems) else ExitCode.OK
