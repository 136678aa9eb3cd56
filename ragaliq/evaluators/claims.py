"""The claim check that faithfulness and hallucination share.

An answer is taken apart into claims and each claim is decided from the context. Three strategies
cost differently: `batched` two calls, `per_claim` one and one for each claim, `single_pass` one.
All end in the same `ClaimCheck`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ragaliq.core.concurrency import Breather, run_all
from ragaliq.core.evaluator import judge_name
from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.results import UNCALIBRATED, ClaimDetail, JudgeUsage, Status
from ragaliq.core.spending import paid, spending
from ragaliq.core.test_case import ChunkId, RAGTestCase
from ragaliq.errors import ConfigurationError, DatasetError, JudgeError, JudgeResponseError
from ragaliq.evaluators.alignment import CLAIM_CUTOFF, EvidenceFinder, SearchableText, locate
from ragaliq.judges.base import BatchingJudge, ClaimVerdict, LLMJudge, VerdictsResult
from ragaliq.judges.language.refusals import is_refusal

__all__ = ["ClaimCheck", "Strategy", "check_claims", "require_strategy"]


Strategy = Literal["batched", "per_claim", "single_pass"]

Verdicts: TypeAlias = dict[int, ClaimVerdict]
"""Verdicts by the position of their claim; claims that stayed undecided are not there."""


@dataclass(frozen=True, kw_only=True)
class ClaimCheck:
    """The claims of one answer with their verdicts.

    Attributes:
        status: `scored`, `partial`, or why there is nothing to score.
        claims: In the answer's order; a claim without a verdict stayed undecided.
        chunk_ids: The ids of the case's chunks, in rank order.
        usage: What the check cost.
        context_parts: In how many parts the context was judged, because it was too long for one.
        coverage: Share of the answer's letters and digits that its claims cover, 0 to 1.
    """

    status: Status
    claims: tuple[ClaimDetail, ...] = ()
    chunk_ids: tuple[ChunkId, ...] = ()
    usage: JudgeUsage = JudgeUsage()
    context_parts: int = 1
    coverage: float = 1.0

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
    if not case.response.strip():
        return ClaimCheck(status=Status.EMPTY_ANSWER, chunk_ids=ids)
    if not case.has_context and policy.empty_context == "skip":
        return ClaimCheck(status=Status.NO_CONTEXT, chunk_ids=ids)
    if policy.answer_refusal and is_refusal(case.response):
        return ClaimCheck(status=Status.ANSWER_REFUSED, chunk_ids=ids)
    require_strategy(strategy, judge)
    batching = judge if isinstance(judge, BatchingJudge) and strategy != "per_claim" else None
    verifier = Verifier(judge, case.context_texts, policy=policy, batched=batching is not None)
    with spending() as spent:
        claims, verdicts = await _decide(
            case, batching or judge, verifier, at_once=strategy == "single_pass"
        )
    if not claims:
        return ClaimCheck(status=Status.NO_CLAIMS, chunk_ids=ids, usage=spent.usage)
    return ClaimCheck(
        status=Status.SCORED if len(verdicts) == len(claims) else Status.PARTIAL,
        claims=await claim_details(case, claims, verdicts, judge, evidence=verifier.evidence),
        chunk_ids=ids,
        usage=spent.usage,
        context_parts=len(verifier.parts),
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


async def _decide(
    case: RAGTestCase, judge: LLMJudge, verifier: Verifier, *, at_once: bool
) -> tuple[list[str], Verdicts]:
    """The answer's claims and their verdicts; in one pass where that is wanted and possible."""
    # Where the policy has an empty context judged, it is given to the judge like any other.
    without_context = not case.has_context and verifier.policy.empty_context == "not_enough_info"
    answer = split_text(case.response, positive_limit(judge.max_answer_chars))
    if (
        at_once
        and isinstance(judge, BatchingJudge)
        and len(verifier.parts) == len(answer) == 1
        and not without_context
    ):
        graded = await paid(judge.grade_statements(case.query, case.response, case.context_texts))
        claims = [verdict.statement for verdict in graded.verdicts]
        verdicts = _with_chunks(dict(enumerate(graded.verdicts)), range(len(case.context_texts)))
        return claims, await verifier.look_again(claims, verdicts)

    claims = []
    for part in answer:
        if verifier.asks_together and isinstance(judge, BatchingJudge):
            extracted = await paid(judge.extract_statements(case.query, part))
        else:
            extracted = await paid(judge.extract_claims(part))
        claims += [claim for claim in extracted.claims if claim.strip()]
    if without_context:
        verdict = ClaimVerdict(
            verdict="NOT_ENOUGH_INFO", reason="There is no context.", decided_by="policy"
        )
        return claims, dict.fromkeys(range(len(claims)), verdict)
    return claims, await verifier.decide(claims) if claims else {}


# --- Deciding claims --------------------------------------------------------------------------

_CONCURRENT_CLAIMS = 8
"""Claims of one answer that are asked about at the same time, one by one."""

_DOUBT = 0.5
"""Factor on the confidence of a claim whose evidence was not found even on a second look."""


class Verifier:
    """Decides claims from one context.

    Args:
        judge: Who decides.
        context: The chunks.
        policy: What to do about missing verdicts.
        batched: Ask about many claims in one call; the judge must be a `BatchingJudge`.

    Attributes:
        evidence: Finds quotes in the context.
        parts: The parts in which the context is judged.
        policy: What to do about missing verdicts.
    """

    def __init__(
        self, judge: LLMJudge, context: Sequence[str], *, policy: ScoringPolicy, batched: bool
    ) -> None:
        self._judge = judge
        self._context = list(context)
        self.policy = policy
        self._batching = judge if batched and isinstance(judge, BatchingJudge) else None
        self._slots = asyncio.Semaphore(_CONCURRENT_CLAIMS)
        self.evidence = EvidenceFinder(self._context)
        self.parts = split_context(self._context, positive_limit(judge.max_context_chars))

    @property
    def asks_together(self) -> bool:
        """Whether many claims are asked about in one call."""
        return self._batching is not None

    async def decide(self, claims: Sequence[str]) -> Verdicts:
        """Decide all claims.

        Raises:
            JudgeError: The judge failed, or left claims undecided and the policy forbids it.
        """
        verdicts = await self._decide(claims)
        if self._batching is None:
            # Plain judges give remarks as evidence rather than quotes: nothing to hold them to.
            return verdicts
        return await self.look_again(claims, verdicts)

    async def look_again(self, claims: Sequence[str], verdicts: Verdicts) -> Verdicts:
        """Ask once more about claims that were decided by a quote that is not in the context."""
        doubtful = [
            position
            for position, verdict in verdicts.items()
            if verdict.evidence.strip() and await self._is_unfounded(verdict)
        ]
        if not doubtful:
            return verdicts
        try:
            second = await self._decide([claims[i] for i in doubtful])
        except JudgeError:
            second = {}  # the first answer stands, in doubt
        settled = dict(verdicts)
        for index, position in enumerate(doubtful):
            verdict = second.get(index, verdicts[position])
            # A claim that is now decided by no quote at all is as unfounded as before.
            unfounded = await self._is_unfounded(verdict)
            settled[position] = self._doubted(verdict) if unfounded else verdict
        return settled

    async def _decide(self, claims: Sequence[str]) -> Verdicts:
        parts = await run_all(self._decide_from(part, claims) for part in self.parts)
        return parts[0] if len(parts) == 1 else merge_parts(parts, len(claims))

    async def _decide_from(self, part: ContextPart, claims: Sequence[str]) -> Verdicts:
        """Ask about all claims, then once more about those without a verdict if the policy says so.

        Raises:
            JudgeResponseError: No claim was decided, or some were not and the policy forbids it.
        """
        total, policy = len(claims), self.policy
        verdicts = await self._ask(claims, range(total), part)
        missing = [i for i in range(total) if i not in verdicts]
        if missing and policy.missing_verdicts == "reask":
            verdicts = {**await self._ask(claims, missing, part), **verdicts}
            missing = [i for i in range(total) if i not in verdicts]
        if missing and (not tolerates_missing(policy) or not verdicts):
            raise _undecided(len(missing), total)
        return _with_chunks(verdicts, part.positions)

    async def _ask(
        self, claims: Sequence[str], positions: Sequence[int], part: ContextPart
    ) -> Verdicts:
        """Ask about the claims at these positions, together where the judge can."""
        if self._batching is None:
            replies = await run_all(self._ask_one(claims[i], part) for i in positions)
            answered = zip(positions, replies, strict=True)
            return {i: reply for i, reply in answered if reply is not None}
        size = positive_limit(self._batching.max_claims) or len(positions)
        verdicts: Verdicts = {}
        for start in range(0, len(positions), size):
            group = positions[start : start + size]
            asked = [claims[i] for i in group]
            reply = await paid(self._batching.verify_claims(asked, list(part.texts)))
            verdicts |= verdicts_for(reply, group)
        return verdicts

    async def _ask_one(self, claim: str, part: ContextPart) -> ClaimVerdict | None:
        async with self._slots:
            try:
                return await paid(self._judge.verify_claim(claim, list(part.texts)))
            except JudgeResponseError:
                # One malformed reply is one missing verdict where the policy can live with it.
                if tolerates_missing(self.policy):
                    return None
                raise

    async def _is_unfounded(self, verdict: ClaimVerdict) -> bool:
        if verdict.verdict == "NOT_ENOUGH_INFO":
            return False
        positions = range(len(self._context))
        return not await self.evidence.find(
            verdict.evidence, positions, verdict.supporting_chunk_ids
        )

    @staticmethod
    def _doubted(verdict: ClaimVerdict) -> ClaimVerdict:
        # What was a probability is none after this.
        return verdict.model_copy(
            update={"confidence": verdict.confidence * _DOUBT, "calibration": UNCALIBRATED}
        )


def positive_limit(limit: object) -> int | None:
    """A judge's limit; None where it has none."""
    # A MagicMock(spec=LLMJudge) answers any attribute with another mock.
    return limit if isinstance(limit, int) and limit > 0 else None


# --- Matching verdicts to claims --------------------------------------------------------------

_STRENGTH = {"SUPPORTED": 0, "CONTRADICTED": 1, "NOT_ENOUGH_INFO": 2}


def verdicts_for(reply: VerdictsResult, positions: Sequence[int]) -> Verdicts:
    """A reply's verdicts by the position of their claim.

    A verdict for a claim that was not asked is ignored. A claim with two different verdicts has
    none: taking either would be a guess.

    Args:
        reply: The judge's reply.
        positions: Of the claims that were asked, in the order in which they were.
    """
    verdicts: Verdicts = {}
    disputed: set[int] = set()
    for verdict in reply.verdicts:
        if verdict.index is None or not 0 <= verdict.index < len(positions):
            continue
        position = positions[verdict.index]
        if verdicts.setdefault(position, verdict).verdict != verdict.verdict:
            disputed.add(position)
    return {position: found for position, found in verdicts.items() if position not in disputed}


def _with_chunks(verdicts: Verdicts, positions: Sequence[int]) -> Verdicts:
    """The same with chunk ids that count in the whole context instead of in a part of it."""
    placed = {}
    for claim, verdict in verdicts.items():
        known = [positions[i] for i in verdict.supporting_chunk_ids if 0 <= i < len(positions)]
        chunks = list(dict.fromkeys(known))
        placed[claim] = verdict.model_copy(update={"supporting_chunk_ids": chunks})
    return placed


def tolerates_missing(policy: ScoringPolicy) -> bool:
    """Whether a score may be made although some claims have no verdict."""
    if policy.missing_verdicts == "reask":
        return policy.still_missing == "partial"
    return policy.missing_verdicts != "error"


def merge_parts(parts: Sequence[Verdicts], total: int) -> Verdicts:
    """Join what was decided from the parts of one context.

    SUPPORTED by any part wins, else CONTRADICTED by any, else NOT_ENOUGH_INFO. A claim that some
    part left undecided is decided only if another part supports it.

    Raises:
        JudgeResponseError: No claim is decided.
    """
    verdicts = {}
    for claim in range(total):
        found = [part[claim] for part in parts if claim in part]
        found.sort(key=lambda verdict: (_STRENGTH[verdict.verdict], -verdict.confidence))
        if found and (len(found) == len(parts) or found[0].verdict == "SUPPORTED"):
            verdicts[claim] = _joined(found)
    if not verdicts:
        raise _undecided(total, total)
    return verdicts


def _undecided(missing: int, total: int) -> JudgeResponseError:
    return JudgeResponseError(f"the judge gave no verdict for {missing} of {total} claims")


def _joined(found: Sequence[ClaimVerdict]) -> ClaimVerdict:
    best = found[0]
    alike = (verdict for verdict in found if verdict.verdict == best.verdict)
    chunks = dict.fromkeys(i for verdict in alike for i in verdict.supporting_chunk_ids)
    return best.model_copy(update={"supporting_chunk_ids": list(chunks)})


# --- Claim details ----------------------------------------------------------------------------


async def claim_details(
    case: RAGTestCase,
    claims: Sequence[str],
    verdicts: Verdicts,
    judge: LLMJudge,
    *,
    evidence: EvidenceFinder,
) -> tuple[ClaimDetail, ...]:
    """Describe each claim: its verdict, and where it and its evidence stand."""
    name, ids, answer = judge_name(judge), case.chunk_ids, SearchableText(case.response)
    details, cursor, breather = [], 0, Breather()
    for position, claim in enumerate(claims):
        await breather.pause_if_due()
        span = locate(claim, answer, cutoff=CLAIM_CUTOFF, start=cursor)
        cursor = span[1] if span else cursor
        verdict = verdicts.get(position)
        if verdict is None:
            details.append(
                ClaimDetail(
                    claim=claim, verdict=None, confidence=0.0, is_unsure=True, answer_span=span
                )
            )
            continue
        chunks = [i for i in verdict.supporting_chunk_ids if 0 <= i < len(ids)]
        evidence_spans = await evidence.find(verdict.evidence, ids, chunks)
        # A MagicMock(spec=LLMJudge) answers any call with another mock.
        unsure: object = judge.is_unsure(verdict)
        details.append(
            ClaimDetail(
                claim=claim,
                verdict=verdict.verdict,
                evidence=verdict.evidence,
                confidence=verdict.confidence,
                is_unsure=unsure is True,
                reason=verdict.reason,
                supporting_chunk_ids=tuple(ids[i] for i in chunks),
                answer_span=span,
                evidence_spans=evidence_spans,
                evidence_verified=bool(evidence_spans),
                decided_by=verdict.decided_by or name,
                calibration=verdict.calibration,
            )
        )
    return tuple(details)


# --- Parts of what is too long for one question -----------------------------------------------

# Where a text may be cut, best first: between paragraphs, lines, sentences, words.
_BOUNDARIES = (
    re.compile(r"\n\s*\n"),
    re.compile(r"\n"),
    re.compile(r"[.!?]\s+|[。！？]\s*"),  # a point inside 3.14 or an address ends no sentence
    re.compile(r"\s"),
)
_LEAST_FILLED = 0.5


@dataclass(frozen=True, kw_only=True)
class ContextPart:
    """Some of the chunks, or pieces of chunks, that fit into one question.

    Attributes:
        texts: What the judge sees.
        positions: For each text, the position of its chunk in the whole context.
    """

    texts: tuple[str, ...]
    positions: tuple[int, ...]


def split_context(texts: Sequence[str], limit: int | None) -> list[ContextPart]:
    """Divide chunks into parts of at most `limit` characters, in order.

    A chunk that is longer than the limit is cut at paragraph, line, sentence or word boundaries.

    Args:
        texts: The chunks.
        limit: Characters a part may have; None for no limit.

    Returns:
        At least one part; every character of every chunk is in exactly one.
    """
    parts: list[ContextPart] = []
    held: list[tuple[int, str]] = []
    size = 0
    for position, text in enumerate(texts):
        for piece in split_text(text, limit):
            if held and limit is not None and size + len(piece) > limit:
                parts.append(_part(held))
                held, size = [], 0
            held.append((position, piece))
            size += len(piece)
    if held or not parts:
        parts.append(_part(held))
    return parts


def split_text(text: str, limit: int | None) -> list[str]:
    """Cut a text into pieces of at most `limit` characters that together are the text."""
    if limit is None or len(text) <= limit:
        return [text]
    return list(_pieces(text, limit))


def _pieces(text: str, limit: int) -> Iterator[str]:
    start = 0
    while len(text) - start > limit:
        end = _cut(text, start, start + limit)
        yield text[start:end]
        start = end
    yield text[start:]


def _cut(text: str, start: int, end: int) -> int:
    earliest = start + int((end - start) * _LEAST_FILLED)
    for boundary in _BOUNDARIES:
        cuts = [match.end() for match in boundary.finditer(text, earliest, end)]
        if cuts:
            return cuts[-1]
    return end


def _part(held: Sequence[tuple[int, str]]) -> ContextPart:
    return ContextPart(
        texts=tuple(text for _, text in held), positions=tuple(position for position, _ in held)
    )
