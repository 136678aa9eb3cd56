"""Runs in a file, for judging later: `Monitor(executor="sqlite:///runs.db")`."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ragaliq.core.concurrency import run_all
from ragaliq.errors import (
    BudgetExceeded,
    ConfigurationError,
    MessageRefusedError,
    StoreError,
)
from ragaliq.records.sqlite_file import WriterConnection, parse_location
from ragaliq.worker.executor import JobExecutor
from ragaliq.worker.message import read_message

if TYPE_CHECKING:
    from ragaliq.core.results import Evaluation
    from ragaliq.scoring.batches import BatchJudge
    from ragaliq.scoring.scorer import Scorer

__all__ = ["FileExecutor", "RunsFile", "evaluate_pending"]

_TABLE = """
CREATE TABLE IF NOT EXISTS pending_runs (
    job_id TEXT PRIMARY KEY, added_at REAL NOT NULL, message BLOB NOT NULL
)
"""


class RunsFile:
    """Runs that wait for a judge, in the file of a store.

    Args:
        location: `sqlite:///path`, or a path.

    Raises:
        ConfigurationError: It is not such an address.
    """

    def __init__(self, location: str) -> None:
        self.path = parse_location(location)
        self.connection = WriterConnection(self.path, busy_timeout=5.0)
        self._is_made = False

    def add(self, job_id: str, message: bytes) -> None:
        """Store a run; once, however often it comes."""
        self._make()
        with self.connection.transaction() as sql:
            values = (job_id, time.time(), message)
            sql.execute("INSERT OR IGNORE INTO pending_runs VALUES (?, ?, ?)", values)

    def messages(self, at_once: int = 200) -> Iterator[list[tuple[str, bytes]]]:
        """All that wait, by job id, the oldest first and some at a time."""
        self._make()
        last = (0.0, "")
        while True:
            with self.connection.reading() as sql:
                rows = sql.execute(
                    "SELECT job_id, added_at, message FROM pending_runs "
                    "WHERE (added_at, job_id) > (?, ?) ORDER BY added_at, job_id LIMIT ?",
                    (*last, at_once),
                ).fetchall()
            if not rows:
                return
            yield [(row[0], row[2]) for row in rows]
            last = (rows[-1][1], rows[-1][0])

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
        descriptor = os.open(f"{self.path}.lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise ConfigurationError(
                f"{self.path}: another process is evaluating the runs in this file"
            ) from None
        except ImportError:
            pass  # a system without such locks
        try:
            yield
        finally:
            os.close(descriptor)

    def _make(self) -> None:
        if not self._is_made:
            with self.connection.reading() as sql:
                sql.execute(_TABLE)
            self._is_made = True


class FileExecutor(JobExecutor):
    """Stores a monitor's runs in a file, where `ragaliq evaluate FILE --pending` judges them.

    Args:
        location: `sqlite:///path`.

    Raises:
        ConfigurationError: It is not such an address.
    """

    name = "sqlite"

    def __init__(self, location: str) -> None:
        self._file = RunsFile(location)

    async def publish(self, job_id: str, message: bytes) -> None:
        """See `JobExecutor`."""
        await asyncio.to_thread(self._file.add, job_id, message)

    async def aclose(self) -> None:
        """Close the file; the next run opens it again, also in a forked child."""
        await asyncio.to_thread(self._file.connection.close)


async def evaluate_pending(
    runs: RunsFile,
    scorer: Scorer,
    *,
    concurrency: int,
    batches: BatchJudge | None = None,
    skipped: dict[str, str] | None = None,
) -> AsyncGenerator[Evaluation]:
    """Judge the runs in a file and yield each evaluation once it is stored and its run deleted.

    Args:
        runs: The file, locked.
        scorer: Judges, emits and stores, with `waits_for_sinks`.
        concurrency: Runs judged at the same time.
        batches: The scorer's judge, where its replies come in batches.
        skipped: Takes the runs that stay in the file, by job id, with the reason.

    Raises:
        JudgeAPIError: The API of batches may not be asked.
    """
    left = {} if skipped is None else skipped

    async def judged(job_id: str, body: bytes) -> Evaluation | None:
        try:
            message = read_message(body)
        except MessageRefusedError as error:
            left[job_id] = f"{error.reason}: {error.detail}"
            return None
        run, metrics = message.evaluated_run(), set(message.metrics)
        chosen = scorer.chosen(metrics)
        if not chosen:
            left[job_id] = "none of its metrics is measured"
            return None
        if await scorer.is_recorded(run, metrics):
            await asyncio.to_thread(runs.done, job_id)
            return None
        if batches is not None and not await batches.is_answered(message.case, chosen):
            return None
        lag = max(0.0, time.time() - run.ended_at)
        try:
            evaluation = await scorer.score(message.case, run, metrics=metrics, lag=lag)
        except (BudgetExceeded, StoreError) as error:
            left[job_id] = str(error)
            return None
        await asyncio.to_thread(runs.done, job_id)
        return evaluation

    while True:
        for some in runs.messages(concurrency):
            for evaluation in await run_all([judged(*each) for each in some]):
                if evaluation is not None:
                    yield evaluation
        if batches is None or all(job in left for some in runs.messages() for job, _ in some):
            return
        await batches.round()
