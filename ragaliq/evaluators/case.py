"""All metrics of one case at once: claim checks are shared, failures stay with their metric."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from typing import Any

from ragaliq.core.concurrency import is_being_cancelled, run_all
from ragaliq.core.evaluator import Evaluator
from ragaliq.core.pacing import current_pace
from ragaliq.core.policy import UNSCORED
from ragaliq.core.results import EvaluationResult, JudgeUsage, Status
from ragaliq.core.spending import Spending, spending
from ragaliq.core.suppression import suppress
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import (
    ConfigurationError,
    DatasetError,
    JudgeAPIError,
    JudgeError,
    JudgeTimeoutError,
    MissingReferenceError,
    RateLimitedError,
)
from ragaliq.evaluators.claims import ClaimCheck
from ragaliq.evaluators.metrics import ClaimEvaluator
from ragaliq.judges.base import LLMJudge

__all__ = ["evaluate_case"]


async def evaluate_case(
    case: RAGTestCase,
    evaluators: Sequence[Evaluator],
    judge: LLMJudge,
    *,
    deadline: float | None = None,
) -> dict[str, EvaluationResult]:
    """Evaluate one case with several evaluators.

    Claim-based evaluators with the same policy and strategy share one claim check, whose cost is
    reported on the first of them only, so that adding up results gives what was really spent.

    Args:
        case: Question, context and answer.
        evaluators: With distinct names.
        judge: Who decides.
        deadline: Seconds each metric may take; None for no limit.

    Returns:
        A result for every evaluator, by name and in order. An evaluator that failed gives a result
        whose status says so, whatever its policy: other metrics are never lost.

    Raises:
        ConfigurationError: It would fail every case alike.
    """
    checks = _SharedChecks(case, judge)
    try:
        pending = [_timed(evaluator, case, judge, checks, deadline) for evaluator in evaluators]
        results = await run_all(pending)
    finally:
        checks.cancel()
    return dict(zip((evaluator.name for evaluator in evaluators), results, strict=True))


class _SharedChecks:
    """The claim checks of one case, each made once."""

    def __init__(self, case: RAGTestCase, judge: LLMJudge) -> None:
        self._case = case
        self._judge = judge
        self._tasks: dict[Any, asyncio.Task[ClaimCheck]] = {}

    async def grade(self, evaluator: ClaimEvaluator) -> EvaluationResult:
        key = evaluator.check_key
        first = key not in self._tasks
        if first:
            task = asyncio.create_task(evaluator.check(self._case, self._judge))
            task.add_done_callback(_heard)
            self._tasks[key] = task
        try:
            # One metric's deadline must not cancel what another still waits for.
            check = await asyncio.shield(self._tasks[key])
        except JudgeError as error:
            if first:
                raise
            return evaluator.failure_result(error, self._judge, usage=JudgeUsage())
        result = evaluator.grade(check, self._judge)
        if first:
            return result
        return result.model_copy(update={"usage": JudgeUsage(), "tokens_used": 0})

    def cancel(self) -> None:
        for task in self._tasks.values():
            task.cancel()


def _heard(task: asyncio.Task[ClaimCheck]) -> None:
    # After a deadline nobody asks what became of a check, and asyncio would log what it raised,
    # the application's text included.
    if not task.cancelled():
        task.exception()


async def _timed(
    evaluator: Evaluator,
    case: RAGTestCase,
    judge: LLMJudge,
    checks: _SharedChecks,
    deadline: float | None,
) -> EvaluationResult:
    started = time.perf_counter()
    # A subclass that measures in its own way is not to be bypassed.
    own_way = type(evaluator).measure is not ClaimEvaluator.measure
    if isinstance(evaluator, ClaimEvaluator) and not own_way:
        outcome: Awaitable[EvaluationResult] = checks.grade(evaluator)
    else:
        outcome = evaluator.measure(case, judge)
    with suppress(), spending() as spent:
        result = await _guarded(outcome, evaluator, judge, deadline, spent)
    return result.model_copy(update={"duration": time.perf_counter() - started})


async def _guarded(
    outcome: Awaitable[EvaluationResult],
    evaluator: Evaluator,
    judge: LLMJudge,
    deadline: float | None,
    spent: Spending,
) -> EvaluationResult:
    try:
        async with asyncio.timeout(deadline) as limit:
            return await outcome
    except JudgeError as error:
        return evaluator.failure_result(error, judge, usage=spent.up_to(error))
    except TimeoutError:
        failure = _why_so_late(deadline if limit.expired() else None)
        return evaluator.failure_result(failure, judge, usage=spent.usage)
    except DatasetError as error:
        missing_reference = isinstance(error, MissingReferenceError)
        status = Status.NO_REFERENCE if missing_reference else Status.NO_CONTEXT
        return evaluator.result(
            judge,
            status=status,
            fallback=UNSCORED,
            reasoning=f"Not scored: {error}.",
            usage=spent.usage,
            error=str(error),
            error_type=type(error).__name__,
        )
    except ConfigurationError:
        raise
    except (Exception, asyncio.CancelledError) as error:
        if is_being_cancelled():
            raise
        # A judge of the user's own may raise anything. The message may quote the answer: only the
        # type is passed on.
        raised = JudgeAPIError(f"the judge raised {type(error).__name__}")
        result = evaluator.failure_result(raised, judge, usage=spent.usage)
        return result.model_copy(update={"error_type": type(error).__name__})


def _why_so_late(deadline: float | None) -> JudgeTimeoutError:
    if deadline is None:
        return JudgeTimeoutError("the judge ran out of time")
    pace = current_pace()
    if pace is not None and pace.held_up:
        return RateLimitedError(f"the rate limit left no turn within {deadline} s")
    return JudgeTimeoutError(f"no result within {deadline} s")
