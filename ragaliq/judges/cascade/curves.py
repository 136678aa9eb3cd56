"""A cascade's accuracy against its cost on labelled claims, with a made-up second judge.

That judge is right with the same chance for every claim, or errs more where the screen is less
sure, as judges do that find the same claims hard. Figures are expectations over its errors, so
nothing is drawn: the same claims give the same figures.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.judges.base import NumberedVerdict, VerdictsResult
from ragaliq.judges.calibration import (
    CalibratedJudge,
    Calibration,
    fit_calibration,
    raw_support,
)
from ragaliq.judges.cascade.asking import ask
from ragaliq.judges.cascade.judge import CascadeJudge
from ragaliq.judges.cascade.left_out import Screened
from ragaliq.judges.local import LocalJudge

__all__ = ["CurvePoint", "at_calls", "curve", "reaches"]

SHARES = (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0)
_SLACK = 0.02
_PARTS = 4
_CONTEXT = ("-",)
_WITHIN = 0.02
_AT = 0.6


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """A cascade on one set.

    Attributes:
        target: Share of claims it was told to escalate.
        calls: Share it did escalate.
        accuracy: Expected share of right decisions.
        balanced: Expected mean of the shares right among supported and among other claims.
        balanced_alike: The same with a second judge that finds the screen's hard claims hard.
        calibrated: Share of the set's claims for which there was a calibration to go by.
    """

    target: float
    calls: float
    accuracy: float
    balanced: float
    balanced_alike: float
    calibrated: float


@dataclass(frozen=True, slots=True)
class _Decided:
    is_supported: bool
    escalated: bool = True
    right: bool = False
    doubt: float = 0.5
    calibrated: bool = False


class _Replay(LocalJudge):
    """The embedded judge with verdicts it gave before; a claim is its number."""

    def __init__(self, rows: Sequence[Screened]) -> None:
        self._rows = rows

    async def verify_claims(
        self,
        claims: Sequence[str],
        context: Sequence[str],  # noqa: ARG002 - all is said in the verdicts
    ) -> VerdictsResult:
        fields = (self._rows[int(claim)].verdict.model_dump() for claim in claims)
        return VerdictsResult(
            verdicts=[NumberedVerdict(claim_index=i, **each) for i, each in enumerate(fields)],
            usage=JudgeUsage(),
        )


class _Second(_Replay):
    """Only takes what is escalated; how often it is right is reckoned afterwards."""

    name = "second"

    def __init__(self) -> None:
        super().__init__(())

    async def verify_claims(
        self,
        claims: Sequence[str],
        context: Sequence[str],  # noqa: ARG002 - as above
    ) -> VerdictsResult:
        verdicts = [
            NumberedVerdict(claim_index=i, verdict="NOT_ENOUGH_INFO") for i in range(len(claims))
        ]
        return VerdictsResult(verdicts=verdicts, usage=JudgeUsage())


def curve(
    rows: Sequence[Screened],
    accuracies: Sequence[float],
    *,
    shares: Sequence[float] = SHARES,
    labels: int = 200,
) -> dict[float, list[CurvePoint]]:
    """Accuracy against the share of claims the second judge decides, by that judge's accuracy.

    The set is cut in four by context; for each part the screen is calibrated on labels of the
    other three. Where that is refused, the cascade escalates everything, as it does in use.

    Args:
        rows: Labelled claims with the screen's verdicts.
        accuracies: Of the second judge, for supported and other claims alike.
        shares: Shares to escalate.
        labels: Claims the screen is calibrated on.
    """
    clusters = {cluster: i for i, cluster in enumerate(dict.fromkeys(row.cluster for row in rows))}
    part_of = [clusters[row.cluster] % _PARTS for row in rows]
    decided: dict[float, list[_Decided]] = {share: [] for share in shares}
    for part in range(_PARTS):
        others = [row for row, own in zip(rows, part_of, strict=True) if own != part]
        tested = [row for row, own in zip(rows, part_of, strict=True) if own == part]
        calibration = _calibrate(_spread(others, labels))
        for share in shares:
            decided[share] += asyncio.run(_decide(tested, calibration, share))
    return {
        accuracy: [_point(each, share, accuracy) for share, each in decided.items()]
        for accuracy in accuracies
    }


def _spread(rows: Sequence[Screened], count: int) -> list[Screened]:
    """Some of the rows, from all over the set."""
    step = max(1.0, len(rows) / count)
    return [rows[int(i * step)] for i in range(min(count, len(rows)))]


def _calibrate(labelled: Sequence[Screened]) -> Calibration | None:
    try:
        return fit_calibration(
            LocalJudge(),
            [raw_support(row.verdict) for row in labelled],
            [row.is_supported for row in labelled],
            clusters=[row.cluster for row in labelled],
        )
    except DatasetError:
        return None


async def _decide(
    rows: Sequence[Screened], calibration: Calibration | None, share: float
) -> list[_Decided]:
    """Have a cascade decide claims; what it escalates is left open."""
    cascade = _cascade(rows, calibration, share)
    if cascade is None:
        return [_Decided(is_supported=row.is_supported) for row in rows]
    claims = [str(number) for number in range(len(rows))]
    alone = (await ask(cascade.first, claims, _CONTEXT)).verdicts
    reply = (await cascade.verify_claims(claims, _CONTEXT)).verdicts
    return [
        _Decided(
            is_supported=row.is_supported,
            escalated=by.decided_by == _Second.name,
            right=(own.verdict == "SUPPORTED") == row.is_supported,
            doubt=1.0 - own.confidence,
            calibrated=True,
        )
        for row, own, by in zip(rows, alone.values(), reply, strict=True)
    ]


def _cascade(
    rows: Sequence[Screened], calibration: Calibration | None, share: float
) -> CascadeJudge | None:
    """The cascade, or None where it would accept nothing."""
    if calibration is None:
        return None
    try:
        screen = CalibratedJudge(_Replay(rows), calibration)
        return CascadeJudge(screen, _Second(), escalate=share, audit=0.0)
    except ConfigurationError:  # what it would accept may be a guess
        return None


def _point(decided: Sequence[_Decided], target: float, accuracy: float) -> CurvePoint:
    mean_doubt = sum(each.doubt for each in decided) / len(decided)
    alike = (1.0 - accuracy) / mean_doubt
    plain = [accuracy if each.escalated else float(each.right) for each in decided]
    hard = [
        max(0.0, 1.0 - alike * each.doubt) if each.escalated else float(each.right)
        for each in decided
    ]
    truth = [each.is_supported for each in decided]
    return CurvePoint(
        target=target,
        calls=sum(each.escalated for each in decided) / len(decided),
        accuracy=sum(plain) / len(plain),
        balanced=_balanced(plain, truth),
        balanced_alike=_balanced(hard, truth),
        calibrated=sum(each.calibrated for each in decided) / len(decided),
    )


def _balanced(right: Sequence[float], truth: Sequence[bool]) -> float:
    halves = (
        [value for value, is_supported in zip(right, truth, strict=True) if is_supported == wanted]
        for wanted in (True, False)
    )
    return sum(sum(half) / len(half) for half in halves) / 2.0


def at_calls(points: Sequence[CurvePoint], calls: float, *, alike: bool = False) -> float | None:
    """Balanced accuracy where this share of claims was escalated, between the points on a line.

    None where the cascade did not escalate so little.
    """
    curve = sorted(
        (point.calls, point.balanced_alike if alike else point.balanced) for point in points
    )
    if calls < curve[0][0] - _SLACK:
        return None
    for (left, low), (right, high) in pairwise(curve):
        if calls <= right and right > left:
            return low + (high - low) * max(0.0, calls - left) / (right - left)
    return curve[-1][1]


def reaches(points: Sequence[CurvePoint], *, alike: bool = False) -> bool:
    """Whether the cascade is within 2 points of the second judge alone at 60 % of its calls."""
    cascade, alone = at_calls(points, _AT, alike=alike), at_calls(points, 1.0, alike=alike)
    return cascade is not None and alone is not None and cascade >= alone - _WITHIN
