"""Line 19: what a closed loop of a fast chain pays when every answer is judged."""

import json
import subprocess
import sys
from pathlib import Path
from statistics import median, quantiles

import pytest

PROGRAM = Path(__file__).with_name("closed_loop_program.py")
ROUNDS, SECONDS = 3, 6.0


def latencies(executor):
    """Seconds that each call of the chain took, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-P", str(PROGRAM), executor, str(SECONDS)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.benchmark
@pytest.mark.timeout(300)
def test_judging_every_answer_costs_the_calls_of_a_closed_loop_no_more_than_it_did():
    found = {"none": [], "process": []}
    for _ in range(ROUNDS):
        for executor, cuts in found.items():
            cuts.append(quantiles(latencies(executor), n=20))
    (p25, p95), (judged_p25, judged_p95) = (
        [1e3 * median(cut[place] for cut in cuts) for place in (4, 18)] for cuts in found.values()
    )
    sys.stdout.write(
        f"p25 {p25:.2f} -> {judged_p25:.2f} ms; p95 {p95:.2f} -> {judged_p95:.2f} ms\n"
    )
    # Measured: 2.1 to 2.5 times, and 0.8 to 1.1 of a chain more. The aim is twice: the rest is the
    # wait for the interpreter, which the worker's thread may hold for its switch interval of 5 ms.
    assert judged_p95 < 3 * p95
    assert judged_p25 - p25 < 1.3 * p25
