"""The metrics: those made from a claim check, those of the retrieved context, and relevance."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from ragaliq.core.concurrency import run_all
from ragaliq.core.evaluator import Evaluator, judge_calibration
from ragaliq.core.policy import UNSCORED, Fallback, ScoringPolicy
from ragaliq.core.results import ClaimDetail, EvaluationResult, JudgeUsage, Status
from ragaliq.core.spending import paid, spending
from ragaliq.core.test_case import ChunkId, RAGTestCase
from ragaliq.errors import ConfigurationError, DatasetError, MissingReferenceError
from ragaliq.evaluators.claims import (
    ClaimCheck,
    Strategy,
    Verifier,
    check_claims,
    claim_details,
    require_strategy,
)
from ragaliq.evaluators.registry import register_evaluator
from ragaliq.judges.base import BatchingJudge, JudgeResult, LLMJudge

__all__ = [
    "ChunkUtilityEvaluator",
    "ClaimEvaluator",
    "ContextPrecisionEvaluator",
    "ContextRecallEvaluator",
    "FaithfulnessEvaluator",
    "HallucinationEvaluator",
    "RelevanceEvaluator",
]


_LEAST_COVERAGE = 2 / 3
"""Share of an answer that its claims cover, below which the result says so."""

_STRATEGIES = ("batched", "per_claim", "single_pass")


class ClaimEvaluator(Evaluator):
    """A metric made from the verdicts on an answer's claims.

    Args:
        threshold: Score from which on a case passes, 0 to 1.
        policy: See `Evaluator`.
        strategy: How the judge is asked: `batched` (two calls), `per_claim` (one and one for
            each claim) or `single_pass` (one). By default `batched` where the judge can.
    """

    def __init__(
        self,
        threshold: float | None = None,
        *,
        policy: ScoringPolicy | None = None,
        strategy: Strategy | None = None,
    ) -> None:
        super().__init__(threshold, policy=policy)
        if strategy is not None and strategy not in _STRATEGIES:
            raise ConfigurationError(
                f"unknown strategy {strategy!r}; choose one of {', '.join(_STRATEGIES)}"
            )
        self.strategy = strategy

    def require(self, judge: LLMJudge) -> None:
        """Refuse a judge that cannot follow the strategy."""
        require_strategy(self.strategy, judge)

    def result(self, judge: LLMJudge, **fields: Any) -> EvaluationResult:
        """As `Evaluator.result`, with the calibration behind the claims' confidence."""
        return super().result(judge, calibration=judge_calibration(judge), **fields)

    async def measure(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Check the claims and grade them."""
        return self.grade(await self.check(test_case, judge), judge)

    async def check(self, test_case: RAGTestCase, judge: LLMJudge) -> ClaimCheck:
        """The claim check this metric is made from; equal `check_key`s may share one."""
        return await check_claims(test_case, judge, policy=self.policy, strategy=self.strategy)

    @property
    def check_key(self) -> tuple[ScoringPolicy, Strategy | None]:
        """Evaluators with the same key get the same check for a case."""
        return self.policy, self.strategy

    def grade(self, check: ClaimCheck, judge: LLMJudge) -> EvaluationResult:
        """Turn a claim check into this metric's result."""
        if check.status.is_measured:
            return self.score_claims(check, judge)
        wording = self.policy.wording
        without_claims = wording.no_claims if wording else self.without_claims
        fallback = self.score_without_claims()
        reasons = {
            Status.NO_CLAIMS: without_claims,
            # Where a policy gives it a score, the reason is the one its documents give.
            Status.EMPTY_ANSWER: without_claims
            if fallback.score is not None
            else "The answer is empty.",
            Status.ANSWER_REFUSED: "The answer declines to answer; there is nothing to check.",
            Status.NO_CONTEXT: "There is no context to check the answer against.",
        }
        return self.result(
            judge,
            status=check.status,
            fallback=UNSCORED if check.status is Status.NO_CONTEXT else fallback,
            reasoning=reasons[check.status],
            usage=check.usage,
            raw_response=self.raw_response(check),
        )

    without_claims: str = "No claims to verify."

    def score_without_claims(self) -> Fallback:
        """What an answer without claims scores: what the policy says."""
        return self.policy.no_claims

    @abstractmethod
    def score_claims(self, check: ClaimCheck, judge: LLMJudge) -> EvaluationResult:
        """Score a check that decided at least one claim."""

    @abstractmethod
    def raw_response(self, check: ClaimCheck) -> dict[str, Any]:
        """The metric's documented details."""

    def _scored(
        self, check: ClaimCheck, judge: LLMJudge, *, score: float, reasoning: str
    ) -> EvaluationResult:
        undecided = len(check.claims) - len(check.decided)
        if undecided:
            reasoning += f" {undecided} could not be decided and are left out."
        if check.coverage < _LEAST_COVERAGE:
            reasoning += f" The claims cover {check.coverage:.0%} of the answer."
        if self.policy.wording is not None:
            reasoning = self.policy.wording.scored(
                self.name, score, self.threshold, passed=self.is_passing(score)
            )
        return self.result(
            judge,
            status=check.status,
            score=score,
            reasoning=reasoning,
            usage=check.usage,
            claims=check.claims,
            raw_response=self.raw_response(check) | _how_it_was_asked(check),
        )


def _how_it_was_asked(check: ClaimCheck) -> dict[str, Any]:
    asked: dict[str, Any] = {}
    if check.context_parts > 1:
        asked["context_parts"] = check.context_parts
    if check.coverage < _LEAST_COVERAGE:
        asked["coverage"] = round(check.coverage, 2)
    return asked


def claim_rows(claims: tuple[ClaimDetail, ...]) -> list[dict[str, Any]]:
    """Claims as plain dictionaries, for `raw_response`."""
    return [claim.model_dump(mode="json") for claim in claims]


@register_evaluator("faithfulness")
class FaithfulnessEvaluator(ClaimEvaluator):
    """Whether the answer says only what the context supports.

    `score = supported claims / decided claims`, as in RAGAS (Es et al. 2023, "RAGAS: Automated
    Evaluation of Retrieval Augmented Generation"). An answer without claims is scored by the
    policy: 1.0 offline, no score in live monitoring.

    `raw_response`: `claims` (a list of `{claim, verdict, evidence, ...}`), `total_claims`,
    `supported_claims`.
    """

    description = "Measures whether every claim of the answer is supported by the context"
    threshold = 0.7
    without_claims = "No claims to verify; the answer is vacuously faithful."

    def score_claims(self, check: ClaimCheck, judge: LLMJudge) -> EvaluationResult:
        """Supported over decided claims."""
        supported, total = _supported(check.decided), len(check.decided)
        return self._scored(
            check,
            judge,
            score=supported / total,
            reasoning=f"{supported} of {total} claims supported by the context.",
        )

    def raw_response(self, check: ClaimCheck) -> dict[str, Any]:
        """`claims`, `total_claims`, `supported_claims`."""
        return {
            "claims": claim_rows(check.decided),
            "total_claims": len(check.decided),
            "supported_claims": _supported(check.decided),
        }


def _supported(claims: tuple[ClaimDetail, ...]) -> int:
    return sum(claim.verdict == "SUPPORTED" for claim in claims)


@register_evaluator("hallucination")
class HallucinationEvaluator(ClaimEvaluator):
    """Whether the answer is free of claims the context does not support.

    `score = 1 - hallucinated claims / decided claims`. A claim is hallucinated when its verdict is
    CONTRADICTED or NOT_ENOUGH_INFO, or SUPPORTED with less confidence than `min_confidence`. Next
    to faithfulness it is stricter by default and lists the offending claims.

    `raw_response`: `claims`, `total_claims`, `hallucinated_claims` (a list of claims),
    `hallucination_count`.

    Args:
        threshold: Score from which on a case passes, 0 to 1.
        min_confidence: SUPPORTED claims below this confidence, 0 to 1, count as hallucinated; by
            default confidence is not looked at.
        policy: See `Evaluator`.
        strategy: See `ClaimEvaluator`.
    """

    description = "Detects claims of the answer that are not grounded in the context"
    threshold = 0.8
    without_claims = "No claims to verify; no hallucinations detected."

    def __init__(
        self,
        threshold: float | None = None,
        *,
        min_confidence: float | None = None,
        policy: ScoringPolicy | None = None,
        strategy: Strategy | None = None,
    ) -> None:
        super().__init__(threshold, policy=policy, strategy=strategy)
        if min_confidence is not None and not 0.0 <= min_confidence <= 1.0:
            raise ConfigurationError(
                f"HallucinationEvaluator: min_confidence must be within [0, 1], "
                f"got {min_confidence}"
            )
        self.min_confidence = min_confidence

    def score_claims(self, check: ClaimCheck, judge: LLMJudge) -> EvaluationResult:
        """One minus the share of hallucinated claims."""
        count, total = len(self._hallucinated(check.decided)), len(check.decided)
        if count:
            reasoning = f"Found {count} hallucinated claims out of {total}."
        else:
            reasoning = f"All {total} claims are grounded; no hallucinations detected."
        return self._scored(check, judge, score=1.0 - count / total, reasoning=reasoning)

    def raw_response(self, check: ClaimCheck) -> dict[str, Any]:
        """`claims`, `total_claims`, `hallucinated_claims`, `hallucination_count`."""
        hallucinated = self._hallucinated(check.decided)
        return {
            "claims": claim_rows(check.decided),
            "total_claims": len(check.decided),
            "hallucinated_claims": claim_rows(hallucinated),
            "hallucination_count": len(hallucinated),
        }

    def _hallucinated(self, claims: tuple[ClaimDetail, ...]) -> tuple[ClaimDetail, ...]:
        return tuple(claim for claim in claims if self._is_hallucinated(claim))

    def _is_hallucinated(self, claim: ClaimDetail) -> bool:
        if claim.verdict != "SUPPORTED":
            return True
        return self.min_confidence is not None and claim.confidence < self.min_confidence


@register_evaluator("chunk_utility")
class ChunkUtilityEvaluator(ClaimEvaluator):
    """How much of what was retrieved the answer used.

    `score = used chunks / retrieved chunks`, the precision of rag_evals (graded chunks over all
    chunks). A chunk is used when a supported claim rests on it. The claim check is shared with
    faithfulness, so the metric costs nothing beside it. Low scores mean that too much, or the
    wrong thing, is retrieved.

    `raw_response`: `chunks` (a list of `{id, used, claims}`, where `claims` are positions of the
    claims that rest on the chunk), `used_chunks`, `total_chunks`.
    """

    description = "Measures the share of retrieved chunks that the answer used"
    threshold = 0.5
    without_claims = "The answer makes no claims, so it is not known which chunks it used."

    def score_without_claims(self) -> Fallback:
        """No score: an answer that says nothing is neither a good nor a bad use of its chunks."""
        return UNSCORED

    def score_claims(self, check: ClaimCheck, judge: LLMJudge) -> EvaluationResult:
        """Used over retrieved chunks."""
        raw = self.raw_response(check)
        used, total = raw["used_chunks"], raw["total_chunks"]
        return self._scored(
            check,
            judge,
            score=used / total if total else 0.0,
            reasoning=f"The answer used {used} of {total} retrieved chunks.",
        )

    def raw_response(self, check: ClaimCheck) -> dict[str, Any]:
        """`chunks`, `used_chunks`, `total_chunks`."""
        rows = [_row(chunk_id, check.claims) for chunk_id in check.chunk_ids]
        return {
            "chunks": rows,
            "used_chunks": sum(row["used"] for row in rows),
            "total_chunks": len(rows),
        }


def _row(chunk_id: ChunkId, claims: tuple[ClaimDetail, ...]) -> dict[str, Any]:
    resting = [
        position
        for position, claim in enumerate(claims)
        if claim.verdict == "SUPPORTED" and chunk_id in _chunks(claim)
    ]
    return {"id": chunk_id, "used": bool(resting), "claims": resting}


def _chunks(claim: ClaimDetail) -> set[ChunkId]:
    return {*claim.supporting_chunk_ids, *(span.chunk_id for span in claim.evidence_spans)}


class ContextEvaluator(Evaluator):
    """A metric of the retrieved context.

    Where nothing was retrieved the score is 0.0 without a call, unless the policy says that a case
    without context is an error or is not scored.
    """

    async def measure(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Measure the context, if there is any."""
        if test_case.has_context:
            return await self.measure_context(test_case, judge)
        if self.policy.empty_context == "error":
            raise DatasetError(
                f"case {test_case.id!r} has no context, which policy {self.policy.name!r} does "
                "not allow; give it context or choose another policy"
            )
        skip = self.policy.empty_context == "skip"
        return self.result(
            judge,
            status=Status.NO_CONTEXT if skip else Status.SCORED,
            score=0.0,
            fallback=UNSCORED if skip else None,
            reasoning="Nothing was retrieved.",
            usage=JudgeUsage(),
            raw_response=self.raw_response(()),
        )

    @abstractmethod
    async def measure_context(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Measure a context that is not empty."""

    @abstractmethod
    def raw_response(self, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The metric's documented details."""


_CONCURRENT_CHUNKS = 8
_HELPFUL_FROM = 0.5


@register_evaluator("context_precision")
class ContextPrecisionEvaluator(ContextEvaluator):
    """Rank-aware share of retrieved chunks that help to answer the question.

    Average precision over the ranking (as RAGAS's context precision, and Manning et al. 2008,
    "Introduction to Information Retrieval", section 8.4): the mean, over the ranks k that hold a
    helpful chunk, of the share of helpful chunks among the first k. A chunk is helpful when the
    judge finds it at least 0.5 relevant to the question; that takes one call for each chunk. 0.0
    when no chunk helps.

    `raw_response`: `chunks` (a list of `{id, relevance, helpful, reasoning}` in rank order),
    `helpful_chunks`, `total_chunks`.
    """

    description = "Measures whether the retrieved chunks that help come first"
    threshold = 0.7

    async def measure_context(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Ask about each chunk and grade the ranking."""
        slots = asyncio.Semaphore(_CONCURRENT_CHUNKS)

        async def relevance(chunk: str) -> JudgeResult:
            async with slots:
                return await paid(judge.evaluate_context_relevance(test_case.query, chunk))

        replies = await run_all(relevance(text) for text in test_case.context_texts)
        helpful = [reply.score >= _HELPFUL_FROM for reply in replies]
        rows = [
            {
                "id": chunk_id,
                "relevance": reply.score,
                "helpful": helps,
                "reasoning": reply.reasoning,
            }
            for chunk_id, reply, helps in zip(test_case.chunk_ids, replies, helpful, strict=True)
        ]
        return self.result(
            judge,
            score=_average_precision(helpful),
            reasoning=f"{sum(helpful)} of {len(helpful)} retrieved chunks help to answer.",
            usage=sum((reply.spent() for reply in replies), JudgeUsage()),
            raw_response=self.raw_response(rows),
        )

    def raw_response(self, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """`chunks`, `helpful_chunks`, `total_chunks`."""
        return {
            "chunks": list(rows),
            "helpful_chunks": sum(row["helpful"] for row in rows),
            "total_chunks": len(rows),
        }


def _average_precision(helpful: Sequence[bool]) -> float:
    found, total = 0, 0.0
    for rank, helps in enumerate(helpful, start=1):
        if helps:
            found += 1
            total += found / rank
    return total / found if found else 0.0


@register_evaluator("context_recall")
class ContextRecallEvaluator(ContextEvaluator):
    """The share of expected facts that the retrieved context covers.

    `score = covered facts / decided facts`, as RAGAS's context recall. The facts are the case's
    `expected_facts`, else the claims of its `expected_answer`.

    `raw_response`: `facts` (a list of `{claim, verdict, evidence, ...}`), `covered_facts`,
    `total_facts`.
    """

    description = "Measures whether the retrieved context covers the expected facts"
    threshold = 0.7

    async def measure(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Measure the context of a case that says what to expect of it.

        Raises:
            MissingReferenceError: The case says nothing of what is expected.
        """
        expected = [*test_case.expected_facts, test_case.expected_answer or ""]
        if not any(text.strip() for text in expected):
            raise _nothing_expected(test_case)
        return await super().measure(test_case, judge)

    async def measure_context(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Decide each expected fact from the context.

        Raises:
            MissingReferenceError: The expected answer makes no claims.
        """
        batched = isinstance(judge, BatchingJudge)
        verifier = Verifier(judge, test_case.context_texts, policy=self.policy, batched=batched)
        with spending() as spent:
            facts = await self._facts(test_case, judge)
            decided = await verifier.decide(facts)
        details = await claim_details(test_case, facts, decided, judge, evidence=verifier.evidence)
        raw = self.raw_response(claim_rows(tuple(d for d in details if d.verdict is not None)))
        covered, total = raw["covered_facts"], raw["total_facts"]
        return self.result(
            judge,
            status=Status.SCORED if total == len(facts) else Status.PARTIAL,
            score=covered / total,
            reasoning=f"The context covers {covered} of {total} expected facts.",
            usage=spent.usage,
            raw_response=raw,
        )

    def raw_response(self, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """`facts`, `covered_facts`, `total_facts`."""
        return {
            "facts": list(rows),
            "covered_facts": sum(row["verdict"] == "SUPPORTED" for row in rows),
            "total_facts": len(rows),
        }

    async def _facts(self, test_case: RAGTestCase, judge: LLMJudge) -> list[str]:
        if facts := [fact for fact in test_case.expected_facts if fact.strip()]:
            return facts
        extracted = await paid(judge.extract_claims(test_case.expected_answer or ""))
        if facts := [claim for claim in extracted.claims if claim.strip()]:
            return facts
        raise _nothing_expected(test_case)


def _nothing_expected(case: RAGTestCase) -> MissingReferenceError:
    return MissingReferenceError(
        f"case {case.id!r} says nothing of what to expect; context_recall needs expected_facts, "
        "or an expected_answer that makes claims"
    )


@register_evaluator("relevance")
class RelevanceEvaluator(Evaluator):
    """The judge's own relevance score, passed through with its reasoning.

    `raw_response`: `score`, `reasoning`, `tokens_used`.
    """

    description = "Measures how well the answer addresses the question"
    threshold = 0.7

    async def measure(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Ask the judge and pass on what it says."""
        reply = await paid(judge.evaluate_relevance(test_case.query, test_case.response))
        return self.result(
            judge,
            score=reply.score,
            reasoning=reply.reasoning,
            usage=reply.spent(),
            raw_response={
                "score": reply.score,
                "reasoning": reply.reasoning,
                "tokens_used": reply.tokens_used,
            },
        )
