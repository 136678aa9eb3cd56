"""Have a judge decide labelled claims, as far as the money goes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable

from ragaliq.bench.judged import JudgedClaim
from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.results import JudgeUsage, Status
from ragaliq.core.spending import spending
from ragaliq.datasets.labelled_claims import LabelledClaim
from ragaliq.errors import (
    BudgetExceeded,
    ConfigurationError,
    JudgeError,
    JudgeRefusalError,
    JudgeTimeoutError,
)
from ragaliq.evaluators.claims import Verifier
from ragaliq.judges.base import ClaimVerdict, LLMJudge
from ragaliq.judges.calibration import raw_support

__all__ = ["judge_claims"]


async def judge_claims(
    claims: Iterable[LabelledClaim],
    judge: LLMJudge,
    *,
    concurrency: int = 8,
    deadline: float = 120.0,
    max_cost: float | None = None,
    already_spent: JudgeUsage | None = None,
) -> AsyncGenerator[JudgedClaim, None]:
    """Ask about the claims, one at a time, and yield each as soon as it is decided.

    A context that is too long for the judge is judged in parts, as in an evaluation. A failure is
    yielded as one, and is no verdict.

    Args:
        claims: Read as they are needed.
        judge: Who decides.
        concurrency: Claims asked about at the same time. A judge without a model computes: side by
            side its claims would only seem slower, so they go one after the other.
        deadline: Seconds a claim may take.
        max_cost: US dollars after which no further claim is begun.
        already_spent: Cost of the part that was done before.

    Raises:
        BudgetExceeded: `max_cost` is reached; what was yielded is paid for.
        ConfigurationError: There is a `max_cost`, and the judge's price is not known.
    """
    todo = iter(claims)
    spent = already_spent or JudgeUsage()
    at_once = concurrency if judge.model else 1
    running: set[asyncio.Task[JudgedClaim]] = set()
    try:
        while True:
            is_affordable = _is_affordable(spent, max_cost)
            while is_affordable and len(running) < at_once:
                claim = next(todo, None)
                if claim is None:
                    break
                running.add(asyncio.create_task(_judge(claim, judge, deadline)))
            if not running:
                break
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                spent += task.result().usage
                yield task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    if not _is_affordable(spent, max_cost) and next(todo, None) is not None:
        raise BudgetExceeded(
            f"${spent.cost_usd:.4f} is spent, of a limit of {max_cost:g}; run again with a higher "
            "one to go on where this stopped"
        )


def _is_affordable(spent: JudgeUsage, max_cost: float | None) -> bool:
    if max_cost is None:
        return True
    if spent.cost_usd is None:
        raise ConfigurationError(
            "the limit on the cost cannot be held: what this judge's model costs is not known"
        )
    return spent.cost_usd < max_cost


async def _judge(claim: LabelledClaim, judge: LLMJudge, deadline: float) -> JudgedClaim:
    began = time.perf_counter()
    verdict: ClaimVerdict | None = None
    failure: tuple[Status, str] | None = None
    with spending() as spent:
        try:
            async with asyncio.timeout(deadline):
                verdict = await _decide(claim, judge)
        except JudgeError as error:
            failure = _status_of(error), type(error).__name__
        except TimeoutError:
            failure = Status.JUDGE_TIMEOUT, "TimeoutError"
    return JudgedClaim(
        id=claim.id,
        group=claim.group,
        cluster=claim.cluster.hex(),
        is_supported=claim.is_supported,
        label=claim.verdict,
        verdict=verdict.verdict if verdict else None,
        support=raw_support(verdict) if verdict else None,
        failure=failure[0].value if failure else None,
        error_type=failure[1] if failure else None,
        seconds=time.perf_counter() - began,
        usage=spent.usage,
    )


async def _decide(claim: LabelledClaim, judge: LLMJudge) -> ClaimVerdict:
    # One claim a call and no second look: what is measured is the judge, as its calibration is
    # applied, and not what an evaluator makes of a quote that cannot be found.
    verifier = Verifier(judge, claim.context, policy=ScoringPolicy.RAGALIQ, batched=False)
    return (await verifier.decide([claim.claim])).verdicts[0]


def _status_of(error: JudgeError) -> Status:
    if isinstance(error, JudgeRefusalError):
        return Status.JUDGE_REFUSED
    return Status.JUDGE_TIMEOUT if isinstance(error, JudgeTimeoutError) else Status.JUDGE_ERROR
