"""The backfill without an engine: whole, in parts, and gone on with after an interruption."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from ragaliq import score_batch

SCRIPT = Path(__file__).parents[2] / "examples" / "backfill" / "pandas_chunks.py"
NUMBER, GROUP = 60, 20

pytestmark = pytest.mark.slow  # each process of the pool loads pandas


@pytest.fixture
def table(rows):
    return pa.Table.from_pylist([rows[i % 3] | {"note": i} for i in range(NUMBER)])


@pytest.fixture
def backfill(table, tmp_path):
    parquet.write_table(table, tmp_path / "answers.parquet", row_group_size=GROUP)

    def run():
        done = subprocess.run(
            [sys.executable, str(SCRIPT), "answers.parquet", "scored"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    return run


def written(folder):
    return [
        row for part in sorted(folder.iterdir()) for row in parquet.read_table(part).to_pylist()
    ]


def test_every_row_is_scored_once_and_only_what_is_missing_is_scored_again(
    backfill, table, tmp_path
):
    expected = score_batch(table).to_pylist()
    printed = backfill()
    assert printed[0] == "3 row groups, 0 of them scored already"
    assert printed[1].count("20") == 3  # scored, bad_row, no_claims
    assert written(tmp_path / "scored") == expected
    first, second, third = sorted((tmp_path / "scored").iterdir())
    kept = [first.stat().st_mtime_ns, third.stat().st_mtime_ns]
    second.rename(second.with_suffix(".unfinished"))  # as an interrupted run leaves it
    assert backfill()[0] == "3 row groups, 2 of them scored already"
    assert [first.stat().st_mtime_ns, third.stat().st_mtime_ns] == kept
    assert written(tmp_path / "scored") == expected
