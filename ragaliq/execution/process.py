"""Judging in a process of its own, which is started again when it dies."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from ragaliq.core.evaluator import Evaluator
from ragaliq.core.results import EvaluationResult
from ragaliq.core.sync import WorkThread
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import JudgeError, JudgeProcessError, JudgeTimeoutError, RagaliqError
from ragaliq.execution.channel import Message
from ragaliq.execution.child import Child, ChildLostError, StartFailedError
from ragaliq.execution.plan import case_data, write_plan
from ragaliq.execution.seam import Executor, ThreadScorer
from ragaliq.judges.base import LLMJudge

__all__ = ["ProcessScorer"]

logger = logging.getLogger(__name__)

_GRACE = 5.0
_STARTS_TRIED = 3
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


class ProcessScorer:
    """Has cases evaluated by a child process; see `CaseScorer`.

    The process starts with the first case. Where it cannot be started at all, cases are evaluated
    on the thread instead, which is said once.

    Args:
        evaluators: All that will be asked for; of ragaliq's own.
        judge: The embedded judge, for its name in failures and for the thread.
        niceness: Added to the process's priority number.
    """

    def __init__(self, evaluators: Sequence[Evaluator], judge: LLMJudge, *, niceness: int) -> None:
        self._evaluators, self._judge, self._niceness = evaluators, judge, niceness
        self._plan: Message = write_plan(evaluators, judge) | {"niceness": niceness}
        self._thread = ThreadScorer(judge)
        self._work = WorkThread("ragaliq-start")
        self._child: Child | None = None
        self._starting = asyncio.Lock()
        self._starts = 0
        self._failures = 0  # deaths and failed starts since the last answer
        self._gave_up = False
        self._complained = False

    @property
    def executor(self) -> Executor:
        """Where cases are evaluated: the thread, once the process could not be started."""
        return "thread" if self._gave_up else "process"

    @property
    def restarts(self) -> int:
        """How often the process was started again."""
        return max(0, self._starts - 1)

    async def score(
        self, case: RAGTestCase, evaluators: Sequence[Evaluator], *, deadline: float
    ) -> dict[str, EvaluationResult]:
        """Evaluate a case; one that was with the process when it died is not tried again.

        Raises:
            RagaliqError: The evaluation itself raised; the message names the error's class.
        """
        names = [evaluator.name for evaluator in evaluators]
        job = {"case": case_data(case), "evaluators": names, "deadline": deadline}
        try:
            reply = await self._ask(job, patience=deadline + _GRACE)
        except ChildLostError as lost:
            error = _failure(lost, deadline + _GRACE)
            return {each.name: each.failure_result(error, self._judge) for each in evaluators}
        if reply is None:
            return await self._thread.score(case, evaluators, deadline=deadline)
        self._failures = 0
        if "failed" in reply:
            raise RagaliqError(f"the process that judges met {reply['failed']}")
        rows = [EvaluationResult.model_validate(row) for row in reply["results"]]
        return dict(zip(names, rows, strict=True))

    async def aclose(self) -> None:
        """End the process, if there is one, and close the judge."""
        if self._child is not None:
            await self._child.aclose()
        await self._thread.aclose()

    def after_fork(self) -> ProcessScorer:
        """A scorer that starts a process of its own when it needs one."""
        if self._child is not None:
            self._child.disown()
        return ProcessScorer(self._evaluators, self._judge, niceness=self._niceness)

    async def _ask(self, job: Message, *, patience: float) -> Message | None:
        """The process's reply; None where there is no process.

        Raises:
            ChildLostError: It ended with the case, or several before they could be given it.
        """
        attempt = 1
        while (child := await self._running_child()) is not None:
            try:
                return await child.ask(job, patience=patience)
            except ChildLostError as lost:
                # A process that never had the case did not die of it.
                if lost.was_asked or attempt == _STARTS_TRIED:
                    raise
                attempt += 1
        return None

    async def _running_child(self) -> Child | None:
        if self._child is not None and self._child.is_alive:
            return self._child
        async with self._starting:
            if self._child is not None and not self._child.is_alive:
                self._mourn(self._child)
            while self._child is None and not self._gave_up:
                await self._try_to_start()
            return self._child

    def _mourn(self, child: Child) -> None:
        self._child = None
        self._failures += 1
        if not self._complained:
            self._complained = True
            logger.warning(
                "the process that judges ended (exit code %s) and is started again; "
                "further ends are counted in stats().restarts, not logged",
                child.exit_code,
            )

    async def _try_to_start(self) -> None:
        if self._failures > 1:
            pause = _FIRST_PAUSE * 2.0 ** min(self._failures - 2, 10)
            await asyncio.sleep(min(pause, _LONGEST_PAUSE))
        for attempt in range(1, _STARTS_TRIED + 1):
            try:
                self._child = await Child.start(self._plan, self._work)
            except StartFailedError as error:
                if attempt == _STARTS_TRIED:
                    self._give_up(str(error))
                else:
                    await asyncio.sleep(_FIRST_PAUSE * 2.0**attempt)
            else:
                self._starts += 1
                return

    def _give_up(self, why: str) -> None:
        self._gave_up = True
        logger.warning(
            "no process to judge in can be started here (%s); the worker's thread judges instead. "
            "To have it so from the start, set executor='thread' (Monitor, or RAGALIQ_EXECUTOR)",
            why,
        )


def _failure(lost: ChildLostError, patience: float) -> JudgeError:
    if lost.hung:
        return JudgeTimeoutError(f"the process that judges gave no sign of life in {patience:g} s")
    return JudgeProcessError("the process that judges ended while it had this case")
