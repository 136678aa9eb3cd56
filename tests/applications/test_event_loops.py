"""Line 1: nothing blocks an event loop, in processes where that raises.

`langgraph_server` does the same with the real server.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("blockbuster")

_PROGRAM = Path(__file__).with_name("blocking_program.py")


@pytest.mark.parametrize("kind", ["langgraph", "strict"])
@pytest.mark.parametrize("executor", ["thread", "process"])
def test_nothing_of_ours_blocks_an_event_loop(executor, kind, tmp_path):
    done = subprocess.run(
        [sys.executable, "-P", str(_PROGRAM), executor, kind],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "flushed": True,
        "outcomes": {"evaluated": 5 + 1},
        "executor": executor,
        "callback_errors": 0,
        "scores": [1.0, 1.0],
        "written": [6, 1],
        "blocking": [],
    }
    assert len((tmp_path / "results.txt").read_text("utf-8").splitlines()) == 6


_WITHOUT_CONTEXT = """
import sys
from blockbuster import BlockBuster
from ragaliq import Monitor, RAGTestCase

BlockBuster(scanned_modules=["ragaliq"]).activate()
sys.executable = "/nowhere/python"
monitor = Monitor(judge="local", executor=sys.argv[1])
monitor.submit(RAGTestCase(query="When?", context=[], response="Within five days."))
assert monitor.flush(30)
print(monitor.stats().outcomes)
"""


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_nor_does_a_first_run_that_the_judge_need_not_be_asked_about(executor, tmp_path):
    done = subprocess.run(
        [sys.executable, "-P", "-c", _WITHOUT_CONTEXT, executor],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.stdout.strip() == "{'no_context': 1}", done.stderr
    if executor == "process":
        assert "FileNotFoundError in _execute_child()" in done.stderr
        assert "set executor='thread'" in done.stderr
