"""Runs on disk while a judge that takes hours has them, so that a restart goes on with them.

Only for judges that keep a file of their own anyway: there the runs are plain JSON, from the moment
the judge gets them until what came of them has been handed on.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ragaliq.core.concurrency import is_being_cancelled
from ragaliq.core.keeping import keeping
from ragaliq.errors import StoreError
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.digest import digest_of, long_digest_of
from ragaliq.live.job import Job, Submission
from ragaliq.live.sampling.choice import Choice

if TYPE_CHECKING:
    from ragaliq.live.engine import Engine

__all__ = ["KeptRuns", "kept_runs", "resume"]

logger = logging.getLogger(__name__)

_NAMESPACE = "live_runs"
# Runs of a monitor that never came back are not kept for ever.
_KEPT_FOR = 30 * 86_400.0
# Runs that are handed over at once, and seconds until the next ones.
_AT_ONCE = 200
_PAUSE = 0.05


class KeptRuns:
    """The runs of one monitor in a store. A store that fails costs a warning and no run.

    Args:
        store: The file.
        monitor: What the runs are evaluated with; another monitor leaves them alone.
    """

    def __init__(self, store: Path, *, monitor: str) -> None:
        # Loaded here: most monitors keep nothing, and need no SQLite.
        from ragaliq.storage.owners import Owner
        from ragaliq.storage.state import StateArea

        self._area = StateArea(store, namespace=_NAMESPACE)
        self._owner = Owner(store)
        self.store, self._monitor = store, monitor

    @contextmanager
    def keeping(self, job: Job) -> Iterator[None]:
        """Have a run on disk during the block, and after it if the process is ending."""
        text = job.model_dump_json()
        key = long_digest_of(text)
        self._put(key, text)
        try:
            # The judge's replies go when the run does.
            with keeping() as replies:
                yield
        except asyncio.CancelledError:
            if not is_being_cancelled():
                self._delete(key)
            raise
        except Exception:
            self._delete(key)
            raise
        # In this order: a run that came back after a crash in between would be paid for again.
        self._delete(key)
        replies.kept()

    def left_behind(self) -> list[Job]:
        """The runs of monitors that are gone, now this one's; of several exactly one gets each."""
        try:
            items = self._area.items()
            gone = set(self._owner.gone({item["owner"] for item in items.values()}))
            return [
                job
                for key, item in items.items()
                if item["owner"] in gone and (job := self._claimed(key, item)) is not None
            ]
        except (StoreError, OSError) as error:
            logger.warning("runs of an earlier process cannot be read: %s", error)
            return []

    def close(self) -> None:
        """Leave the runs that are not done to whoever comes next."""
        self._owner.close()
        self._area.close()

    def _claimed(self, key: str, item: dict[str, Any]) -> Job | None:
        if time.time() - item["since"] > _KEPT_FOR:
            self._area.delete(key)
            return None
        if item["monitor"] != self._monitor:
            return None
        if not self._area.replace(key, item, {**item, "owner": self._owner.name}):
            return None
        try:
            return Job.model_validate_json(item["job"])
        except ValidationError:
            logger.warning("a run kept by another version of ragaliq cannot be read; left out")
            self._area.delete(key)
            return None

    def _put(self, key: str, text: str) -> None:
        try:
            owner = self._owner.name
            item = {"owner": owner, "monitor": self._monitor, "since": time.time(), "job": text}
            self._area.put(key, item)
        except (StoreError, OSError) as error:
            logger.warning("a run is not kept over a restart: %s", error)

    def _delete(self, key: str) -> None:
        try:
            self._area.delete(key)
        except (StoreError, OSError) as error:
            logger.warning("a run that is done stays in the store: %s", error)


def kept_runs(judge: LLMJudge, metrics: Iterable[str]) -> KeptRuns | None:
    """Where a monitor with this judge keeps its runs; None where it need not."""
    store: object = judge.store
    if not isinstance(store, Path):
        return None
    return KeptRuns(store, monitor=digest_of(judge.name, *sorted(metrics)))


def resume(engine: Engine, runs: KeptRuns) -> None:
    """Hand the runs of an earlier process to the engine, on its worker's thread."""
    left: list[Job] = []

    def begin() -> None:
        left.extend(runs.left_behind())
        if left:
            logger.info("going on with %d runs of an earlier process", len(left))
        go_on()

    def go_on() -> None:
        # In portions, between which the worker takes them out of its queue.
        for _ in range(min(_AT_ONCE, len(left), max(1, engine.room))):
            engine.tally.start()
            engine.submit(_submission(left.pop()), is_late=True)
        if left:
            engine.worker.call_later(_PAUSE, go_on)

    if runs.store.exists():  # or the thread would be started for nothing
        engine.worker.call_later(0.0, begin)


def _submission(job: Job) -> Submission:
    run = job.run
    return Submission(
        case=job.case,
        run_id=run.run_id,
        pipeline=run.pipeline,
        framework=run.framework,
        target=run.target,
        session_id=run.session_id,
        response_id=run.response_id,
        ended_at=run.ended_at,
        choice=Choice(
            probability=run.sampling_probability,
            metrics=run.metric_probabilities,
            reason=run.sampling_reason,
            rules=run.sampling_rules,
            represents_traffic=run.represents_traffic,
        ),
    )
