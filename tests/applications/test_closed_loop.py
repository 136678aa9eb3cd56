"""Line 19: what a closed loop of a fast chain pays when every answer is judged."""

import json
import subprocess
import sys
from pathlib import Path
from statistics import median, quantiles

import pytest

PROGRAM = Path(__file__).with_name("closed_loop_program.py")
ROUNDS, SECONDS = 7, 3.0


def latencies(niceness):
    """Seconds that each call of the chain took, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-P", str(PROGRAM), niceness, str(SECONDS)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.benchmark
@pytest.mark.timeout(300)
def test_judging_every_answer_at_most_doubles_the_slowest_calls_of_a_closed_loop():
    found = {"none": [], "10": [], "19": []}
    for _ in range(ROUNDS):
        for niceness, cuts in found.items():
            cuts.append(quantiles(latencies(niceness), n=20))
    quarter, slowest = (
        {niceness: median(cut[place] for cut in cuts) for niceness, cuts in found.items()}
        for place in (4, 18)
    )
    for niceness in found:
        times = slowest[niceness] / slowest["none"]
        sys.stdout.write(
            f"{niceness}: p25 {quarter[niceness] * 1e3:.2f} ms, "
            f"p95 {slowest[niceness] * 1e3:.2f} ms, {times:.2f} times\n"
        )
    # A process of niceness 10 is not interrupted before its time slice ends; see `serve`.
    assert slowest["19"] < 2 * slowest["none"]
    assert slowest["10"] < 3 * slowest["none"]
    # What is left is the wait for the interpreter, which the worker's thread holds.
    assert quarter["19"] - quarter["none"] < 1.2 * quarter["none"]
