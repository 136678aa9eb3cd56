"""Metrics from a claim check, metrics of the retrieved context, and relevance."""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ragaliq.core.concurrency import off_loop_if_long, run_all
from ragaliq.core.log_once import LogOnce
from ragaliq.core.policy import UNSCORED, ScoringPolicy
from ragaliq.core.results import ClaimDetail, EvaluationResult, JudgeUsage, Status
from ragaliq.core.spending import paid, spending
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import ConfigurationError, MissingReferenceError
from ragaliq.evaluators.alignment import EvidenceSource
from ragaliq.evaluators.claims import (
    ClaimCheck,
    Strategy,
    Verifier,
    check_claims,
    claim_details,
)
from ragaliq.evaluators.evaluator import Evaluator
from ragaliq.evaluators.history import known_context, question_of
from ragaliq.evaluators.registry import register_evaluator
from ragaliq.judges.base import BatchingJudge, JudgeResult, LLMJudge, identity_of
from ragaliq.judges.language.refusals import is_own_decline

_NO_QUESTION = "Not scored: the question is blank."
_EMPTY_ANSWER = "The answer is empty."
_STRATEGIES = ("batched", "per_claim", "single_pass")

_LOG_ONCE = LogOnce(logging.getLogger(__name__))


class Measured(NamedTuple):
    """Score of a claim check or a context, with its reason and details.

    Attributes:
        score: 0 to 1; meaningless if the answer has no claims.
        reasoning: One sentence for people.
        raw_response: The metric's documented details.
    """

    score: float
    reasoning: str
    raw_response: dict[str, Any]


class ClaimEvaluator(Evaluator):
    """Metric computed from the verdicts on an answer's claims. Subclasses implement `score`.

    Args:
        threshold: Score that a case must reach to pass, 0 to 1.
        policy: See `Evaluator`.
        strategy: Calls of the judge: `batched` (two), `per_claim` (one and one for each claim) or
            `single_pass` (one). By default `batched` if the judge supports it.
    """

    checks_claims = True
    without_claims: str = "No claims to verify."
    scores_answers_without_claims = True

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
        if self.strategy in ("batched", "single_pass") and not isinstance(judge, BatchingJudge):
            raise ConfigurationError(
                f"strategy {self.strategy!r} needs a BatchingJudge, and {type(judge).__name__} is "
                "not one; use strategy='per_claim'"
            )

    async def measure(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Check the claims and grade them."""
        self.require(judge)
        check = await check_claims(test_case, judge, policy=self.policy, strategy=self.strategy)
        return await off_loop_if_long(len(test_case.response), self.grade, check, judge)

    @abstractmethod
    def score(self, check: ClaimCheck) -> Measured:
        """Score of a check; for an answer without claims only its details count."""

    def grade(self, check: ClaimCheck, judge: LLMJudge) -> EvaluationResult:
        """Turn a claim check into this metric's result."""
        score, reasoning, details = self.score(check)
        if check.skipped:
            answer = check.case.response
            details["skipped"] = [
                {"text": answer[part.start : part.end], "kind": part.kind} for part in check.skipped
            ]
        wording = self.policy.wording
        if not check.status.is_measured:
            is_scored = self.scores_answers_without_claims and check.status != Status.NO_CONTEXT
            fallback = self.policy.no_claims if is_scored else UNSCORED
            reasoning = wording.no_claims if wording else self.without_claims
            if check.status is Status.NO_CONTEXT:
                reasoning = "There is no context to check the answer against."
            elif check.status.is_decline:
                reasoning = "The answer declines to answer; there is nothing to check."
                if check.status is Status.ANSWER_WITHHELD:
                    reasoning = "The answer declines to answer, though the context holds one."
            # Where a policy gives it a score, the reason is the one its documents give.
            elif check.status is Status.EMPTY_ANSWER and fallback.score is None:
                reasoning = _EMPTY_ANSWER
            return self.result(
                judge,
                status=check.status,
                fallback=fallback,
                reasoning=reasoning,
                usage=check.usage,
                raw_response=details,
            )
        if undecided := len(check.claims) - len(check.decided):
            reasoning += f" {undecided} could not be decided and are not counted."
        if check.context_parts > 1:
            details["context_parts"] = check.context_parts
        status = check.status
        if check.coverage < self.policy.least_coverage:
            status = Status.PARTIAL
            reasoning += f" The claims cover {check.coverage:.0%} of the answer."
            details["coverage"] = round(check.coverage, 2)
        if wording is not None:
            reasoning = wording.scored(
                self.name,
                score,
                self.threshold,
                passed=self.is_passing(score),
                higher_is_better=self.higher_is_better,
            )
        return self.result(
            judge,
            status=status,
            score=score,
            reasoning=reasoning,
            usage=check.usage,
            claims=check.claims,
            raw_response=details,
        )


def _rows(claims: Iterable[ClaimDetail]) -> list[dict[str, Any]]:
    """Claims as plain dictionaries, for `raw_response`."""
    return [claim.model_dump(mode="json") for claim in claims]


@register_evaluator("faithfulness")
class FaithfulnessEvaluator(ClaimEvaluator):
    """Share of the answer's claims that the context supports.

    `score = supported claims / decided claims`, as in RAGAS (Es et al. 2023, "RAGAS: Automated
    Evaluation of Retrieval Augmented Generation"). An answer without claims is scored by the
    policy: 1.0 offline, no score in live monitoring.

    `raw_response`: `claims` (a list of `{claim, verdict, evidence, ...}`), `total_claims`,
    `supported_claims`.
    """

    description = "Measures whether every claim of the answer is supported by the context"
    threshold = 0.7
    without_claims = "No claims to verify; the answer is vacuously faithful."

    def score(self, check: ClaimCheck) -> Measured:
        """Supported over decided claims."""
        total = len(check.decided)
        supported = sum(claim.verdict == "SUPPORTED" for claim in check.decided)
        return Measured(
            supported / max(1, total),
            f"{supported} of {total} claims supported by the context.",
            {
                "claims": _rows(check.decided),
                "total_claims": total,
                "supported_claims": supported,
            },
        )


@register_evaluator("hallucination")
class HallucinationEvaluator(ClaimEvaluator):
    """Freedom of the answer from claims that the context does not support.

    `score = 1 - hallucinated claims / decided claims`. A claim is hallucinated when its verdict is
    CONTRADICTED or NOT_ENOUGH_INFO, or SUPPORTED with less confidence than `min_confidence`. Next
    to faithfulness it is stricter by default and lists the offending claims.

    `raw_response`: `claims`, `total_claims`, `hallucinated_claims` (a list of claims),
    `hallucination_count`.

    Args:
        threshold: Score that a case must reach to pass, 0 to 1.
        min_confidence: SUPPORTED claims below this confidence, 0 to 1, count as hallucinated; by
            default confidence is ignored.
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
                "HallucinationEvaluator: min_confidence must be within [0, 1], "
                f"got {min_confidence}"
            )
        self.min_confidence = min_confidence

    def score(self, check: ClaimCheck) -> Measured:
        """One minus the share of hallucinated claims."""
        least, total = self.min_confidence or 0.0, len(check.decided)
        hallucinated = [
            claim
            for claim in check.decided
            if claim.verdict != "SUPPORTED" or claim.confidence < least
        ]
        count = len(hallucinated)
        reasoning = f"All {total} claims are grounded; no hallucinations detected."
        if count:
            reasoning = f"Found {count} hallucinated claims out of {total}."
        details = {
            "claims": _rows(check.decided),
            "total_claims": total,
            "hallucinated_claims": _rows(hallucinated),
            "hallucination_count": count,
        }
        return Measured(1.0 - count / max(1, total), reasoning, details)


@register_evaluator("contradiction_rate")
class ContradictionRateEvaluator(ClaimEvaluator):
    """Share of the answer's claims that the context contradicts. Low is good.

    `score = contradicted claims / decided claims`; a case passes at or below the threshold. A claim
    that the context does not mention counts in `faithfulness` and `hallucination`, not here. The
    claim check is shared with them, so that the metric costs nothing more.

    `raw_response`: `claims`, `total_claims`, `contradicted_claims` (a list of claims),
    `contradiction_count`.
    """

    description = "Measures the share of claims that the context contradicts; low is good"
    threshold = 0.0
    higher_is_better = False
    without_claims = "No claims to verify; nothing is contradicted."

    def score(self, check: ClaimCheck) -> Measured:
        """Contradicted over decided claims."""
        contradicted = [claim for claim in check.decided if claim.verdict == "CONTRADICTED"]
        count, total = len(contradicted), len(check.decided)
        details = {
            "claims": _rows(check.decided),
            "total_claims": total,
            "contradicted_claims": _rows(contradicted),
            "contradiction_count": count,
        }
        reasoning = f"The context contradicts {count} of {total} claims."
        return Measured(count / max(1, total), reasoning, details)


@register_evaluator("chunk_utility")
class ChunkUtilityEvaluator(ClaimEvaluator):
    """Share of the retrieved chunks that the answer used.

    `score = used chunks / retrieved chunks`, the precision of rag_evals (graded chunks over all
    chunks). A chunk is used when a supported claim rests on it. The claim check is shared with
    faithfulness, so that the metric costs nothing more. Low scores mean that too much, or the
    wrong thing, is retrieved. An answer without claims is neither a good nor a bad use of its
    chunks: it has no score.

    `raw_response`: `chunks` (a list of `{id, used, claims}`, where `claims` are positions of the
    claims that rest on the chunk), `used_chunks`, `total_chunks`.
    """

    description = "Measures the share of retrieved chunks that the answer used"
    threshold = 0.5
    without_claims = "The answer makes no claims, so it is not known which chunks it used."
    scores_answers_without_claims = False

    def grade(self, check: ClaimCheck, judge: LLMJudge) -> EvaluationResult:
        """Turn a claim check into a result; a turn that retrieved nothing follows the policy."""
        if not check.case.has_context and self.policy.empty_context == "skip":
            status = Status.NO_CONTEXT if check.status.is_measured else check.status
            check = replace(check, status=status)
        return super().grade(check, judge)

    def score(self, check: ClaimCheck) -> Measured:
        """Used over retrieved chunks."""
        resting: dict[Any, list[int]] = {chunk_id: [] for chunk_id in check.case.chunk_ids}
        for position, claim in enumerate(check.claims):
            if claim.verdict == "SUPPORTED" and claim.support_source == "turn":
                spans = claim.evidence_spans
                for chunk_id in {*claim.supporting_chunk_ids, *(span.chunk_id for span in spans)}:
                    resting[chunk_id].append(position)
        used, total = sum(map(bool, resting.values())), len(resting)
        return Measured(
            used / max(1, total),
            f"The answer used {used} of {total} retrieved chunks.",
            {
                "chunks": [
                    {"id": chunk_id, "used": bool(claims), "claims": claims}
                    for chunk_id, claims in resting.items()
                ],
                "used_chunks": used,
                "total_chunks": total,
            },
        )


class ContextEvaluator(Evaluator):
    """Metric of the retrieved context.

    If nothing was retrieved the score is 0.0 without a call, unless the policy makes a case without
    context an error or leaves it unscored.
    """

    async def measure(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Measure the context, if there is any."""
        # Chunks of an earlier turn say nothing about this turn's retrieval.
        if known_context(test_case, self.policy).chunks:
            return await self.measure_context(test_case, judge)
        skip = self.policy.empty_context == "skip"
        return self.result(
            judge,
            status=Status.NO_CONTEXT if skip else Status.SCORED,
            score=None if skip else 0.0,
            reasoning="Nothing was retrieved.",
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
        """Ask about each chunk and grade the ranking, if there is a question."""
        if not test_case.query.strip():
            return self.result(judge, status=Status.NO_QUESTION, reasoning=_NO_QUESTION)
        slots = asyncio.Semaphore(_CONCURRENT_CHUNKS)

        async def relevance(chunk: str) -> JudgeResult:
            async with slots:
                return await paid(judge.evaluate_context_relevance(test_case.query, chunk))

        replies = await run_all(relevance(text) for text in test_case.context_texts)
        rows: list[dict[str, Any]] = []
        found, precisions = 0, 0.0
        for chunk_id, reply in zip(test_case.chunk_ids, replies, strict=True):
            helpful = reply.score >= _HELPFUL_FROM
            rows.append(
                {
                    "id": chunk_id,
                    "relevance": reply.score,
                    "helpful": helpful,
                    "reasoning": reply.reasoning,
                }
            )
            if helpful:
                found += 1
                precisions += found / len(rows)
        return self.result(
            judge,
            score=precisions / max(1, found),
            reasoning=f"{found} of {len(rows)} retrieved chunks help to answer.",
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


@register_evaluator("context_recall")
class ContextRecallEvaluator(ContextEvaluator):
    """Share of expected facts that the retrieved context covers.

    `score = covered facts / decided facts`, as RAGAS's context recall. The facts are the case's
    `expected_facts`, else the claims of its `expected_answer`.

    `raw_response`: `facts` (a list of `{claim, verdict, evidence, ...}`), `covered_facts`,
    `total_facts`.
    """

    description = "Measures whether the retrieved context covers the expected facts"
    threshold = 0.7
    needs = ("context", "expected_answer")

    async def measure(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Measure the context of a case with expected facts or an expected answer.

        Raises:
            MissingReferenceError: The case has neither.
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
        source = EvidenceSource(test_case.context_texts, ids=test_case.chunk_ids)
        verifier = Verifier(judge, source, policy=self.policy, batched=True)
        facts = [fact for fact in test_case.expected_facts if fact.strip()]
        with spending() as spent:
            if not facts:
                extracted = await paid(judge.extract_claims(test_case.expected_answer or ""))
                facts = [claim for claim in extracted.claims if claim.strip()]
            if not facts:
                raise _nothing_expected(test_case)
            verdicts = await verifier.decide(dict(enumerate(facts)))
        sources = dict.fromkeys(verdicts, source)
        details = await claim_details(test_case.response, facts, verdicts, sources, judge)
        raw = self.raw_response(_rows(detail for detail in details if detail.verdict is not None))
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


def _nothing_expected(case: RAGTestCase) -> MissingReferenceError:
    return MissingReferenceError(
        f"case {case.id!r} says nothing of what to expect; context_recall needs expected_facts, "
        "or an expected_answer that makes claims"
    )


@register_evaluator("relevance")
class RelevanceEvaluator(Evaluator):
    """Relevance of the answer to the question: the judge's own score and reasoning.

    An answer that declines in one of the policy's `declines` scores 0.0 without a call. The
    conversation before the question is judged together with it. A judge that compares words is
    asked both with and without the conversation, and the better score counts.

    `raw_response`: `score`, `reasoning`, `tokens_used`.
    """

    description = "Measures how well the answer addresses the question"
    threshold = 0.7
    needs = ()

    def require(self, judge: LLMJudge) -> None:
        """Warn, once in a process, about a judge that is weak at relevance."""
        usual = judge.default_metrics
        # A MagicMock(spec=LLMJudge) answers any attribute with another mock.
        if isinstance(usual, tuple) and self.name not in usual:
            name = identity_of(judge).name
            _LOG_ONCE.message(
                name,
                f"judge {name!r} is weak at {self.name}, which is therefore not one of its default "
                "metrics: use an LLM judge for it",
            )

    async def measure(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Return the judge's score, if there are a question and an answer."""
        if not test_case.query.strip():
            return self.result(judge, status=Status.NO_QUESTION, reasoning=_NO_QUESTION)
        if not test_case.response.strip():
            return self.result(judge, status=Status.EMPTY_ANSWER, reasoning=_EMPTY_ANSWER)
        answer = test_case.response
        if await off_loop_if_long(len(answer), is_own_decline, answer, self.policy.declines):
            said = "The answer declines to answer."
            return self.result(judge, score=0.0, reasoning=said, raw_response=_relevance(0.0, said))
        # In this order: of equal scores, the first one's reason is shown, in every process.
        questions = dict.fromkeys([question_of(test_case, judge, self.policy)])
        if identity_of(judge).kind != "llm":
            questions[test_case.query] = None
        replies = [
            await paid(judge.evaluate_relevance(question, test_case.response))
            for question in questions
        ]
        reply = max(replies, key=lambda each: each.score)
        usage = sum((each.spent() for each in replies), JudgeUsage())
        return self.result(
            judge,
            score=reply.score,
            reasoning=reply.reasoning,
            usage=usage,
            raw_response=_relevance(reply.score, reply.reasoning, usage.total_tokens),
        )


def _relevance(score: float, reasoning: str, tokens: int = 0) -> dict[str, Any]:
    return {"score": score, "reasoning": reasoning, "tokens_used": tokens}
