"""What a guard lets through and blocks, on labelled answers: `make guard-figures DATA=folder`.

DATA holds JSON lines with question, context, claim (the whole answer) and label (1: supported).
"""

import asyncio
import gzip
import json
import sys
from pathlib import Path

from ragaliq import FaithfulnessEvaluator, RAGTestCase, ScoringPolicy
from ragaliq.core.results import Status
from ragaliq.judges.resolve import resolve_judge

ANSWERS = ("begin_dev", "begin_wow_test", "faithdial_audit", "q2_wow")


async def measure(file: Path, judge: str) -> None:
    decider, evaluator = resolve_judge(judge), FaithfulnessEvaluator(policy=ScoringPolicy.LIVE)
    counts = {label: {"passed": 0, "blocked": 0, "unscored": 0} for label in (0, 1)}
    with gzip.open(file, "rt") as lines:
        for line in lines:
            row = json.loads(line)
            case = RAGTestCase(
                query=row["question"] or "?", context=row["context"], response=row["claim"]
            )
            result = await evaluator.evaluate(case, decider)
            if result.status is not Status.SCORED:
                outcome = "unscored"
            else:
                outcome = "passed" if result.passed else "blocked"
            counts[row["label"]][outcome] += 1
    good, bad = counts[1], counts[0]
    totals = sum(good.values()), sum(bad.values())
    print(
        f"{file.name.partition('.')[0]:16} {judge}: of {totals[0]:,} supported answers "
        f"{good['blocked'] / totals[0]:.0%} blocked; of {totals[1]:,} others "
        f"{bad['blocked'] / totals[1]:.0%} blocked, {bad['unscored'] / totals[1]:.0%} unscored"
    )


if __name__ == "__main__":
    folder, judge = Path(sys.argv[1]), (sys.argv[2:] or ["local"])[0]
    for name in ANSWERS:
        asyncio.run(measure(folder / f"{name}.jsonl.gz", judge))
