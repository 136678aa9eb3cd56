"""Print what a cascade's accuracy would be for its cost, with a second judge of known accuracy.

    python tests/judges/cascade/curves.py DATA_DIR

Labelled claims are screened by the embedded judge, trained without the family of the set, and
calibrated on other claims of the same set. The second judge is made up: right with the same chance
for every claim, or with more errors where the screen is less sure. Figures are expectations over
its errors, so the same claims give the same figures.
"""

import argparse
import asyncio
import sys
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.judges.base import ClaimVerdict, VerdictsResult
from ragaliq.judges.calibration import CalibratedJudge, raw_support
from ragaliq.judges.cascade import CascadeJudge
from ragaliq.judges.local import LocalJudge
from ragaliq.judges.local.verdict import decide
from ragaliq.lab.calibration import fit_calibration
from ragaliq.testing import ScriptedJudge
from training.data import FAMILIES, count_words, read_data
from training.fitting import train

SHARES = (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0)
CALLS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0)
_PARTS = 4
_SLACK = _WITHIN = 0.02
_AT = 0.6


class Screened(NamedTuple):
    """A labelled claim, what the screen said before it was calibrated, and the claim's context."""

    verdict: ClaimVerdict
    is_supported: bool
    cluster: int  # claims about one context are never torn apart


def screened_sets(folder):
    """Each set of `<set>.jsonl.gz` with the verdicts of a screen trained without its family.

    Raises:
        DatasetError: There are not two families, or a file cannot be read.
    """
    listed = [name for names in FAMILIES.values() for name in names]
    data = read_data(
        folder, sets=[each for each in listed if (folder / f"{each}.jsonl.gz").exists()]
    )
    for names in FAMILIES.values():
        tested = [name for name in names if name in data]
        others = [name for name in data if name not in names]
        if not others:
            raise DatasetError(f"{folder} holds no two families of sets; see Benchmarks")
        if not tested:
            continue
        parameters, _ = train(data, others, count_words(data, others))
        for name in tested:
            rows = []
            for row in data[name]:
                verdict = decide(row.claim, row.context, parameters)
                rows.append(Screened(verdict, bool(row.label), id(row.context)))
            yield name, rows


class CurvePoint(NamedTuple):
    """A cascade on one set.

    Attributes:
        calls: Share of claims it escalated.
        balanced: Expected mean of the shares right among supported and among other claims.
        balanced_alike: The same with a second judge that finds the screen's hard claims hard.
    """

    calls: float
    balanced: float
    balanced_alike: float


class _Decided(NamedTuple):
    is_supported: bool
    escalated: bool = True
    right: bool = False
    doubt: float = 0.5


class _Replay(LocalJudge):
    """The embedded judge with verdicts it gave before; a claim is its number."""

    def __init__(self, rows):
        self._rows = rows

    async def verify_claims(self, claims, context):
        found = (self._rows[int(claim)].verdict for claim in claims)
        return VerdictsResult(
            verdicts=[each.model_copy(update={"index": i}) for i, each in enumerate(found)]
        )


def curve(rows, accuracies, *, labels):
    """Points by the second judge's accuracy, which is that for supported and other claims alike.

    The set is cut in four by context; for each part the screen is calibrated on so many labels of
    the other three. Where that is refused, the cascade escalates everything, as it does in use.
    """
    clusters = {cluster: i for i, cluster in enumerate(dict.fromkeys(row.cluster for row in rows))}
    part_of = [clusters[row.cluster] % _PARTS for row in rows]
    decided = {share: [] for share in SHARES}
    for part in range(_PARTS):
        others = [row for row, own in zip(rows, part_of, strict=True) if own != part]
        tested = [row for row, own in zip(rows, part_of, strict=True) if own == part]
        step = max(1.0, len(others) / labels)  # labels from all over the set
        labelled = [others[int(i * step)] for i in range(min(labels, len(others)))]
        calibration = _calibrate(labelled)
        for share in SHARES:
            decided[share] += asyncio.run(_decide(tested, calibration, share))
    return {
        accuracy: [_point(each, accuracy) for each in decided.values()] for accuracy in accuracies
    }


def _calibrate(labelled):
    try:
        return fit_calibration(
            LocalJudge(),
            [raw_support(row.verdict) for row in labelled],
            [row.is_supported for row in labelled],
            clusters=[row.cluster for row in labelled],
        )
    except DatasetError:
        return None


async def _decide(rows, calibration, share):
    """Have a cascade decide claims; what it escalates is left open."""
    everything = [_Decided(is_supported=row.is_supported) for row in rows]
    if calibration is None:
        return everything
    try:
        screen = CalibratedJudge(_Replay(rows), calibration)
        # It only takes what is escalated; how often it is right is reckoned afterwards.
        second = ScriptedJudge(verdicts="NOT_ENOUGH_INFO")
        cascade = CascadeJudge(screen, second, escalate=share, audit=0.0)
    except ConfigurationError:  # what it would accept may be a guess
        return everything
    claims = [str(number) for number in range(len(rows))]
    alone = (await cascade.first.verify_claims(claims, ["-"])).verdicts
    reply = (await cascade.verify_claims(claims, ["-"])).verdicts
    return [
        _Decided(
            is_supported=row.is_supported,
            escalated=by.decided_by == second.name,
            right=(own.verdict == "SUPPORTED") == row.is_supported,
            doubt=1.0 - own.confidence,
        )
        for row, own, by in zip(rows, alone, reply, strict=True)
    ]


def _point(decided, accuracy):
    mean_doubt = sum(each.doubt for each in decided) / len(decided)
    alike = (1.0 - accuracy) / mean_doubt
    plain = [accuracy if each.escalated else float(each.right) for each in decided]
    hard = [
        max(0.0, 1.0 - alike * each.doubt) if each.escalated else float(each.right)
        for each in decided
    ]
    truth = [each.is_supported for each in decided]
    calls = sum(each.escalated for each in decided) / len(decided)
    return CurvePoint(calls, _balanced(plain, truth), _balanced(hard, truth))


def _balanced(right, truth):
    halves = (
        [value for value, is_supported in zip(right, truth, strict=True) if is_supported == wanted]
        for wanted in (True, False)
    )
    return sum(sum(half) / len(half) for half in halves) / 2.0


def at_calls(points, calls, *, alike):
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


def _row(name, points, *, alike):
    found = [at_calls(points, calls, alike=alike) for calls in CALLS]
    cells = ("-" if value is None else f"{100 * value:.1f}" for value in found)
    cascade, alone = found[CALLS.index(_AT)], found[-1]
    reaches = cascade is not None and alone is not None and cascade >= alone - _WITHIN
    return f"| {name} | {' | '.join(cells)} | {'yes' if reaches else 'no'} |\n"


def main(arguments=None):
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
