"""From what a reply says row by row to one verdict a statement."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ragaliq.core.results import JudgeUsage, Verdict
from ragaliq.errors import JudgeResponseError
from ragaliq.judges.base import ClaimVerdict, VerdictsResult

# The reply's cost is accounted for once, by the judge that asked.
_COUNTED_ELSEWHERE = JudgeUsage()


@dataclass(frozen=True, kw_only=True)
class ReplyRow:
    """What a reply says about one statement; a verdict of None settles nothing."""

    verdict: Verdict | None
    number: int | None = None  # as the row itself numbers its statement
    whole: bool = True  # False where a part of the row could not be read
    statement: str = ""
    reason: str = ""
    evidence: str = ""
    confidence: float = 1.0
    chunk_ids: list[int] = field(default_factory=list)


Group: TypeAlias = Sequence[ReplyRow]
"""Rows that belong together, in the order of the reply."""


def settle(groups: Sequence[Group], expected: int) -> list[ClaimVerdict]:
    """The verdicts of the group that answers, by the position of their statement.

    A later group that is as good replaces an earlier one: models draft before they decide. Groups
    that only together are as many as the statements are parts of one answer.
    """
    together = [row for group in groups for row in group]
    full = [group for group in groups if _is_full(group, expected) and decided(group)]
    if full:
        chosen: Group = max(reversed(full), key=decided)
    elif _is_full(together, expected):
        chosen = together
    elif len(together) > expected:
        chosen = max(map(_undamaged, reversed(_in_place(groups))), key=decided, default=())
    else:  # parts, with some missing: only the first has a certain place
        chosen = next(filter(decided, map(_undamaged, _in_place(groups))), ())
    return _by_position(chosen, expected)


def settle_values(groups: Sequence[Group], expected: int) -> list[ClaimVerdict]:
    """The verdicts of groups that were read from JSON.

    A judge that quotes what it judges may repeat an answer that somebody forged: where several
    complete answers differ, none counts. Parts whose rows name their statements are one answer.

    Raises:
        JudgeResponseError: The reply holds different answers.
    """
    complete = [g for g in groups if decided(g) and all(row.whole for row in g)]
    if len(complete) > 1 and all(row.number is not None for g in complete for row in g):
        together = [row for g in complete for row in g]
        verdicts = {(row.number, row.verdict) for row in together}
        if len(verdicts) == len({row.number for row in together}):
            return _by_position(together, expected)
    answers = [{item.index: item.verdict for item in _by_position(g, expected)} for g in complete]
    if any(answer != answers[0] for answer in answers):
        raise JudgeResponseError(f"the judge's reply holds {len(answers)} answers that differ")
    return settle(groups, expected)


def decided(group: Group) -> int:
    """How many rows of a group settle their statement."""
    return sum(row.verdict is not None for row in group)


def _is_full(group: Group, expected: int) -> bool:
    """Whether a group has a row for each statement; one that is lost may be among them."""
    return len(group) == expected and sum(not row.whole for row in group) <= 1


def _in_place(groups: Sequence[Group]) -> Sequence[Group]:
    """The groups up to the first that is damaged: what follows it may be the rest of it."""
    damaged = [not all(row.whole for row in group) for group in groups]
    return groups[: damaged.index(True) + 1] if True in damaged else groups


def _undamaged(group: Group) -> Group:
    """The rows that are where they seem to be."""
    whole = [row for row in group if row.whole]
    if all(row.number is not None for row in whole):
        return whole
    # A damaged row may have swallowed others, or be none: what comes after it has no certain place.
    damaged = next((at for at, row in enumerate(group) if not row.whole), len(group))
    return group[:damaged]


def _by_position(group: Group, expected: int) -> list[ClaimVerdict]:
    verdicts = [
        ClaimVerdict(
            index=position,
            statement=row.statement,
            verdict=row.verdict,
            evidence=row.evidence,
            confidence=row.confidence,
            supporting_chunk_ids=row.chunk_ids,
            reason=row.reason,
            usage=_COUNTED_ELSEWHERE,
        )
        for position, row in zip(_positions(group, expected), group, strict=True)
        if row.verdict is not None
    ]
    found = VerdictsResult(verdicts=verdicts).by_claim(sys.maxsize)
    return [found[position] for position in sorted(found)]


def _positions(group: Group, expected: int) -> Sequence[int]:
    """Where each row belongs: by its own number if all carry one, else by its place.

    Numbers count from 1 unless a 0 is among them.
    """
    numbers = [row.number for row in group if row.number is not None]
    copied = len(numbers) > 1 and len(set(numbers)) == 1 and len(numbers) == expected
    if not numbers or len(numbers) < len(group) or copied:
        return range(len(group))
    first = 0 if 0 in numbers else 1
    if min(numbers) - first >= expected:  # they number something else
        return range(len(group))
    return [number - first for number in numbers]
