"""Print what a cascade's accuracy would be for its cost, with a second judge of known accuracy.

    python tests/judges/cascade/curves.py DATA_DIR

Labelled claims are screened by the embedded judge, trained without the family of the set, and
calibrated on other claims of the same set. The second judge is made up: right with the same chance
for every claim, or with more errors where the screen is less sure. Figures are expectations over
its errors, so the same claims give the same figures.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.judges.base import ClaimVerdict, VerdictsResult
from ragaliq.judges.calibration import CalibratedJudge, Calibration, fit_calibration, raw_support
from ragaliq.judges.cascade import CascadeJudge
from ragaliq.judges.local import LocalJudge
from ragaliq.judges.local.training.data import FAMILIES, count_words, read_data
from ragaliq.judges.local.training.fitting import train
from ragaliq.judges.local.verdict import examine

__all__ = ["CurvePoint", "Screened", "at_calls", "curve", "main", "reaches", "screened_sets"]


# --- The screen's verdicts --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Screened:
    """A labelled claim and what the screen said.

    Attributes:
        verdict: The screen's, not calibrated.
        is_supported: What people say.
        cluster: The context; claims about one context are never torn apart.
    """

    verdict: ClaimVerdict
    is_supported: bool
    cluster: int


def screened_sets(folder: Path) -> Iterator[tuple[str, list[Screened]]]:
    """Each set with the verdicts of a screen trained without the set's family.

    Args:
        folder: Holds `<set>.jsonl.gz`, or some of them.

    Raises:
        DatasetError: There are not two families, or a file cannot be read.
    """
    present = [
        name
        for names in FAMILIES.values()
        for name in names
        if (folder / f"{name}.jsonl.gz").exists()
    ]
    data = read_data(folder, sets=present)
    for names in FAMILIES.values():
        tested = [name for name in names if name in data]
        others = [name for name in data if name not in names]
        if not others:
            raise DatasetError(f"{folder} holds no two families of sets; see the model card")
        if not tested:
            continue
        frequencies = count_words(data, others).frequencies()
        model, _ = train(data, others, frequencies)
        for name in tested:
            rows = []
            for row in data[name]:
                _, sign, features = examine(row.claim, row.context, frequencies)
                verdict = _verdict(round(model.support(features), 4), contradicted=sign is not None)
                rows.append(Screened(verdict, bool(row.label), id(row.context)))
            yield name, rows


def _verdict(support: float, *, contradicted: bool) -> ClaimVerdict:
    """As the embedded judge puts it."""
    if contradicted:
        return ClaimVerdict(verdict="CONTRADICTED", confidence=round(max(1.0 - support, 0.5), 4))
    if support >= 0.5:
        return ClaimVerdict(verdict="SUPPORTED", confidence=support)
    return ClaimVerdict(verdict="NOT_ENOUGH_INFO", confidence=round(1.0 - support, 4))


# --- Curves -----------------------------------------------------------------------------------

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
        target: Share of claims it was to escalate.
        calls: Share it did escalate.
        balanced: Expected mean of the shares right among supported and among other claims.
        balanced_alike: The same with a second judge that finds the screen's hard claims hard.
    """

    target: float
    calls: float
    balanced: float
    balanced_alike: float


@dataclass(frozen=True, slots=True)
class _Decided:
    is_supported: bool
    escalated: bool = True
    right: bool = False
    doubt: float = 0.5


class _Replay(LocalJudge):
    """The embedded judge with verdicts it gave before; a claim is its number."""

    def __init__(self, rows: Sequence[Screened]) -> None:
        self._rows = rows

    async def verify_claims(self, claims: Sequence[str], context: Sequence[str]) -> VerdictsResult:
        found = (self._rows[int(claim)].verdict for claim in claims)
        return VerdictsResult(
            verdicts=[each.model_copy(update={"index": i}) for i, each in enumerate(found)],
            usage=JudgeUsage(),
        )


class _Second(_Replay):
    """Only takes what is escalated; how often it is right is reckoned afterwards."""

    name = "second"

    def __init__(self) -> None:
        super().__init__(())

    async def verify_claims(self, claims: Sequence[str], context: Sequence[str]) -> VerdictsResult:
        verdicts = [ClaimVerdict(index=i, verdict="NOT_ENOUGH_INFO") for i in range(len(claims))]
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
        step = max(1.0, len(others) / labels)  # labels from all over the set
        labelled = [others[int(i * step)] for i in range(min(labels, len(others)))]
        calibration = _calibrate(labelled)
        for share in shares:
            decided[share] += asyncio.run(_decide(tested, calibration, share))
    return {
        accuracy: [_point(each, share, accuracy) for share, each in decided.items()]
        for accuracy in accuracies
    }


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
    everything = [_Decided(is_supported=row.is_supported) for row in rows]
    if calibration is None:
        return everything
    try:
        screen = CalibratedJudge(_Replay(rows), calibration)
        cascade = CascadeJudge(screen, _Second(), escalate=share, audit=0.0)
    except ConfigurationError:  # what it would accept may be a guess
        return everything
    claims = [str(number) for number in range(len(rows))]
    alone = (await cascade.first.verify_claims(claims, _CONTEXT)).verdicts
    reply = (await cascade.verify_claims(claims, _CONTEXT)).verdicts
    return [
        _Decided(
            is_supported=row.is_supported,
            escalated=by.decided_by == _Second.name,
            right=(own.verdict == "SUPPORTED") == row.is_supported,
            doubt=1.0 - own.confidence,
        )
        for row, own, by in zip(rows, alone, reply, strict=True)
    ]


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
        balanced=_balanced(plain, truth),
        balanced_alike=_balanced(hard, truth),
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


# --- Command ----------------------------------------------------------------------------------

CALLS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0)


def _row(name: str, points: Sequence[CurvePoint], *, alike: bool) -> str:
    found = (at_calls(points, calls, alike=alike) for calls in CALLS)
    cells = ("-" if value is None else f"{100 * value:.1f}" for value in found)
    verdict = "yes" if reaches(points, alike=alike) else "no"
    return f"| {name} | {' | '.join(cells)} | {verdict} |\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the curves."""
    parser = argparse.ArgumentParser(prog="python tests/judges/cascade/curves.py")
    parser.add_argument("data", type=Path, help="folder with <set>.jsonl.gz")
    parser.add_argument("--accuracy", type=float, nargs="+", default=[0.75, 0.787, 0.85])
    parser.add_argument("--labels", type=int, default=200, help="claims to calibrate on")
    options = parser.parse_args(arguments)
    curves = {
        name: curve(rows, options.accuracy, labels=options.labels)
        for name, rows in screened_sets(options.data)
    }
    heads = " | ".join(f"{100 * calls:.0f} %" for calls in CALLS)
    for accuracy in options.accuracy:
        for alike, errs in ((False, "anywhere"), (True, "where the screen is less sure")):
            sys.stdout.write(
                f"\nA second judge that is right in {accuracy:.1%} and errs {errs}:\n\n"
                f"| set | {heads} | within 2 at 60 % |\n|---|{'---|' * (len(CALLS) + 1)}\n"
            )
            for name, points in curves.items():
                sys.stdout.write(_row(name, points[accuracy], alike=alike))
    return 0


if __name__ == "__main__":
    sys.exit(main())
