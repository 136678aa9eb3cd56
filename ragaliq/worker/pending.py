"""`ragaliq evaluate sqlite:///runs.db --pending`: judge the runs that a monitor stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing

from ragaliq.cli.console import (
    errors,
    escape_for_terminal,
    exports_telemetry,
    output,
    stopped_by_sigterm,
)
from ragaliq.cli.options import choose_judge
from ragaliq.errors import ConfigurationError, StoreError
from ragaliq.evaluators.evaluator import Evaluator
from ragaliq.judges.base import LLMJudge
from ragaliq.records import evaluation_record
from ragaliq.records.sqlite_file import parse_options
from ragaliq.records.summary import Summary
from ragaliq.scoring.scorer import Scorer
from ragaliq.telemetry import ContentPolicy

BATCH = "claude-batch"


def evaluate_runs(
    sources: Sequence[str],
    measured: Callable[[LLMJudge], Sequence[Evaluator]],
    *,
    choice: tuple[str | None, str | None, str | None],
    sinks: Sequence[str],
    concurrency: int,
    timeout: float,
    show: Callable[[Summary], object],
) -> Summary:
    """Judge what is pending in a file.

    Args:
        sources: The file's address, alone; numbers after `?` say how batches are made and waited
            for.
        measured: What is measured with a judge, where a run's sampling chose it.
        choice: The judge's name, model and address, as the options have them.
        sinks: Where results go; by default the file itself.
        concurrency: Runs judged at the same time.
        timeout: Seconds each metric may take, but for batches.
        show: Prints what came out, if anything did.
    """
    from ragaliq.worker.batches import BatchJudge
    from ragaliq.worker.runs_file import RunsFile, evaluate_pending

    data, *more = sources
    if more or not data.startswith("sqlite:"):
        raise ConfigurationError("--pending goes with one file of runs: sqlite:///runs.db")
    runs = RunsFile(data)
    if not runs.path.exists():
        raise ConfigurationError(f"{runs.path}: there is no such file")
    options = parse_options(data, "max_requests", "max_bytes", "poll_interval", "resend_after")
    stores = sinks or [f"sqlite:///{runs.path}"]
    judge, model, base_url = choice
    summary, skipped = Summary(), dict[str, Exception]()

    async def run() -> str:
        batches: BatchJudge | None = None
        if judge == BATCH:
            batches = BatchJudge(runs.connection, model, **options)
            scorer = Scorer(batches, measured(batches), sinks=stores, waits_for_sinks=True)
            title = f"judge {batches.name} ({batches.model})"
        else:
            asked = choose_judge(judge, model=model, base_url=base_url)
            scorer = Scorer(
                asked.judge,
                measured(asked.judge),
                deadline=timeout,
                executor=None,
                sinks=stores,
                waits_for_sinks=True,
            )
            title = asked.title
        work = evaluate_pending(
            runs, scorer, concurrency=concurrency, batches=batches, skipped=skipped
        )
        with stopped_by_sigterm(), runs.locked():
            async with scorer, aclosing(work):
                async for evaluation in work:
                    summary.add(evaluation_record(evaluation, content=ContentPolicy()))
            if batches is not None and not skipped:
                batches.clear()
        return title

    exports_telemetry()
    title = asyncio.run(run())
    for job_id, reason in list(skipped.items())[:5]:
        errors.print(escape_for_terminal(f"skipped: run {job_id} stays in the file: {reason}"))
    if len(skipped) > 5:
        errors.print(f"skipped: {len(skipped) - 5:,} more runs")
    if not summary.records:
        output.print("no run was pending" if not skipped else "no run was judged")
    else:
        show(summary)
    output.print(escape_for_terminal(title))
    if any(isinstance(reason, StoreError) for reason in skipped.values()):
        raise StoreError("a sink did not store every result; those runs stay in the file")
    return summary
