"""Having a file of labelled claims judged, with progress and a journal."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack, aclosing
from pathlib import Path
from typing import Annotated

import typer

from ragaliq.bench import Journal, JudgedClaim, journal_settings, judge_claims
from ragaliq.cli.interruption import say_what_is_left
from ragaliq.cli.progress import RunProgress
from ragaliq.core.results import JudgeUsage
from ragaliq.datasets import LabelledClaim, read_labelled_claims
from ragaliq.errors import ConfigurationError, DatasetError, JudgeError
from ragaliq.judges.base import LLMJudge

__all__ = [
    "Concurrency",
    "JournalFile",
    "Labels",
    "MaxCost",
    "Timeout",
    "judge_file",
    "require_some_success",
]

Labels = Annotated[
    Path, typer.Argument(help="Labelled claims (claim, context, label): .jsonl, .csv, ...; .gz.")
]
JournalFile = Annotated[
    Path | None,
    typer.Option("--journal", help="Keeps what was judged; a further run goes on from it."),
]
MaxCost = Annotated[
    float | None, typer.Option(min=0.0, help="US dollars after which no claim is begun.")
]
Concurrency = Annotated[int, typer.Option(min=1, help="Claims asked about at the same time.")]
Timeout = Annotated[float, typer.Option(min=0.001, help="Seconds each claim may take.")]


def judge_file(
    data: Path,
    judge: LLMJudge,
    *,
    journal: Path | None = None,
    max_cost: float | None = None,
    concurrency: int = 8,
    timeout: float = 120.0,
) -> list[JudgedClaim]:
    """Have the claims of a file judged, but for those that the journal holds.

    Raises:
        DatasetError: The data or the journal cannot be read.
        BudgetExceeded: `max_cost` is reached; the journal keeps what was judged.
        ConfigurationError: There is a `max_cost` without a journal, or without a price.
    """
    if max_cost is not None and journal is None:
        raise ConfigurationError("--max-cost needs --journal, or what was paid for would be lost")
    # Reading all first finds a bad row before anything is spent.
    claims = list(read_labelled_claims(data))
    with ExitStack() as files:
        kept: Journal | None = None
        if journal is not None:
            kept = files.enter_context(Journal(journal, journal_settings(data, judge)))
        known = kept.judged if kept else {}
        judged = [known[claim.id] for claim in claims if claim.id in known]
        todo = [claim for claim in claims if claim.id not in known]
        progress = files.enter_context(RunProgress(len(claims), len(judged)))

        async def run(todo: Sequence[LabelledClaim]) -> None:
            work = judge_claims(
                todo,
                judge,
                concurrency=concurrency,
                deadline=timeout,
                max_cost=max_cost,
                already_spent=kept.usage if kept else JudgeUsage(),
            )
            try:
                async with aclosing(work) as stream:
                    async for each in stream:
                        if kept is not None:
                            kept.append(each)
                        judged.append(each)
                        progress.judged(each.usage)
            finally:
                await judge.aclose()

        try:
            asyncio.run(run(todo))
        except KeyboardInterrupt:
            option = f"--journal {journal or 'journal.jsonl'}"
            say_what_is_left(len(judged), len(claims), journal, option=option)
            raise
    return judged


def require_some_success(judged: Sequence[JudgedClaim], data: Path) -> None:
    """Refuse figures of nothing.

    Raises:
        DatasetError: There are no claims.
        JudgeError: The judge failed on every one of them.
    """
    if not judged:
        raise DatasetError(f"{data}: there are no claims in it")
    failed = {row.error_type for row in judged if row.failure is not None}
    if all(row.failure is not None for row in judged):
        kinds = ", ".join(sorted(str(kind) for kind in failed))
        raise JudgeError(f"the judge failed on all {len(judged)} claims ({kinds})")
