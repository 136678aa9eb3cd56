"""Deciding claims: together or one by one, in parts where the context is long, with a second look.

Two things are asked again, once each: claims the reply left out, and claims called SUPPORTED by a
quote that stands nowhere in the context.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ragaliq.core.concurrency import run_all
from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.results import UNCALIBRATED
from ragaliq.core.spending import paid
from ragaliq.errors import JudgeError, JudgeResponseError
from ragaliq.evaluators.alignment import EvidenceFinder
from ragaliq.evaluators.reconcile import (
    Decided,
    decide_missing,
    merge_parts,
    tolerates_missing,
)
from ragaliq.evaluators.windows import ContextPart, split_context
from ragaliq.judges.base import BatchingJudge, ClaimVerdict, LLMJudge

__all__ = ["Verifier", "positive_limit"]

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
    """

    def __init__(
        self, judge: LLMJudge, context: Sequence[str], *, policy: ScoringPolicy, batched: bool
    ) -> None:
        self._judge = judge
        self._context = list(context)
        self._policy = policy
        self._batching = judge if batched and isinstance(judge, BatchingJudge) else None
        self._slots = asyncio.Semaphore(_CONCURRENT_CLAIMS)
        self.evidence = EvidenceFinder(self._context)
        self.parts = split_context(self._context, positive_limit(judge.max_context_chars))

    async def decide(self, claims: Sequence[str]) -> Decided:
        """Decide all claims.

        Raises:
            JudgeError: The judge failed, or left claims undecided and the policy forbids it.
        """
        decided = await self._decide(claims)
        if self._batching is None:
            # Plain judges give remarks as evidence rather than quotes: nothing to hold them to.
            return decided
        return await self.look_again(claims, decided)

    async def look_again(self, claims: Sequence[str], decided: Decided) -> Decided:
        """Ask once more about claims called SUPPORTED by a quote that is not in the context."""
        doubtful = [
            i
            for i, verdict in decided.verdicts.items()
            if verdict.evidence.strip() and await self._is_unfounded(verdict)
        ]
        if not doubtful:
            return decided
        try:
            second = await self._decide([claims[i] for i in doubtful])
        except JudgeError:
            second = Decided()  # the first answer stands, in doubt
        verdicts = dict(decided.verdicts)
        for index, position in enumerate(doubtful):
            verdict = second.verdicts.get(index, verdicts[position])
            # A claim that is now supported by no quote at all is as unfounded as before.
            unfounded = await self._is_unfounded(verdict)
            verdicts[position] = self._doubted(verdict) if unfounded else verdict
        return Decided(verdicts=verdicts)

    async def _decide(self, claims: Sequence[str]) -> Decided:
        return merge_parts(
            await run_all(self._decide_from(part, claims) for part in self.parts), len(claims)
        )

    async def _decide_from(self, part: ContextPart, claims: Sequence[str]) -> Decided:
        async def ask(positions: Sequence[int]) -> Decided:
            if self._batching is None:
                return await self._ask_each(claims, positions, part)
            return await self._ask_together(self._batching, claims, positions, part)

        decided = await decide_missing(ask, len(claims), self._policy)
        return decided.with_chunks(part.positions)

    async def _ask_together(
        self,
        judge: BatchingJudge,
        claims: Sequence[str],
        positions: Sequence[int],
        part: ContextPart,
    ) -> Decided:
        size = positive_limit(judge.max_claims) or len(positions)
        decided = Decided()
        for start in range(0, len(positions), size):
            group = positions[start : start + size]
            asked = [claims[i] for i in group]
            reply = await paid(judge.verify_claims(asked, list(part.texts)))
            decided = decided.and_then(Decided.from_reply(reply, group))
        return decided

    async def _ask_each(
        self, claims: Sequence[str], positions: Sequence[int], part: ContextPart
    ) -> Decided:
        replies = await run_all(self._ask_one(claims[i], part) for i in positions)
        answered = zip(positions, replies, strict=True)
        return Decided(verdicts={i: reply for i, reply in answered if reply is not None})

    async def _ask_one(self, claim: str, part: ContextPart) -> ClaimVerdict | None:
        async with self._slots:
            try:
                return await paid(self._judge.verify_claim(claim, list(part.texts)))
            except JudgeResponseError:
                # One malformed reply is one missing verdict where the policy can live with it.
                if tolerates_missing(self._policy):
                    return None
                raise

    async def _is_unfounded(self, verdict: ClaimVerdict) -> bool:
        if verdict.verdict != "SUPPORTED":
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
