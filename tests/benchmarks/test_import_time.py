"""A pytest run that does not use the plugin pays little for it; other imports: `test_ratios`."""

import subprocess
import sys
from statistics import median

import pytest

PROCESSES = 9
TIMED = """
import pytest
from time import perf_counter
started = perf_counter()
import ragaliq.pytest_plugin
print(perf_counter() - started)
"""


@pytest.mark.benchmark
def test_a_pytest_run_that_does_not_use_the_plugin_pays_less_than_five_milliseconds(report):
    found = []
    for _ in range(PROCESSES):
        # What pytest has loaded anyway is no cost of the plugin's.
        done = subprocess.run(
            [sys.executable, "-c", TIMED], capture_output=True, text=True, check=True, timeout=60
        )
        found.append(1000 * float(done.stdout))
    spread = f"[{min(found):.1f} .. {max(found):.1f}]"
    report([f"loading the pytest plugin: {median(found):.1f} ms {spread}"])
    assert median(found) < 5
