"""Runs in a file, for judging later: `Monitor(executor="sqlite:///runs.db")`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ragaliq.core.concurrency import run_all
from ragaliq.core.files import lock, owner_only
from ragaliq.errors import BudgetExceeded, ConfigurationError, MessageRefusedError, StoreError
from ragaliq.records.sqlite_file import WriterConnection, parse_location
from ragaliq.worker.executor import JobExecutor
from ragaliq.worker.message import read_message

if TYPE_CHECKING:
    from ragaliq.core.results import Evaluation
    from ragaliq.scoring.scorer import Scorer
    from ragaliq.worker.batches import BatchJudge

_TABLE = """
CREATE TABLE IF NOT EXISTS pending_runs (
    number INTEGER PRIMARY KEY AUTOINCREMENT, job_id TEXT UNIQUE, message BLOB NOT NULL
)
"""


class RunsFile(JobExecutor):
    """Runs in the file of a store (`sqlite:///path`), which `ragaliq evaluate --pending` judges."""

    name = "sqlite"

    def __init__(self, location: str) -> None:
        self.path = parse_location(location)
        self.connection = WriterConnection(self.path, busy_timeout=5.0)

    async def publish(self, job_id: str, message: bytes) -> None:
        """Store a run; once, however often it comes."""
        await asyncio.to_thread(self._add, job_id, message)

    def _add(self, job_id: str, message: bytes) -> None:
        with self.connection.transaction() as sql:
            sql.execute(_TABLE)
            sql.execute("INSERT OR IGNORE INTO pending_runs VALUES (NULL, ?, ?)", (job_id, message))

    async def aclose(self) -> None:
        """Close the file; the next run opens it again, also in a forked child."""
        await asyncio.to_thread(self.connection.close)

    def messages(self, at_once: int = 200) -> Iterator[list[tuple[str, bytes]]]:
        """All that wait, by job id, the oldest first and some at a time."""
        last = 0
        while True:
            with self.connection.reading() as sql:
                sql.execute(_TABLE)
                rows = sql.execute(
                    "SELECT job_id, message, number FROM pending_runs WHERE number > ? "
                    "ORDER BY number LIMIT ?",
                    (last, at_once),
                ).fetchall()
            if not rows:
                return
            yield [row[:2] for row in rows]
            last = rows[-1][2]

    def done(self, job_id: str) -> None:
        """Delete a run: its record is stored."""
        with self.connection.transaction() as sql:
            sql.execute("DELETE FROM pending_runs WHERE job_id = ?", (job_id,))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only process that judges what is in the file.

        Raises:
            ConfigurationError: Another process does.
        """
        with open(f"{self.path}.lock", "ab", opener=owner_only) as file:
            in_use = f"{self.path}: another process is evaluating the runs in this file"
            lock(file, ConfigurationError(in_use))
            yield


async def evaluate_pending(
    runs: RunsFile,
    scorer: Scorer,
    *,
    concurrency: int,
    batches: BatchJudge | None = None,
    skipped: dict[str, Exception],
) -> AsyncGenerator[Evaluation]:
    """Judge the runs in a file and yield each evaluation once it is stored and its run deleted.

    The file is locked; the scorer waits for its sinks, and its judge is `batches` where replies
    come in batches; `skipped` takes the runs that stay in the file, by job id, with the reason.

    Raises:
        JudgeAPIError: The API of batches may not be asked.
    """

    async def judged(job_id: str, body: bytes) -> Evaluation | None:
        evaluation = None
        try:
            message = read_message(body)
            run, metrics = message.evaluated_run(), set(message.metrics)
            chosen = scorer.chosen(metrics)
            if not chosen:
                skipped[job_id] = ConfigurationError("none of its metrics is measured")
                return None
            if not await scorer.is_recorded(run, metrics):
                if batches is not None and not await batches.is_answered(message.case, chosen):
                    return None
                lag = max(0.0, time.time() - run.ended_at)
                evaluation = await scorer.score(message.case, run, metrics=metrics, lag=lag)
        except (MessageRefusedError, BudgetExceeded, StoreError) as error:
            skipped[job_id] = error
            return None
        await asyncio.to_thread(runs.done, job_id)
        return evaluation

    while True:
        for some in runs.messages(concurrency):
            for evaluation in await run_all([judged(*each) for each in some]):
                if evaluation is not None:
                    yield evaluation
        if batches is None or all(job in skipped for some in runs.messages() for job, _ in some):
            return
        await batches.round()
