"""Scores a folder of Parquet files with Ray Data: read, scored and written in batches, in parallel.

python ray_data.py SOURCE TARGET [JUDGE]     needs: pip install 'ragaliq[parquet]>=1.0' 'ray[data]'
"""

import sys

import ray

from ragaliq import score_batch

BATCH_ROWS = 256


def backfill(source: str, target: str, *, judge: str = "local") -> None:
    rows = ray.data.read_parquet(source)
    scored = rows.map_batches(
        score_batch,
        fn_kwargs={"judge": judge},
        batch_format="pyarrow",  # Arrow's types as they are, also of a batch without claims
        batch_size=BATCH_ROWS,
    )
    scored.write_parquet(target)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    backfill(sys.argv[1], sys.argv[2], judge=sys.argv[3] if len(sys.argv) > 3 else "local")
    written = ray.data.read_parquet(sys.argv[2])
    statuses = written.groupby("faithfulness_status").count().take_all()
    print({row["faithfulness_status"]: row["count()"] for row in statuses})
