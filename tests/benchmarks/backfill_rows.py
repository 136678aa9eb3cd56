"""Rows as a question-answering service writes them: four chunks of about 800 characters, an answer.

Run as a script it scores some of them in a process of its own and prints what that took, as JSON;
with --jsonl it prints the rows themselves, for `ragaliq estimate`.
"""

import argparse
import json
import re
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

CORPUS = Path(__file__).parents[2] / "examples" / "demo" / "corpus"
CHUNK = 800  # characters
CHUNKS = 4
QUESTION = "What does the shop promise about bikes, batteries and repairs?"


def sentences() -> list[str]:
    """Every sentence of the demo's handbook."""
    text = " ".join(
        line
        for path in sorted(CORPUS.glob("*.md"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line and not line.startswith(("#", "|", "-"))
    )
    return [part for part in re.split(r"(?<=[.!?]) +", text) if 20 < len(part) < 300]


def rows(number: int, *, pool: int | None = None) -> Iterator[dict[str, object]]:
    """Rows that differ; answers of three claims, two of them from the context.

    Args:
        number: How many.
        pool: Chunks there are in all, as of a knowledge base that is asked again and again; by
            default every row has chunks of its own.
    """
    said = sentences()
    known = [_chunk(said, Random(f"chunk {i}")) for i in range(pool or 0)]
    for at in range(number):
        random = Random(f"row {at}")
        chunks = (
            random.sample(known, CHUNKS) if known else [_chunk(said, random) for _ in range(CHUNKS)]
        )
        answer = [random.choice(chunk) for chunk in chunks[:2]] + [random.choice(said)]
        yield {
            "question": QUESTION,
            "answer": " ".join(answer),
            "contexts": [" ".join(chunk) for chunk in chunks],
        }


def _chunk(said: list[str], random: Random) -> list[str]:
    chosen: list[str] = []
    while sum(map(len, chosen)) < CHUNK:
        chosen.append(random.choice(said))
    return chosen


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--rows", type=int, default=2000)
    options.add_argument("--batch", type=int, default=256)
    options.add_argument("--pool", type=int)
    options.add_argument("--no-claims", action="store_true")
    options.add_argument("--jsonl", action="store_true")
    chosen = options.parse_args()
    if chosen.jsonl:
        for row in rows(chosen.rows, pool=chosen.pool):
            sys.stdout.write(f"{json.dumps(row)}\n")
    else:
        sys.stdout.write(f"{json.dumps(measure(chosen))}\n")


def measure(chosen: argparse.Namespace) -> dict[str, float]:
    """Score the rows batch by batch."""
    import pyarrow as pa

    table = pa.Table.from_pylist(list(rows(chosen.rows, pool=chosen.pool)))
    before = _megabytes()
    from ragaliq import score_batch

    measured = ["faithfulness", "relevance"]
    score_batch(table.slice(0, 8), metrics=measured)
    loaded = _megabytes()
    begun, cpu = time.perf_counter(), time.process_time()
    claims = added = 0
    for batch in table.to_batches(max_chunksize=chosen.batch):
        scored = score_batch(batch, metrics=measured, claims=not chosen.no_claims)
        if not chosen.no_claims:
            claims += len(scored.column("faithfulness_claims").flatten())
        added += scored.nbytes - batch.nbytes
    return {
        "rows": chosen.rows,
        "claims": claims,
        "seconds": time.perf_counter() - begun,
        "cpu_seconds": time.process_time() - cpu,
        "megabytes_before": before,
        "megabytes_loaded": loaded,
        "megabytes_peak": _megabytes(),
        "row_bytes": table.nbytes / chosen.rows,
        "added_bytes": added / chosen.rows,
    }


if __name__ == "__main__":
    main()
