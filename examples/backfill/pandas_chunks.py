"""Scores a Parquet file without an engine: a process a core, a row group at a time.

A row group becomes a file of the target folder as soon as it is scored. Started again, it goes on
with those that are missing: nothing is judged, or paid for, twice.

python pandas_chunks.py SOURCE.parquet TARGET_FOLDER [JUDGE]     needs: 'ragaliq[parquet]' pandas
"""

import os
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import pandas as pd
from pyarrow import parquet

from ragaliq import score_batch


def score_group(source: str, group: int, target: Path, judge: str) -> Counter[str]:
    with parquet.ParquetFile(source) as file:
        frame: pd.DataFrame = file.read_row_group(group).to_pandas()
    scored = score_batch(frame, judge=judge)
    # Under its name only when it is whole: a run that was interrupted leaves no half part.
    unfinished = target.with_suffix(".unfinished")
    scored.to_parquet(unfinished, index=False)
    unfinished.replace(target)
    return Counter(scored["faithfulness_status"])


def backfill(
    source: str, folder: str, *, judge: str = "local", processes: int | None = None
) -> Counter[str]:
    Path(folder).mkdir(parents=True, exist_ok=True)
    groups = parquet.read_metadata(source).num_row_groups
    targets = {group: Path(folder) / f"part-{group:06}.parquet" for group in range(groups)}
    missing = {group: target for group, target in targets.items() if not target.exists()}
    print(f"{groups} row groups, {groups - len(missing)} of them scored already")
    counts: Counter[str] = Counter()
    with ProcessPoolExecutor(processes or os.cpu_count(), get_context("spawn")) as pool:
        jobs = [
            pool.submit(score_group, source, group, target, judge)
            for group, target in missing.items()
        ]
        for job in as_completed(jobs):
            counts += job.result()
    return counts


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    chosen = sys.argv[3] if len(sys.argv) > 3 else "local"
    print(dict(backfill(sys.argv[1], sys.argv[2], judge=chosen)))
