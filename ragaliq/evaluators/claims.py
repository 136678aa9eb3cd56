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
from ragaliq.core.spending import paid, spending
from ragaliq.core.test_case import ChunkId, RAGTestCase
from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.evaluators.alignment import EvidenceFinder
from ragaliq.evaluators.details import claim_details
from ragaliq.evaluators.reconcile import Decided
from ragaliq.evaluators.verification import Verifier, positive_limit
from ragaliq.evaluators.windows import split_text
from ragaliq.judges.base import BatchingJudge, ClaimVerdict, LLMJudge
from ragaliq.judges.language.refusals import is_refusal

__all__ = ["ClaimCheck", "Strategy", "check_claims", "require_strategy"]

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
    ids = tuple(case.chunk_ids)
    if not case.has_context and policy.empty_context == "skip":
        return ClaimCheck(status=Status.NO_CONTEXT, chunk_ids=ids)
    if policy.answer_refusal and is_refusal(case.response):
        return ClaimCheck(status=Status.ANSWER_REFUSED, chunk_ids=ids)
    if not case.response.strip():
        return ClaimCheck(status=Status.NO_CLAIMS, chunk_ids=ids)
    with spending() as spent:
        asked = await _decide(case, judge, policy, strategy)
    if not asked.claims:
        return ClaimCheck(status=Status.NO_CLAIMS, chunk_ids=ids, usage=spent.usage)
    is_complete = len(asked.decided.verdicts) == len(asked.claims)
    return ClaimCheck(
        status=Status.SCORED if is_complete else Status.PARTIAL,
        claims=await claim_details(
            case, asked.claims, asked.decided, judge, evidence=asked.evidence
        ),
        chunk_ids=ids,
        usage=spent.usage,
        context_parts=asked.context_parts,
    )


def require_strategy(strategy: Strategy | None, judge: LLMJudge) -> None:
    """Refuse a strategy the judge cannot follow.

    Raises:
        ConfigurationError: The strategy needs a `BatchingJudge`.
    """
    if strategy in ("batched", "single_pass") and not isinstance(judge, BatchingJudge):
        raise ConfigurationError(
            f"strategy {strategy!r} needs a BatchingJudge, and {type(judge).__name__} is none; "
            "use strategy='per_claim'"
        )


@dataclass(frozen=True, kw_only=True)
class _Asked:
    claims: list[str]
    decided: Decided
    evidence: EvidenceFinder
    context_parts: int = 1


async def _decide(
    case: RAGTestCase, judge: LLMJudge, policy: ScoringPolicy, strategy: Strategy | None
) -> _Asked:
    require_strategy(strategy, judge)
    batching = judge if isinstance(judge, BatchingJudge) else None
    without_context = not case.has_context and policy.empty_context == "not_enough_info"
    batched = batching is not None and strategy != "per_claim"
    verifier = Verifier(judge, case.context_texts, policy=policy, batched=batched)
    answer = split_text(case.response, positive_limit(judge.max_answer_chars))
    at_once = len(verifier.parts) == len(answer) == 1
    if strategy == "single_pass" and batching is not None and at_once and not without_context:
        return await _single_pass(case, batching, verifier)

    claims: list[str] = []
    for part in answer:
        claims += await _extract(case.query, part, judge, batched=batched)
    if not claims:
        decided = Decided()
    elif without_context:
        decided = _nothing_to_check_against(claims)
    else:
        decided = await verifier.decide(claims)
    return _Asked(
        claims=claims,
        decided=decided,
        evidence=verifier.evidence,
        context_parts=len(verifier.parts),
    )


async def _extract(query: str, answer: str, judge: LLMJudge, *, batched: bool) -> list[str]:
    if batched and isinstance(judge, BatchingJudge):
        extracted = await paid(judge.extract_statements(query, answer))
    else:
        extracted = await paid(judge.extract_claims(answer))
    return [claim for claim in extracted.claims if claim.strip()]


def _nothing_to_check_against(claims: Sequence[str]) -> Decided:
    verdict = ClaimVerdict(
        verdict="NOT_ENOUGH_INFO", reason="There is no context.", decided_by="policy"
    )
    return Decided(verdicts=dict.fromkeys(range(len(claims)), verdict))


async def _single_pass(case: RAGTestCase, judge: BatchingJudge, verifier: Verifier) -> _Asked:
    graded = await paid(judge.grade_statements(case.query, case.response, case.context_texts))
    claims = [statement.statement for statement in graded.statements]
    decided = Decided(verdicts=dict(enumerate(graded.statements)))
    decided = decided.with_chunks(range(len(case.context_texts)))
    decided = await verifier.look_again(claims, decided)
    return _Asked(claims=claims, decided=decided, evidence=verifier.evidence)
