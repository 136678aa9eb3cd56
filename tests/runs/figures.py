"""Prints how captured cases compare with the truth: `make runs`, with ARGS=NAME for some.

Precision and recall of the evidence, right questions and answers, inventions scored supported, in
total and by shape; then every application that is wrong, and why. `--door spans` reads the spans of
OpenInference's instrumentation in the handler's place, and counts apart the wrong ones of which no
trace holds the whole truth, with the parts that it lacks; `--door recordings` replays the events
that `--record` wrote; `--without RULE` leaves a function of the capture out
(`evidence._PromptSearch._find_truncated`), which shows whether a run needs it.
"""

import argparse
import logging
import sys
from collections import Counter
from contextlib import nullcontext

from harness import FRAMEWORKS, applications, compare, observe
from recordings import record, recordings, replay
from rules import without

DOORS = ("handler", "spans", "recordings")
SHOWN = 6  # faults of an application


class Figures:
    """Means over comparisons: an application that shows 150 texts counts as much as any other."""

    def __init__(self, comparisons):
        self._all = comparisons

    @property
    def values(self):
        """The share of each figure; inventions that were scored supported are a number."""
        return {
            "right": self._share([(1, not each.faults) for each in self._all]),
            "recall": self._share([each.texts for each in self._all]),
            "precision": self._share([each.parts for each in self._all]),
            "question": self._share([(1, each.question) for each in self._all]),
            "answer": self._share([(1, each.answer) for each in self._all]),
            "invented": sum(each.invented[1] for each in self._all),
        }

    @staticmethod
    def _share(pairs):
        shares = [part / whole for whole, part in pairs if whole]
        return sum(shares) / len(shares) if shares else 1.0

    def line(self, name):
        shown = (
            f"{key} {value:.3f}" if isinstance(value, float) else f"{key} {value}"
            for key, value in self.values.items()
        )
        return f"{name:32} {len(self._all):4}  {'  '.join(shown)}"


def shown(comparisons):
    """Those that are right, or whose truth one trace holds."""
    return [each for each in comparisons if not each.lacking]


def compare_all(framework, name="", door="handler"):
    """Run the applications of a framework, those whose name or shape has `name` in it."""
    chosen = [
        application
        for application in applications(framework).values()
        if name in application.name or name in application.shape
    ]
    if door == "recordings":
        recorded = recordings(framework)
        missing = [each.name for each in chosen if each.name not in recorded]
        assert not missing, f"not recorded: {missing}; make runs ARGS=--record"
        return [compare(each, replay(recorded[each.name])) for each in chosen]
    return [compare(each, observe(each, door)) for each in chosen]


def report(framework, comparisons, is_quiet):
    hidden = [each for each in comparisons if each.lacking]
    comparisons = shown(comparisons)
    shapes = {each.app.shape: [] for each in comparisons}
    for each in comparisons:
        shapes[each.app.shape].append(each)
    print(Figures(comparisons).line(framework))
    for shape, group in shapes.items():
        print(Figures(group).line(f"  {shape}"))
    if hidden:
        report_hidden(hidden, is_quiet)
    for each in comparisons:
        if each.faults and not is_quiet:
            print(f"\n{each.app.name} ({each.app.shape})")
            print("\n".join(f"  {fault:.300}" for fault in each.faults[:SHOWN]))
            if len(each.faults) > SHOWN:
                print(f"  and {len(each.faults) - SHOWN} more")


def report_hidden(hidden, is_quiet):
    """Print what became of runs of which the spans lack a part, and the part."""
    reasons = Counter(reason for each in hidden for reason in each.reasons or ["a case"])
    said = ", ".join(f"{reason} {count}" for reason, count in reasons.most_common())
    print(f"  lacking in spans                {len(hidden):4}  {said}")
    for each in hidden if not is_quiet else ():
        print(f"    {', '.join(each.reasons) or 'a case'}: {each.app.name} ({each.app.shape})")
        print(f"      lacks {each.lacking!r:.200}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", default="", help="part of a name or shape")
    parser.add_argument("--framework", choices=FRAMEWORKS, action="append")
    parser.add_argument("--door", choices=DOORS, default="handler")
    parser.add_argument("--record", action="store_true", help="write the recordings anew")
    parser.add_argument("--without", metavar="RULE", help="leave out a function of the capture")
    parser.add_argument("--quiet", action="store_true", help="figures only")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    with without(options.without) if options.without else nullcontext():
        for framework in options.framework or FRAMEWORKS:
            if options.record:
                print(f"{framework}: {record(framework)} applications recorded")
            elif comparisons := compare_all(framework, options.name, options.door):
                report(framework, comparisons, options.quiet)


if __name__ == "__main__":
    sys.exit(main())
