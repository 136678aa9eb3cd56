"""The claim check that faithfulness and hallucination share.

An answer is taken apart into claims and each claim is decided from the context. Three strategies
cost differently: `batched` two calls, `per_claim` one and one for each claim, `single_pass` one.
All end in the same `ClaimCheck`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.results import ClaimDetail, JudgeUsage, Status
from ragaliq.core.test_case import ChunkId, RAGTestCase
from ragaliq.errors import ConfigurationError, DatasetError, JudgeError
from ragaliq.evaluators.details import claim_details
from ragaliq.evaluators.reconcile import Decided
from ragaliq.evaluators.verification import Verifier
from ragaliq.evaluators.windows import split_text
from ragaliq.judges.base import BatchingJudge, ClaimVerdict, LLMJudge
from ragaliq.judges.refusals import is_refusal

__all__ = ["ClaimCheck", "Strategy", "check_claims"]

Strategy = Literal["batched", "per_claim", "single_pass"]


@dataclass(frozen=True, kw_only=True)
class ClaimCheck:
    """The claims of one answer with their verdicts.

    Attributes:
        status: `scored`, `partial`, or why there is nothing to score.
        claims: In the answer's order; a claim without a verdict stayed undecided.
        chunk_ids: The ids of the case's chunks, in rank order.
        usage: What the check cost.
        context_parts: In how many parts the context was judged, because it was too long for one.
    """

    status: Status
    claims: tuple[ClaimDetail, ...] = ()
    chunk_ids: tuple[ChunkId, ...] = ()
    usage: JudgeUsage = JudgeUsage()
    context_parts: int = 1

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
    asked = await _decide(case, judge, policy, strategy)
    if not asked.claims:
        return ClaimCheck(status=Status.NO_CLAIMS, usage=asked.decided.usage)
    is_complete = len(asked.decided.verdicts) == len(asked.claims)
    return ClaimCheck(
        status=Status.SCORED if is_complete else Status.PARTIAL,
        claims=claim_details(case, asked.claims, asked.decided, judge),
        chunk_ids=tuple(case.chunk_ids),
        usage=asked.decided.usage,
        context_parts=asked.context_parts,
    )


@dataclass(frozen=True, kw_only=True)
class _Asked:
    claims: list[str]
    decided: Decided
    context_parts: int = 1


async def _decide(
    case: RAGTestCase, judge: LLMJudge, policy: ScoringPolicy, strategy: Strategy | None
) -> _Asked:
    batching = judge if isinstance(judge, BatchingJudge) else None
    if strategy in ("batched", "single_pass") and batching is None:
        raise ConfigurationError(
            f"strategy {strategy!r} needs a BatchingJudge, and {type(judge).__name__} is none; "
            "use strategy='per_claim'"
        )
    without_context = not case.has_context and policy.empty_context == "not_enough_info"
    batched = batching is not None and strategy != "per_claim"
    verifier = Verifier(judge, case.context_texts, policy=policy, batched=batched)
    one_pass = strategy == "single_pass" and len(verifier.parts) == 1 and not without_context
    if one_pass and batching is not None:
        return await _single_pass(case, batching, verifier)

    claims, usage = await _extract(case, judge, batched=batched)
    if not claims:
        return _Asked(claims=[], decided=Decided(usage=usage))
    if without_context:
        decided = _nothing_to_check_against(claims)
    else:
        try:
            decided = await verifier.decide(claims)
        except JudgeError as error:
            # What the extraction cost is spent, whatever becomes of the verification.
            error.usage = usage if error.usage is None else usage + error.usage
            raise
    return _Asked(
        claims=claims,
        decided=Decided(usage=usage).and_then(decided),
        context_parts=len(verifier.parts),
    )


async def _extract(
    case: RAGTestCase, judge: LLMJudge, *, batched: bool
) -> tuple[list[str], JudgeUsage]:
    claims: list[str] = []
    usage = JudgeUsage()
    limit = judge.max_answer_chars
    for part in split_text(case.response, limit if isinstance(limit, int) else None):
        if batched and isinstance(judge, BatchingJudge):
            extracted = await judge.extract_statements(case.query, part)
        else:
            extracted = await judge.extract_claims(part)
        claims += [claim for claim in extracted.claims if claim.strip()]
        usage += extracted.spent()
    return claims, usage


def _nothing_to_check_against(claims: Sequence[str]) -> Decided:
    verdict = ClaimVerdict(
        verdict="NOT_ENOUGH_INFO", reason="There is no context.", decided_by="policy"
    )
    return Decided(verdicts=dict.fromkeys(range(len(claims)), verdict))


async def _single_pass(case: RAGTestCase, judge: BatchingJudge, verifier: Verifier) -> _Asked:
    graded = await judge.grade_statements(case.query, case.response, case.context_texts)
    claims = [statement.statement for statement in graded.statements]
    decided = Decided(verdicts=dict(enumerate(graded.statements)), usage=graded.spent())
    return _Asked(claims=claims, decided=await verifier.look_again(claims, decided))
