"""Matching verdicts to the claims that were asked, and asking again for those that are missing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from ragaliq.core.policy import ScoringPolicy
from ragaliq.errors import JudgeResponseError
from ragaliq.judges.base import ClaimVerdict, VerdictsResult

__all__ = ["Decided", "decide_missing", "merge_parts", "tolerates_missing"]

_STRENGTH = {"SUPPORTED": 0, "CONTRADICTED": 1, "NOT_ENOUGH_INFO": 2}


@dataclass(frozen=True, kw_only=True)
class Decided:
    """Verdicts by the position of their claim."""

    verdicts: dict[int, ClaimVerdict] = field(default_factory=dict)

    @classmethod
    def from_reply(cls, reply: VerdictsResult, positions: Sequence[int]) -> Decided:
        """Match a reply's verdicts to the claims at `positions`.

        A verdict for a claim that was not asked is ignored. A claim with two different verdicts
        has none: taking either would be a guess.
        """
        verdicts: dict[int, ClaimVerdict] = {}
        disputed: set[int] = set()
        for verdict in reply.verdicts:
            index = verdict.claim_index
            if index is None or not 0 <= index < len(positions):
                continue
            earlier = verdicts.setdefault(positions[index], verdict)
            if earlier.verdict != verdict.verdict:
                disputed.add(positions[index])
        for position in disputed:
            del verdicts[position]
        return cls(verdicts=verdicts)

    def and_then(self, later: Decided) -> Decided:
        """Both together; verdicts already there stay."""
        return Decided(verdicts={**later.verdicts, **self.verdicts})

    def with_chunks(self, positions: Sequence[int]) -> Decided:
        """The same with chunk ids that count in the whole context instead of in a part of it."""
        return Decided(
            verdicts={
                claim: verdict.model_copy(
                    update={
                        "supporting_chunk_ids": list(
                            dict.fromkeys(
                                positions[i]
                                for i in verdict.supporting_chunk_ids
                                if 0 <= i < len(positions)
                            )
                        )
                    }
                )
                for claim, verdict in self.verdicts.items()
            }
        )


async def decide_missing(
    ask: Callable[[Sequence[int]], Awaitable[Decided]], total: int, policy: ScoringPolicy
) -> Decided:
    """Ask for all claims, then once more for those without a verdict if the policy says so.

    Args:
        ask: Decides the claims at the given positions.
        total: Number of claims.
        policy: What to do about missing verdicts.

    Raises:
        JudgeResponseError: No claim was decided, or some were not and the policy forbids it.
    """
    decided = await ask(range(total))
    missing = [i for i in range(total) if i not in decided.verdicts]
    if missing and policy.missing_verdicts == "reask":
        decided = decided.and_then(await ask(missing))
        missing = [i for i in range(total) if i not in decided.verdicts]
    if missing and (not tolerates_missing(policy) or not decided.verdicts):
        raise _undecided(len(missing), total)
    return decided


def tolerates_missing(policy: ScoringPolicy) -> bool:
    """Whether a score may be made although some claims have no verdict."""
    if policy.missing_verdicts == "reask":
        return policy.still_missing == "partial"
    return policy.missing_verdicts != "error"


def merge_parts(parts: Sequence[Decided], total: int) -> Decided:
    """Join what was decided from the parts of one context.

    SUPPORTED by any part wins, else CONTRADICTED by any, else NOT_ENOUGH_INFO. A claim that some
    part left undecided is decided only if another part supports it.

    Raises:
        JudgeResponseError: No claim is decided.
    """
    if len(parts) == 1:
        return parts[0]
    verdicts = {}
    for claim in range(total):
        found = [part.verdicts[claim] for part in parts if claim in part.verdicts]
        found.sort(key=lambda verdict: (_STRENGTH[verdict.verdict], -verdict.confidence))
        if found and (len(found) == len(parts) or found[0].verdict == "SUPPORTED"):
            verdicts[claim] = _joined(found)
    if not verdicts:
        raise _undecided(total, total)
    return Decided(verdicts=verdicts)


def _undecided(missing: int, total: int) -> JudgeResponseError:
    return JudgeResponseError(f"the judge gave no verdict for {missing} of {total} claims")


def _joined(found: Sequence[ClaimVerdict]) -> ClaimVerdict:
    best = found[0]
    alike = (verdict for verdict in found if verdict.verdict == best.verdict)
    chunks = dict.fromkeys(i for verdict in alike for i in verdict.supporting_chunk_ids)
    return best.model_copy(update={"supporting_chunk_ids": list(chunks)})
