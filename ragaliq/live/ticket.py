"""A run in progress: begun with the monitor, ended exactly once."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Literal

from ragaliq.core.run import EvaluatedRun, SpanTarget
from ragaliq.core.test_case import RAGTestCase
from ragaliq.live.job import Job

if TYPE_CHECKING:
    from ragaliq.live.stats import Tally
    from ragaliq.live.worker import Worker

__all__ = ["Framework", "RunTicket"]

logger = logging.getLogger(__name__)

Framework = Literal["", "langchain", "llama_index"]


class RunTicket:
    """What an adapter holds between a run's start and its end.

    End it with `submit` or `discard`; whatever comes after the first of them does nothing.
    """

    __slots__ = ("_ended", "_framework", "_pipeline", "_run_id", "_tally", "_worker", "probability")

    def __init__(
        self,
        run_id: str,
        *,
        pipeline: str,
        framework: Framework,
        probability: float,
        tally: Tally,
        worker: Worker,
    ) -> None:
        self.probability = probability
        self._run_id = run_id
        self._pipeline = pipeline
        self._framework: Framework = framework
        self._tally = tally
        self._worker = worker
        # A lock whose only acquisition is the end: atomic, and cheaper than a guarded flag.
        self._ended = threading.Lock()

    def submit(
        self,
        case: RAGTestCase,
        *,
        target: SpanTarget | None = None,
        session_id: str | None = None,
        response_id: str | None = None,
    ) -> bool:
        """Hand the finished run over for evaluation; never blocks and never raises.

        Returns:
            Whether it was accepted. If not, the reason is counted.
        """
        if not self._ended.acquire(blocking=False):
            return False
        try:
            run = EvaluatedRun(
                run_id=self._run_id,
                pipeline=self._pipeline,
                framework=self._framework,
                target=target,
                sampling_probability=self.probability,
                session_id=session_id,
                response_id=response_id,
                ended_at=time.time(),
            )
            refused = self._worker.submit(Job(case=case, run=run))
        except Exception as error:  # noqa: BLE001 - the application's request must not notice
            logger.debug("a run could not be handed over: %s", type(error).__name__)
            self._tally.end("incomplete_run", "internal_error")
            return False
        if refused is not None:
            self._tally.end(refused)
        return refused is None

    def discard(self, reason: str) -> None:
        """End a run that cannot be evaluated, counted as `incomplete_run` under `reason`."""
        if self._ended.acquire(blocking=False):
            self._tally.end("incomplete_run", reason)
