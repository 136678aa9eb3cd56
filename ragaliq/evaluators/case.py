"""Evaluation of one case with all metrics: they share claim checks but not failures."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ragaliq.core.concurrency import is_being_cancelled, run_all
from ragaliq.core.log_once import LogOnce
from ragaliq.core.results import EvaluationResult, JudgeUsage, Status
from ragaliq.core.spending import spending
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
from ragaliq.evaluators.claims import ClaimCheck, check_claims
from ragaliq.evaluators.evaluator import Evaluator
from ragaliq.evaluators.metrics import ClaimEvaluator
from ragaliq.judges.base import LLMJudge, identity_of

_LOG_ONCE = LogOnce(logging.getLogger(__name__))

RAISED = "the judge raised"
"""Begins the error of a judge that raised anything but a `JudgeError`; that is logged here."""

_Checks: TypeAlias = dict[Any, asyncio.Task[ClaimCheck]]


async def evaluate_case(
    case: RAGTestCase,
    evaluators: Sequence[Evaluator],
    judge: LLMJudge,
    *,
    deadline: float | None = None,
) -> dict[str, EvaluationResult]:
    """Evaluate one case with several metrics.

    Claim-based metrics with the same policy and strategy share one claim check, whose cost is
    reported on the first of them only, so that the sum of all results is the true cost.

    Args:
        case: Question, context and answer.
        evaluators: Metrics with distinct names.
        judge: The judge.
        deadline: Most seconds for each metric; None for no limit.

    Returns:
        A result for every metric, by name and in order. A failed metric has a result with a status
        of failure, whatever its policy: the other metrics are never lost.

    Raises:
        ConfigurationError: A setting would fail every case.
    """
    checks: _Checks = {}
    try:
        if len(evaluators) == 1:
            results = [await _measured(evaluators[0], case, judge, checks, deadline)]
        else:
            results = await run_all(
                _measured(evaluator, case, judge, checks, deadline) for evaluator in evaluators
            )
    finally:
        for check in checks.values():
            check.cancel()
    return dict(zip((evaluator.name for evaluator in evaluators), results, strict=True))


async def _measured(
    evaluator: Evaluator,
    case: RAGTestCase,
    judge: LLMJudge,
    checks: _Checks,
    deadline: float | None,
) -> EvaluationResult:
    """Result of one metric, also if it failed or took too long."""
    started, pays = time.perf_counter(), True
    with suppress(), spending() as spent:
        try:
            async with asyncio.timeout(deadline) as limit:
                # Do not bypass a subclass that overrides `measure`.
                if (
                    isinstance(evaluator, ClaimEvaluator)
                    and type(evaluator).measure is ClaimEvaluator.measure
                ):
                    check, pays = _check_of(evaluator, case, judge, checks)
                    # One metric's deadline must not cancel a check that another metric waits for.
                    found = await asyncio.shield(check)
                    found = found if pays else replace(found, usage=JudgeUsage())
                    result = evaluator.grade(found, judge)
                else:
                    result = await evaluator.measure(case, judge)
        except JudgeError as error:
            usage = spent.up_to(error) if pays else JudgeUsage()
            result = evaluator.failure_result(error, judge, usage=usage)
        except TimeoutError:
            failure = JudgeTimeoutError("the judge ran out of time")
            if limit.expired():
                failure = JudgeTimeoutError(f"no result within {deadline} s")
                if spent.permits is not None and spent.permits.is_held_up:
                    failure = RateLimitedError(f"the rate limit left no turn within {deadline} s")
            result = evaluator.failure_result(failure, judge, usage=spent.usage)
        except DatasetError as error:
            missing_reference = isinstance(error, MissingReferenceError)
            result = evaluator.result(
                judge,
                status=Status.NO_REFERENCE if missing_reference else Status.NO_CONTEXT,
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
            # A user's judge may raise anything. The message may quote the answer: only the type is
            # passed on, and the line that raised it is logged.
            error_type = type(error).__name__
            what = f"{evaluator.name}: the judge {identity_of(judge).name} raised"
            _LOG_ONCE.failure(what, error, in_application=True)
            raised = JudgeAPIError(f"{RAISED} {error_type}")
            failed = evaluator.failure_result(raised, judge, usage=spent.usage)
            result = failed.model_copy(update={"error_type": error_type})
    return result.model_copy(update={"duration": time.perf_counter() - started})


def _check_of(
    evaluator: ClaimEvaluator, case: RAGTestCase, judge: LLMJudge, checks: _Checks
) -> tuple[asyncio.Task[ClaimCheck], bool]:
    """Claim check of a metric, and whether the metric pays: the first one starts the check."""
    key = policy, strategy = evaluator.policy, evaluator.strategy
    if key in checks:
        return checks[key], False
    task = asyncio.create_task(check_claims(case, judge, policy=policy, strategy=strategy))
    # After a deadline nobody awaits the check, and asyncio would log its exception, including the
    # application's text.
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    checks[key] = task
    return task, True
