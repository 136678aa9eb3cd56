"""Work that is killed in the middle, again and again."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

pytestmark = pytest.mark.slow

CASE = {
    "query": "When does the shop open?",
    "context": ["The shop opens at 9. " * 20, "Parking is free for customers. " * 20],
    "response": "The shop opens at 9. Parking is free. Parrots juggle seventeen lanterns. " * 4,
}

COMMAND = [sys.executable, "-m", "ragaliq.cli", "evaluate", "cases.jsonl", "--out", "results.jsonl"]


def start(tmp_path, *arguments):
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def wait_for_results(path, running, count):
    """Until the file has so many lines, or the process has ended."""
    while running.poll() is None:
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.01)


def kill_and_resume(tmp_path, cases, kills):
    rows = (json.dumps({"id": str(number)} | CASE) + "\n" for number in range(cases))
    (tmp_path / "cases.jsonl").write_text("".join(rows))
    results = tmp_path / "results.jsonl"
    chance = random.Random(7)
    survived = b""
    for kill in range(kills):
        running = start(tmp_path, *["--resume"] * (kill > 0))
        before = survived.count(b"\n")
        wait_for_results(results, running, before + 2 + chance.randrange(cases // (2 * kills)))
        assert running.poll() is None, "it was done before it could be killed: take more cases"
        os.kill(running.pid, signal.SIGKILL)
        running.wait(10)
        now = results.read_bytes()
        # Nothing that had been judged is judged again or changed.
        assert now.startswith(survived)
        survived = now[: now.rfind(b"\n") + 1]
    assert start(tmp_path, "--resume").wait(500) == 0
    lines = results.read_text().splitlines()[1:]
    return Counter(json.loads(line)["run"]["run_id"] for line in lines)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("cases", "kills"), [(300, 3), pytest.param(10_000, 10, marks=pytest.mark.soak)]
)
def test_a_run_killed_again_and_again_ends_with_each_case_judged_once(tmp_path, cases, kills):
    assert kill_and_resume(tmp_path, cases, kills) == {str(number): 1 for number in range(cases)}


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_end_by_a_signal_keeps_what_was_judged_and_shows_it(tmp_path, sent, code):
    (tmp_path / "cases.jsonl").write_text(
        "".join(json.dumps({"id": str(number)} | CASE) + "\n" for number in range(2000))
    )
    running = subprocess.Popen(
        COMMAND,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_results(tmp_path / "results.jsonl", running, 5)
    running.send_signal(sent)
    shown, said = running.communicate(timeout=60)

    assert running.returncode == code, said
    assert "ragaliq: interrupted" in said
    assert "Traceback" not in said
    kept = (tmp_path / "results.jsonl").read_text().count("\n") - 1
    assert f"{kept:,} judged" in shown
    assert f"{2000 - kept:,} of 2,000 are not done; results are kept in results.jsonl" in said
    assert "--resume" in said
