"""The recipes on real engines: every row comes out as `score_batch` scores the whole table."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

from ragaliq import score_batch

pytestmark = [pytest.mark.backfill, pytest.mark.timeout(300)]

FOLDER = Path(__file__).parents[2] / "examples" / "backfill"
NUMBER = 900

OVER_ARROW = """
import sys
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType
from ragaliq import score_batch, score_batch_schema

spark = SparkSession.builder.getOrCreate()
rows = spark.read.parquet(sys.argv[1])
schema = StructType([*rows.schema.fields, *from_arrow_schema(score_batch_schema()).fields])
rows.mapInArrow(lambda batches: map(score_batch, batches), schema=schema).write.parquet(sys.argv[2])
"""

IN_ACTORS = """
import sys
import ray
from ragaliq import LocalJudge, score_batch

class Score:
    def __init__(self):
        self.judge = LocalJudge()

    def __call__(self, batch):
        return score_batch(batch, judge=self.judge)

ray.init(num_cpus=2)  # one for the actor, one for reading
rows = ray.data.read_parquet(sys.argv[1])
one = ray.data.ActorPoolStrategy(size=1)
scored = rows.map_batches(Score, batch_format="pandas", batch_size=64, compute=one)
scored.write_parquet(sys.argv[2])
"""


@pytest.fixture
def table(rows):
    scored, bad, thanks = rows
    # The first file has no claim at all: no batch may give the columns other types.
    first = [thanks | {"note": i} for i in range(300)]
    second = [(scored, bad, thanks)[i % 3] | {"note": i} for i in range(300, NUMBER)]
    return pa.Table.from_pylist(first + second, schema=pa.Table.from_pylist(rows).schema)


@pytest.fixture
def source(table, tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    parquet.write_table(table.slice(0, 300), folder / "a.parquet", row_group_size=50)
    parquet.write_table(table.slice(300), folder / "b.parquet", row_group_size=100)
    return folder


def run(*arguments, cwd):
    environment = {
        **os.environ,
        "RAY_USAGE_STATS_ENABLED": "0",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def written(folder):
    files = sorted(folder.rglob("*.parquet"))
    rows = dataset.dataset(files, schema=parquet.read_schema(files[0])).to_table().to_pylist()
    return sorted(rows, key=lambda row: row["note"])


@pytest.mark.parametrize("recipe", ["ray_data.py", "spark.py"])
def test_an_engine_scores_every_row_once_as_one_call_would(recipe, source, table, tmp_path):
    said = run(FOLDER / recipe, source, tmp_path / "target", cwd=tmp_path)
    counts = {"scored": 200, "bad_row": 200, "no_claims": 500}
    assert all(f"'{status}': {count}" in said for status, count in counts.items()), said
    assert written(tmp_path / "target") == score_batch(table).to_pylist()


@pytest.mark.parametrize("script", [OVER_ARROW, IN_ACTORS], ids=["arrow on spark", "actors of ray"])
def test_other_ways_of_handing_over_batches_give_the_same(script, source, table, tmp_path):
    run("-c", script, source, tmp_path / "target", cwd=tmp_path)
    assert written(tmp_path / "target") == score_batch(table).to_pylist()
