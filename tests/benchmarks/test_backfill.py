"""Scoring tables with the embedded judge: processor time and memory, in a process of its own."""

import json
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.benchmark

SCRIPT = Path(__file__).with_name("backfill_rows.py")
ROWS, REPEATS = 2000, 3
SETTINGS = {
    "batches of 256": [],
    "batches of 32": ["--batch", "32"],
    "batches of 2,000": ["--batch", "2000"],
    "500 chunks in all": ["--pool", "500"],
    "without claims": ["--no-claims"],
}


def measured(arguments):
    command = [sys.executable, str(SCRIPT), "--rows", str(ROWS), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_a_row_takes_under_twenty_milliseconds_and_a_batch_little_memory(report):
    # One after the other, so that what else the machine does falls on all alike.
    runs = [{name: measured(a) for name, a in SETTINGS.items()} for _ in range(REPEATS)]
    middle = {
        name: {figure: statistics.median(run[name][figure] for run in runs) for figure in one}
        for name, one in runs[0].items()
    }
    milliseconds = {name: 1000 * m["cpu_seconds"] / ROWS for name, m in middle.items()}
    lines = [
        f"score_batch, local judge, {ROWS} rows of {m['row_bytes']:.0f} bytes, {name}: "
        f"{milliseconds[name]:.1f} ms of processor time a row ({1000 / milliseconds[name]:.0f} "
        f"rows/s a process), loaded {m['megabytes_loaded']:.0f} MB, scoring "
        f"+{m['megabytes_peak'] - m['megabytes_loaded']:.0f} MB, {m['added_bytes']:.0f} bytes "
        "added a row"
        for name, m in middle.items()
    ]
    report(lines)
    assert max(milliseconds.values()) < 20
    usual = middle["batches of 256"]
    assert usual["megabytes_peak"] - usual["megabytes_loaded"] < 64
