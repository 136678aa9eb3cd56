"""Asking one judge of a cascade about several claims, whichever kind of judge it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ragaliq.core.concurrency import run_all
from ragaliq.core.results import JudgeUsage
from ragaliq.errors import JudgeError, JudgeResponseError
from ragaliq.judges.base import BatchingJudge, ClaimVerdict, LLMJudge, VerdictsResult

__all__ = ["Answers", "ask", "limit_of"]


class Answers(NamedTuple):
    """What a judge said.

    Attributes:
        verdicts: By the position of the claim among those asked; some may be missing.
        usage: What asking cost.
    """

    verdicts: dict[int, ClaimVerdict]
    usage: JudgeUsage


async def ask(judge: LLMJudge, claims: Sequence[str], context: Sequence[str]) -> Answers:
    """Ask about all claims, in one call where the judge can.

    Raises:
        JudgeError: The judge failed. Its `usage` holds what earlier calls cost as well.
    """
    if not isinstance(judge, BatchingJudge):
        return await _ask_each(judge, claims, context)
    size = limit_of(judge.max_claims) or len(claims)
    verdicts: dict[int, ClaimVerdict] = {}
    usage = JudgeUsage()
    for start in range(0, len(claims), size):
        try:
            reply = await judge.verify_claims(claims[start : start + size], context)
        except JudgeError as error:
            error.usage = usage + (error.usage or JudgeUsage())
            raise
        usage += reply.spent()
        asked = min(size, len(claims) - start)
        verdicts.update((start + i, verdict) for i, verdict in _undisputed(reply, asked).items())
    return Answers(verdicts, usage)


def limit_of(limit: object) -> int | None:
    """A judge's limit; None where it has none."""
    return limit if isinstance(limit, int) and limit > 0 else None


def _undisputed(reply: VerdictsResult, asked: int) -> dict[int, ClaimVerdict]:
    """Verdicts by claim; one with two different verdicts has none: either would be a guess."""
    found: dict[int, ClaimVerdict] = {}
    disputed: set[int] = set()
    for verdict in reply.verdicts:
        index = verdict.claim_index
        if index is None or not 0 <= index < asked:
            continue
        if found.setdefault(index, verdict).verdict != verdict.verdict:
            disputed.add(index)
    return {index: verdict for index, verdict in found.items() if index not in disputed}


async def _ask_each(judge: LLMJudge, claims: Sequence[str], context: Sequence[str]) -> Answers:
    spent: list[JudgeUsage] = []

    async def one(claim: str) -> ClaimVerdict | None:
        try:
            verdict = await judge.verify_claim(claim, list(context))
        except JudgeResponseError as error:
            spent.append(error.usage or JudgeUsage())
            return None  # one malformed reply is one missing verdict
        spent.append(verdict.spent())
        return verdict

    try:
        replies = await run_all(one(claim) for claim in claims)
    except JudgeError as error:
        error.usage = sum(spent, error.usage or JudgeUsage())
        raise
    answered = {i: reply for i, reply in enumerate(replies) if reply is not None}
    return Answers(answered, sum(spent, JudgeUsage()))
