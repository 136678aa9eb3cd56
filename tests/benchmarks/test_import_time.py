"""Importing the library costs little: applications import it whether they sample or not."""

import subprocess
import sys
from statistics import median

import pytest

PROCESSES = 9
IMPORTS = {
    "pydantic": "import pydantic",
    "ragaliq": "import ragaliq",
    "ragaliq.Monitor": "from ragaliq import Monitor",
    "langchain_core's handler": "from langchain_core.callbacks import BaseCallbackHandler",
    "langchain_ragaliq": "import langchain_ragaliq",
}
TIMED = """
from time import perf_counter
started = perf_counter()
{statement}
print(perf_counter() - started)
"""


def milliseconds(statement):
    """Of one import in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", TIMED.format(statement=statement)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return 1000 * float(done.stdout)


@pytest.mark.benchmark
def test_importing_the_library_takes_less_than_three_times_as_long_as_importing_pydantic(report):
    times = {name: [] for name in IMPORTS}
    for _ in range(PROCESSES):
        for name, statement in IMPORTS.items():
            times[name].append(milliseconds(statement))
    lines = [f"imports in {PROCESSES} fresh processes each: ms, median [least .. most]"]
    for name, found in times.items():
        spread = f"[{min(found):,.0f} .. {max(found):,.0f}]"
        lines.append(f"  {name:26}{median(found):8,.0f}   {spread}")
    ratio = median(times["ragaliq"]) / median(times["pydantic"])
    report([*lines, f"  ragaliq / pydantic: {ratio:.2f}"])
    assert ratio < 3


@pytest.mark.benchmark
def test_a_pytest_run_that_does_not_use_the_plugin_pays_less_than_five_milliseconds(report):
    found = []
    for _ in range(PROCESSES):
        # What pytest has loaded anyway is no cost of the plugin's.
        statement = "import pytest; started = perf_counter(); import ragaliq.pytest_plugin"
        found.append(milliseconds(statement))
    spread = f"[{min(found):.1f} .. {max(found):.1f}]"
    report([f"loading the pytest plugin: {median(found):.1f} ms {spread}"])
    assert median(found) < 5
