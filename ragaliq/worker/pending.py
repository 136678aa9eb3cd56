"""`ragaliq evaluate sqlite:///runs.db --pending`: the runs that a monitor stored, as a job."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ragaliq.cli.console import errors, output
from ragaliq.cli.options import ChosenJudge, choose_judge
from ragaliq.core.concurrency import run_all
from ragaliq.core.results import Evaluation
from ragaliq.errors import BudgetExceeded, ConfigurationError, MessageRefusedError, StoreError
from ragaliq.evaluators.evaluator import Evaluator
from ragaliq.judges.base import LLMJudge
from ragaliq.offline.goals import Goal
from ragaliq.offline.job import EvaluationJob
from ragaliq.records.sqlite_file import parse_options
from ragaliq.scoring.scorer import Scorer
from ragaliq.worker.message import read_message
from ragaliq.worker.runs_file import RunsFile

if TYPE_CHECKING:
    from ragaliq.worker.batches import BatchJudge

BATCH = "claude-batch"
_SHOWN = 5


class PendingJob(EvaluationJob):
    """Evaluates the runs in a file; each is deleted once its evaluation is stored.

    Args:
        runs: The file.
        scorer: Evaluates them; waits for its sinks.
        batches: The scorer's judge, if replies come in batches.
        concurrency: Runs evaluated concurrently.
        goals: See `EvaluationJob`.

    Attributes:
        skipped: By job id, why a run stays in the file.
    """

    def __init__(
        self,
        runs: RunsFile,
        scorer: Scorer,
        *,
        batches: BatchJudge | None = None,
        concurrency: int = 8,
        goals: Iterable[Goal | str | float] = (),
    ) -> None:
        super().__init__((), scorer, concurrency=concurrency, goals=goals)
        self.skipped: dict[str, Exception] = {}
        self._runs, self._batches, self._at_once = runs, batches, concurrency

    async def evaluations(self) -> AsyncGenerator[Evaluation]:
        """Evaluations of all that is pending, each once its run is deleted.

        Raises:
            ConfigurationError: Another process evaluates the runs in this file.
            JudgeAPIError: The API of batches may not be asked.
        """
        try:
            with self._runs.locked():
                while True:
                    for some in self._runs.messages(self._at_once):
                        for evaluation in await run_all([self._evaluated(*each) for each in some]):
                            if evaluation is not None:
                                yield evaluation
                    waiting = (job for some in self._runs.messages() for job, _ in some)
                    if self._batches is None or all(job in self.skipped for job in waiting):
                        break
                    await self._batches.round()
                if self._batches is not None and not self.skipped:
                    self._batches.clear()
        finally:
            await self._runs.aclose()

    async def _evaluated(self, job_id: str, body: bytes) -> Evaluation | None:
        scorer, evaluation = self.scorer, None
        try:
            message = read_message(body)
            case, metrics = message.evaluated_case(), set(message.metrics)
            chosen = scorer.chosen(metrics)
            if not chosen:
                self.skipped[job_id] = ConfigurationError("none of its metrics is measured")
                return None
            if not await scorer.is_recorded(case, metrics):
                batches = self._batches
                if batches is not None and not await batches.is_answered(case, chosen):
                    return None
                lag = max(0.0, time.time() - case.evaluated_run.ended_at)
                evaluation = await scorer.score(case, metrics=metrics, lag=lag)
        except (MessageRefusedError, BudgetExceeded, StoreError) as error:
            self.skipped[job_id] = error
            return None
        await asyncio.to_thread(self._runs.done, job_id)
        return evaluation

    def report(self) -> None:
        """Print which runs stay in the file.

        Raises:
            StoreError: Some stay because a sink did not store their results.
        """
        for job_id, reason in list(self.skipped.items())[:_SHOWN]:
            errors.print(f"skipped: run {job_id} stays in the file: {reason}")
        if len(self.skipped) > _SHOWN:
            errors.print(f"skipped: {len(self.skipped) - _SHOWN:,} more runs")
        if not self.summary.records:
            output.print("no run was judged" if self.skipped else "no run was pending")
        if any(isinstance(reason, StoreError) for reason in self.skipped.values()):
            raise StoreError("a sink did not store every result; those runs stay in the file")


def pending_job(
    sources: Sequence[str],
    measured: Callable[[LLMJudge], Sequence[Evaluator]],
    *,
    choice: tuple[str | None, str | None, str | None],
    sinks: Sequence[str],
    concurrency: int,
    timeout: float,
    goals: Iterable[str],
) -> tuple[PendingJob, ChosenJudge, int]:
    """The job, the judge, and the number of runs that wait.

    Args:
        sources: The file's address, alone; numbers after `?` say how batches are made and waited
            for.
        measured: Evaluators of a judge, used for a run whose sampling chose them.
        choice: The judge's name, model and address, as the options have them.
        sinks: Where results go; by default the file itself.
        concurrency: Runs evaluated concurrently.
        timeout: Seconds for each metric, except with batches.
        goals: Values of `--fail-under`.
    """
    data, *more = sources
    if more or not data.startswith("sqlite:"):
        raise ConfigurationError("--pending goes with one file of runs: sqlite:///runs.db")
    runs = RunsFile(data)
    if not runs.path.exists():
        raise ConfigurationError(f"{runs.path}: there is no such file")
    options = parse_options(data, "max_requests", "max_bytes", "poll_interval", "resend_after")
    judge, model, base_url = choice
    batches: BatchJudge | None = None
    if judge == BATCH:
        from ragaliq.worker.batches import BatchJudge

        batches = BatchJudge(runs.connection, model, **options)
        asked = ChosenJudge(batches)
    else:
        asked = choose_judge(judge, model=model, base_url=base_url)
    metrics = measured(asked.judge)
    scorer = Scorer(
        asked.judge,
        metrics,
        deadline=None if batches else timeout,
        executor="thread" if batches else None,
        sinks=sinks or [f"sqlite:///{runs.path}"],
        waits_for_sinks=True,
    )
    names = [each.name for each in metrics]
    job = PendingJob(
        runs,
        scorer,
        batches=batches,
        concurrency=concurrency,
        goals=[Goal.of(text, names, option="--fail-under") for text in goals],
    )
    return job, asked, sum(len(some) for some in runs.messages())
