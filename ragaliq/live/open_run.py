"""A run in progress: begun with the monitor, ended exactly once."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from ragaliq.core.draft import CaseDraft
from ragaliq.core.run import SpanTarget
from ragaliq.core.test_case import RAGTestCase
from ragaliq.live.job import Framework, Submission

if TYPE_CHECKING:
    from ragaliq.live.engine import Engine
    from ragaliq.live.sampling import SamplingDecision

__all__ = ["OpenRun"]

logger = logging.getLogger(__name__)


class OpenRun:
    """What an adapter holds between a run's start and its end.

    End it with `submit` or `discard`; whatever comes after the first of them does nothing. One that
    is let go without either is counted `abandoned`.

    Attributes:
        run_id: The run's id as text.
    """

    __slots__ = ("_decision", "_ended", "_engine", "_framework", "_pipeline", "run_id")

    def __init__(
        self,
        run_id: str,
        *,
        pipeline: str,
        framework: Framework,
        decision: SamplingDecision,
        engine: Engine,
    ) -> None:
        self._decision = decision
        self.run_id = run_id
        self._pipeline = pipeline
        self._framework: Framework = framework
        self._engine = engine
        # A lock whose only acquisition is the end: atomic, and cheaper than a guarded flag.
        self._ended = threading.Lock()

    @property
    def pipeline(self) -> str:
        """The name that the run was begun under."""
        return self._pipeline

    def submit(
        self,
        case: RAGTestCase | CaseDraft,
        *,
        target: SpanTarget | None = None,
        session_id: str | None = None,
        response_id: str | None = None,
        ended_at: float | None = None,
    ) -> bool:
        """Hand the finished run over for evaluation; never raises.

        Never blocks either, unless the monitor is `inline`.

        What is wrong with a draft comes out on the worker, counted as `internal_error`.

        Args:
            case: Question, context and answer.
            target: The span to link to.
            session_id: The conversation, when the application names it.
            response_id: The model's id of the response, when known.
            ended_at: Unix time in seconds when the run ended, if not now.

        Returns:
            Whether it was accepted. If not, the reason is counted, at once or, for a run held for
            feedback, later.
        """
        if not self._ended.acquire(blocking=False):
            return False
        try:
            return self._decision.settle(
                Submission(
                    case=case,
                    run_id=self.run_id,
                    pipeline=self._pipeline,
                    framework=self._framework,
                    target=target,
                    session_id=session_id,
                    response_id=response_id,
                    ended_at=time.time() if ended_at is None else ended_at,
                ),
                self._engine,
            )
        except Exception as error:  # noqa: BLE001 - the application's request must not notice
            logger.debug("a run could not be handed over: %s", type(error).__name__)
            self._engine.tally.end("incomplete_run", "internal_error")
            return False

    def withdraw(self) -> None:
        """Take the run back, as though it had never begun: its answer was scored by a guard."""
        if self._ended.acquire(blocking=False):
            self._engine.tally.withdraw()

    def discard(self, reason: str) -> None:
        """End a run that cannot be evaluated, counted as `incomplete_run` under `reason`.

        `not_rag` is counted apart: a lone call of a model, or a lone search, lacks nothing.
        """
        if self._ended.acquire(blocking=False):
            if reason == "not_rag":
                self._engine.tally.end("not_rag")
            else:
                self._engine.tally.end("incomplete_run", reason)

    def __del__(self) -> None:
        # Whoever followed the run is gone, say a handler that was made for one request: nobody else
        # can end it. What a forked child lets go of, however, runs on in its parent.
        try:
            if not self._ended.locked() and self._engine.tally.is_of_this_process():
                self.discard("abandoned")
        except Exception:  # noqa: BLE001, S110 - the interpreter may be half gone
            pass
