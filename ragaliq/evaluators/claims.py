"""The claim check that faithfulness and hallucination share.

An answer is taken apart into claims and each claim is decided from the context. Three strategies
cost differently: `batched` two calls, `per_claim` one and one for each claim, `single_pass` one.
All end in the same `ClaimCheck`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ragaliq.core.concurrency import run_all
from ragaliq.core.evaluator import judge_name
from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.results import ClaimDetail, JudgeUsage, Status
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import ConfigurationError, DatasetError, JudgeResponseError
from ragaliq.evaluators.alignment import CLAIM_CUTOFF, locate, locate_evidence
from ragaliq.evaluators.reconcile import Decided, decide_missing
from ragaliq.judges.base import BatchingJudge, ClaimVerdict, LLMJudge
from ragaliq.judges.refusals import is_refusal

__all__ = ["ClaimCheck", "Strategy", "check_claims"]

Strategy = Literal["batched", "per_claim", "single_pass"]

_CONCURRENT_CLAIMS = 8
"""Claims of one answer that are asked about at the same time with `per_claim`."""


@dataclass(frozen=True, kw_only=True)
class ClaimCheck:
    """The claims of one answer with their verdicts.

    Attributes:
        status: `scored`, `partial`, or why there is nothing to score.
        claims: In the answer's order; a claim without a verdict stayed undecided.
        usage: What the check cost.
    """

    status: Status
    claims: tuple[ClaimDetail, ...] = ()
    usage: JudgeUsage = JudgeUsage()

    @property
    def decided(self) -> tuple[ClaimDetail, ...]:
        """The claims that have a verdict; the denominator of every claim-based score."""
        return tuple(claim for claim in self.claims if claim.verdict is not None)


async def check_claims(
    case: RAGTestCase,
    judge: LLMJudge,
    *,
    policy: ScoringPolicy,
    strategy: Strategy | None = None,
) -> ClaimCheck:
    """Extract and decide the claims of a case's answer.

    Args:
        case: Question, context and answer.
        judge: Who decides.
        policy: What to do without context and with missing verdicts.
        strategy: How to ask; by default `batched` where the judge can, else `per_claim`.

    Raises:
        JudgeError: The judge failed.
        DatasetError: The case has no context and the policy calls that an error.
        ConfigurationError: The strategy needs a `BatchingJudge`.
    """
    if not case.has_context and policy.empty_context == "error":
        raise DatasetError(
            f"case {case.id!r} has no context, which policy {policy.name!r} does not allow; "
            "give it context or choose another policy"
        )
    if not case.has_context and policy.empty_context == "skip":
        return ClaimCheck(status=Status.NO_CONTEXT)
    if policy.answer_refusal and is_refusal(case.response):
        return ClaimCheck(status=Status.ANSWER_REFUSED)
    if not case.response.strip():
        return ClaimCheck(status=Status.NO_CLAIMS)
    claims, decided = await _decide(case, judge, policy, strategy)
    if not claims:
        return ClaimCheck(status=Status.NO_CLAIMS, usage=decided.usage)
    return ClaimCheck(
        status=Status.SCORED if len(decided.verdicts) == len(claims) else Status.PARTIAL,
        claims=_details(case, claims, decided, judge),
        usage=decided.usage,
    )


async def _decide(
    case: RAGTestCase, judge: LLMJudge, policy: ScoringPolicy, strategy: Strategy | None
) -> tuple[list[str], Decided]:
    batching = judge if isinstance(judge, BatchingJudge) else None
    if strategy in ("batched", "single_pass") and batching is None:
        raise ConfigurationError(
            f"strategy {strategy!r} needs a BatchingJudge, and {type(judge).__name__} is none; "
            "use strategy='per_claim'"
        )
    without_context = not case.has_context and policy.empty_context == "not_enough_info"
    if strategy == "single_pass" and batching is not None and not without_context:
        return await _single_pass(case, batching)

    asks_batched = batching is not None and strategy != "per_claim"
    if asks_batched and batching is not None:
        extracted = await batching.extract_statements(case.query, case.response)
    else:
        extracted = await judge.extract_claims(case.response)
    claims = [claim for claim in extracted.claims if claim.strip()]
    usage = extracted.spent()
    if not claims:
        return [], Decided(usage=usage)
    if without_context:
        return claims, _nothing_to_check_against(claims, usage)
    try:
        if asks_batched and batching is not None:
            return claims, await _batched(claims, case.context_texts, batching, policy, usage)
        return claims, await _per_claim(claims, case.context_texts, judge, policy, usage)
    except JudgeResponseError as error:
        error.usage = usage if error.usage is None else usage + error.usage
        raise


def _nothing_to_check_against(claims: Sequence[str], usage: JudgeUsage) -> Decided:
    verdict = ClaimVerdict(
        verdict="NOT_ENOUGH_INFO", reason="There is no context.", decided_by="policy"
    )
    return Decided(verdicts=dict.fromkeys(range(len(claims)), verdict), usage=usage)


async def _single_pass(case: RAGTestCase, judge: BatchingJudge) -> tuple[list[str], Decided]:
    graded = await judge.grade_statements(case.query, case.response, case.context_texts)
    verdicts: dict[int, ClaimVerdict] = dict(enumerate(graded.statements))
    claims = [statement.statement for statement in graded.statements]
    return claims, Decided(verdicts=verdicts, usage=graded.spent())


async def _batched(
    claims: list[str],
    context: list[str],
    judge: BatchingJudge,
    policy: ScoringPolicy,
    usage: JudgeUsage,
) -> Decided:
    async def ask(positions: Sequence[int]) -> Decided:
        reply = await judge.verify_claims([claims[i] for i in positions], context)
        return Decided.from_reply(reply, positions)

    return await decide_missing(ask, len(claims), policy, usage)


async def _per_claim(
    claims: list[str],
    context: list[str],
    judge: LLMJudge,
    policy: ScoringPolicy,
    usage: JudgeUsage,
) -> Decided:
    slots = asyncio.Semaphore(_CONCURRENT_CLAIMS)

    async def verify(position: int) -> ClaimVerdict | JudgeResponseError:
        async with slots:
            try:
                return await judge.verify_claim(claims[position], context)
            except JudgeResponseError as error:
                # One malformed reply is one missing verdict where the policy asks again.
                if policy.still_missing == "partial":
                    return error
                raise

    async def ask(positions: Sequence[int]) -> Decided:
        replies = await run_all(verify(i) for i in positions)
        return Decided.from_each(zip(positions, replies, strict=True))

    return await decide_missing(ask, len(claims), policy, usage)


def _details(
    case: RAGTestCase, claims: Sequence[str], decided: Decided, judge: LLMJudge
) -> tuple[ClaimDetail, ...]:
    name = judge_name(judge)
    details, cursor = [], 0
    for position, claim in enumerate(claims):
        span = locate(claim, case.response, cutoff=CLAIM_CUTOFF, start=cursor)
        cursor = span[1] if span else cursor
        verdict = decided.verdicts.get(position)
        details.append(_detail(case, claim, verdict, span, name))
    return tuple(details)


def _detail(
    case: RAGTestCase,
    claim: str,
    verdict: ClaimVerdict | None,
    span: tuple[int, int] | None,
    judge_name: str,
) -> ClaimDetail:
    if verdict is None:
        return ClaimDetail(claim=claim, verdict=None, confidence=0.0, answer_span=span)
    positions = [i for i in verdict.supporting_chunk_ids if 0 <= i < len(case.chunk_ids)]
    evidence_spans = locate_evidence(
        verdict.evidence, case.context_texts, case.chunk_ids, positions
    )
    return ClaimDetail(
        claim=claim,
        verdict=verdict.verdict,
        evidence=verdict.evidence,
        confidence=verdict.confidence,
        reason=verdict.reason,
        supporting_chunk_ids=tuple(case.chunk_ids[i] for i in positions),
        answer_span=span,
        evidence_spans=evidence_spans,
        evidence_verified=bool(evidence_spans),
        decided_by=verdict.decided_by or judge_name,
    )
