"""Scores a CSV file of answers, and says which claims their context does not support.

python offline_csv.py [FILE.csv]
"""

import sys
from pathlib import Path

from ragaliq import evaluate
from ragaliq.datasets import read_cases

FILE = Path(__file__).with_name("answers.csv")

run = evaluate(
    read_cases(sys.argv[1] if len(sys.argv) > 1 else FILE),
    metrics=["faithfulness"],
    judge="local",  # "claude" with ANTHROPIC_API_KEY set
)

for scored in run:
    result = scored.results["faithfulness"]
    print(f"{scored.case.id}: {result.status}, score {result.score}")
    for claim in result.claims:
        if claim.verdict != "SUPPORTED":
            print(f"  {claim.verdict}: {claim.claim}")

for name, summary in run.metrics.items():
    if summary.mean is not None and summary.interval is not None:
        low, high = summary.interval
        print(f"{name}: mean {summary.mean:.2f}, {low:.2f} to {high:.2f}, of {summary.measured}")
