"""The embedded judge: milliseconds a claim, claims a second, memory.

Set RAGALIQ_DATA to the folder with the labelled sets to measure on these too.
"""

import asyncio
import gzip
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from ragaliq.judges import LocalJudge

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
ANSWER = [CLAIM, "It costs 12 million euros a year.", "The council pays from the fees of ships."]


def chunks(number: int, *, seed: int) -> list[str]:
    """Different text each time, so that nothing read before helps."""
    made = []
    for at in range(number):
        words = Random(f"{seed} {at}").choices(WORDS, k=CHUNK)
        sentences = (" ".join(words[i : i + 18]).capitalize() for i in range(0, CHUNK, 18))
        made.append(". ".join(sentences)[:CHUNK])
    return made


def milliseconds(contexts: list[list[str]], *, claims: Sequence[str] = (CLAIM,)) -> float:
    """Median time of a claim against each context, of an answer with these claims."""
    judge, taken = LocalJudge(), []

    async def decide_all():
        for context in contexts:
            begun = time.process_time()
            await judge.verify_claims(claims, context)
            taken.append(1000 * (time.process_time() - begun) / len(claims))

    asyncio.run(decide_all())
    return statistics.median(taken)


def test_ten_more_chunks_cost_a_claim_in_proportion(report):
    numbers = (4, 14, 24)
    pool = chunks(60, seed=1)
    # What is asked of each number of chunks: contexts, claims.
    asked = {
        "one claim against chunks never read before": lambda number: (
            [chunks(number, seed=seed * 101) for seed in range(REPEATS)],
            [CLAIM],
        ),
        "the same, one of an answer's three claims": lambda number: (
            [chunks(number, seed=seed * 103) for seed in range(REPEATS)],
            ANSWER,
        ),
        "against a new choice of chunks read before": lambda number: (
            [pool[start : start + number] for start in range(36)],
            [CLAIM],
        ),
        "against the same chunks as the claim before": lambda number: (
            [pool[:number]] * REPEATS,
            [CLAIM],
        ),
    }
    found = {}
    for name, contexts_of in asked.items():
        milliseconds([pool], claims=contexts_of(4)[1])  # words and parameters are read
        found[name] = {}
        for number in numbers:
            contexts, claims = contexts_of(number)
            found[name][number] = milliseconds(contexts, claims=claims)
    report(
        f"{name}, chunks of {CHUNK} characters, ms: "
        + ", ".join(f"{number} chunks {value:.2f}" for number, value in taken.items())
        + f"; ten more {taken[14] - taken[4]:.2f}"
        for name, taken in found.items()
    )
    fresh, *others = found.values()
    assert fresh[14] - fresh[4] < 2.5 * fresh[4]
    assert all(taken[14] - taken[4] < 1.5 * fresh[4] for taken in others)


async def decide_each(asked):
    judge = LocalJudge()
    for claim, context in asked:
        await judge.verify_claim(claim, context)


@pytest.mark.skipif(not DATA.is_dir(), reason="the labelled sets are not here")
def test_claims_a_second_on_the_labelled_sets(report):
    lines, claims, seconds, rates = [], 0, 0.0, {}
    for path in sorted(DATA.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as rows:
            asked = [(row["claim"], row["context"]) for row in map(json.loads, rows)]
        begun = time.process_time()
        asyncio.run(decide_each(asked))
        taken = time.process_time() - begun
        name = path.name.partition(".")[0]
        rates[name] = len(asked) / taken
        lines.append(f"{name:<18} {rates[name]:>6,.0f} claims a second")
        claims += len(asked)
        seconds += taken
    report([*lines, f"{'all':<18} {claims / seconds:>6,.0f}"])
    assert rates["wice_claim_dev"] > 0.3 * claims / seconds  # new text with every claim


MEMORY = """
import asyncio, gzip, json, resource, sys
from pathlib import Path
def held():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20
bare = held()
from ragaliq.judges import LocalJudge
async def main():
    for path in sorted(Path(sys.argv[1]).glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as rows:
            for row in map(json.loads, rows):
                await LocalJudge().verify_claim(row["claim"], row["context"])
asyncio.run(main())
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
