"""Several processes and one file, forks, and ends of processes."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ragaliq.records.store import read_records

pytestmark = pytest.mark.slow

WRITER = Path(__file__).with_name("writer_process.py")


def start(path, writer, total):
    return subprocess.Popen(
        [sys.executable, str(WRITER), str(path), str(writer), str(total)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )


def run_ids(path):
    return [record.run.run_id for record in read_records(path)]


def test_four_processes_write_to_one_file_and_one_is_killed_in_the_middle(tmp_path):
    path, total = tmp_path / "store.db", 100
    survivors = [start(path, writer, total) for writer in range(3)]
    victim = start(path, 3, 10_000_000)
    confirmed = int([victim.stdout.readline() for _ in range(4)][-1])
    victim.send_signal(signal.SIGKILL)
    confirmed = max([confirmed, *(int(line) for line in victim.stdout.read().split())])
    victim.communicate()
    for survivor in survivors:
        _, errors = survivor.communicate(timeout=100)
        assert survivor.returncode == 0, errors
    ids = run_ids(path)
    assert len(ids) == len(set(ids))
    for writer in range(3):
        assert {f"{writer}-{number}" for number in range(total)} <= set(ids)
    # What the killed process was told is stored is stored; its last batch may be as well.
    of_victim = [name for name in ids if name.startswith("3-")]
    assert len(of_victim) - confirmed in (0, 5)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


RUN_AND_EXIT = """
from ragaliq import Monitor, RAGTestCase
monitor = Monitor(sinks=["sqlite:///store.db"])
for number in range(20):
    monitor.submit(RAGTestCase(id=str(number), query="q", context=["A b."], response="A b."))
"""

FORK = """
import os, sys
from ragaliq import Monitor, RAGTestCase

def submit(name):
    monitor.submit(RAGTestCase(id=name, query="q", context=["A b."], response="A b."))
    assert monitor.flush(20.0)

monitor = Monitor(sinks=["sqlite:///store.db"])
submit("before")
children = []
for number in range(3):
    child = os.fork()
    if child == 0:
        submit(f"child-{number}")
        assert monitor.stats().sinks["sqlite"].records == 1
        os._exit(0)
    children.append(child)
    submit(f"parent-{number}")
for child in children:
    _, status = os.waitpid(child, 0)
    assert status == 0, status
assert monitor.stats().sinks["sqlite"].written == 4
assert monitor.close(20.0)
"""


def run_script(code, folder):
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_results_are_stored_when_a_script_simply_ends(tmp_path):
    done = run_script(RUN_AND_EXIT, tmp_path)
    assert len(run_ids(tmp_path / "store.db")) == 20
    # A busy machine takes more than the two seconds after which the wait is explained.
    assert [line for line in done.stderr.splitlines() if "Ctrl-C ends it now" not in line] == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forked_children_and_their_parent_write_to_the_same_store(tmp_path):
    run_script(FORK, tmp_path)
    assert sorted(run_ids(tmp_path / "store.db")) == [
        "before",
        *(f"child-{number}" for number in range(3)),
        *(f"parent-{number}" for number in range(3)),
    ]
