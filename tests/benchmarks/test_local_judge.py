"""The embedded judge: milliseconds a claim, claims a second, memory.

Set RAGALIQ_DATA to the folder with the labelled sets to measure on these too.
"""

from __future__ import annotations

import gzip
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ragaliq.judges.local.verification import Verifier

pytestmark = pytest.mark.benchmark

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("RAGALIQ_DATA", ROOT.parent / "shared" / "data"))
REPEATS = 60
CHUNK = 800  # characters
WORDS = (
    "The harbour of Ostend was rebuilt after the storm of 1953 by engineers from Ghent and costs "
    "12 million euros a year to keep, which the council of the town pays from the fees of ships."
).split()
CLAIM = "The harbour of Ostend was rebuilt after the storm of 1953 by engineers from Bruges."


def chunks(number: int, *, seed: int) -> list[str]:
    """Different text each time, so that nothing read before helps."""
    made = []
    for at in range(number):
        words = [f"{word}{(seed + at * 7 + i) % 97}" if i % 5 == 0 else word
                 for i, word in enumerate(WORDS * 5)]  # fmt: skip
        text = " ".join(words)
        made.append(". ".join(text[i : i + 110].strip().capitalize() for i in range(0, 770, 110)))
    return [text[:CHUNK] for text in made]


def milliseconds(number: int) -> float:
    """Median time of one claim against a context never read before."""
    taken = []
    for seed in range(REPEATS):
        context = chunks(number, seed=seed * 101 + number)
        begun = time.process_time()
        Verifier(context).decide(CLAIM)
        taken.append(1000 * (time.process_time() - begun))
    return statistics.median(taken)


def test_a_claim_takes_under_two_milliseconds_and_ten_more_chunks_under_one_each(report):
    milliseconds(4)  # words and parameters are read for the first time
    four, fourteen, twenty_four = milliseconds(4), milliseconds(14), milliseconds(24)
    verifier = Verifier(chunks(4, seed=1))
    begun = time.process_time()
    for _ in range(REPEATS):
        verifier.decide(CLAIM)
    again = 1000 * (time.process_time() - begun) / REPEATS
    report(
        [
            f"one claim, {CHUNK}-character chunks, ms with the reading of the context: "
            f"4 chunks {four:.2f}, 14 chunks {fourteen:.2f}, 24 chunks {twenty_four:.2f}; "
            f"the next claim against the same 4 chunks {again:.2f}"
        ]
    )
    assert four < 2.0
    assert again < 1.0
    # Reading is done once for an answer; deciding must hardly notice the further chunks.
    assert deciding(24) - deciding(14) < 1.0


def deciding(number: int) -> float:
    verifier = Verifier(chunks(number, seed=3))
    verifier.decide(CLAIM)
    taken = []
    for _ in range(REPEATS):
        begun = time.process_time()
        verifier.decide(CLAIM)
        taken.append(1000 * (time.process_time() - begun))
    return statistics.median(taken)


@pytest.mark.skipif(not DATA.is_dir(), reason="the labelled sets are not here")
def test_claims_a_second_on_the_labelled_sets(report):
    lines, claims, seconds = [], 0, 0.0
    for path in sorted(DATA.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as rows:
            asked = [(row["claim"], row["context"]) for row in map(json.loads, rows)]
        begun = time.process_time()
        for claim, context in asked:
            Verifier(context).decide(claim)
        taken = time.process_time() - begun
        lines.append(
            f"{path.name.partition('.')[0]:<18} {len(asked) / taken:>6,.0f} claims a second"
        )
        claims += len(asked)
        seconds += taken
    report([*lines, f"{'all':<18} {claims / seconds:>6,.0f}"])
    assert claims / seconds > 1500


MEMORY = """
import gzip, json, resource, sys
from pathlib import Path
def held():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20
bare = held()
from ragaliq.judges.local.verification import Verifier
for path in sorted(Path(sys.argv[1]).glob("*.jsonl.gz")):
    with gzip.open(path, "rt", encoding="utf-8") as rows:
        for line in rows:
            row = json.loads(line)
            Verifier(row["context"]).decide(row["claim"])
print(held() - bare)
"""


@pytest.mark.skipif(not DATA.is_dir(), reason="the labelled sets are not here")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_above_the_interpreter_after_all_labelled_sets(report):
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(DATA)], capture_output=True, text=True, check=True
    )
    report([f"MiB above the interpreter after every labelled claim: {float(done.stdout):.0f}"])
    assert float(done.stdout) < 120
