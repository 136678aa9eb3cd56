"""Print what a cascade's accuracy would be for its cost, with a second judge of known accuracy.

    python -m ragaliq.judges.cascade.simulation DATA_DIR

screens labelled claims with the embedded judge, trained without the family of the set, calibrates
it on other claims of the same set, and lets a made-up judge decide what is escalated; see `curves`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ragaliq.judges.cascade.curves import CurvePoint, at_calls, curve, reaches
from ragaliq.judges.cascade.left_out import screened_sets

__all__ = ["main"]

CALLS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0)


def _row(name: str, points: Sequence[CurvePoint], *, alike: bool) -> str:
    found = (at_calls(points, calls, alike=alike) for calls in CALLS)
    cells = ("-" if value is None else f"{100 * value:.1f}" for value in found)
    verdict = "yes" if reaches(points, alike=alike) else "no"
    return f"| {name} | {' | '.join(cells)} | {verdict} |\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the curves."""
    parser = argparse.ArgumentParser(prog="python -m ragaliq.judges.cascade.simulation")
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
