"""Start, exit and fork of applications whose monitor has a process to judge in."""

import gc
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from ragaliq import LocalJudge, Monitor

pytestmark = pytest.mark.slow

# At the top level and without a guard, as scripts and notebooks are written.
APPLICATION = """
import os, signal, sys, threading, time
from ragaliq import Monitor, RAGTestCase

os.write(1, b"started\\n")
case = RAGTestCase(query="q", context=["Alpha is one."], response="Alpha is one.")
def said(result):
    os.write(1, f"{result.case.id} {result.results['faithfulness'].status}\\n".encode())
monitor = Monitor(judge="local", executor="process", on_result=said)
def submit(name):
    assert monitor.submit(case.model_copy(update={"id": name}))
def child():
    return monitor._scorer._processes[0]._child
"""

WAYS = {
    "-c": lambda code, folder: (["-c", code], None),
    "script": lambda code, folder: ([str(write(folder, code))], None),
    "standard input": lambda code, folder: (["-"], code),
}


def write(folder, code):
    path = folder / "app.py"
    path.write_text(code)
    return path


def run(code, folder, way="-c"):
    arguments, given = WAYS[way](APPLICATION + textwrap.dedent(code), folder)
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        input=given,
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("way", WAYS)
def test_an_application_without_a_main_guard_runs_once_and_loses_nothing(tmp_path, way):
    done = run("submit('a'); submit('b')", tmp_path, way)
    assert sorted(done.stdout.splitlines()) == ["a scored", "b scored", "started"]
    # A busy machine starts the judge so slowly that the end of the process says what it waits for.
    said = [line for line in done.stderr.splitlines() if "waits for 2 runs" not in line]
    assert (done.returncode, said) == (0, [])


def test_exit_waits_no_longer_than_its_limit_for_a_process_that_hangs(tmp_path, has_ended):
    done = run(
        """
        submit("first"); assert monitor.flush(30)
        monitor.exit_timeout = 0.1
        os.kill(child().pid, signal.SIGSTOP)
        submit("never")
        os.write(1, f"{child().pid}\\n".encode())
        """,
        tmp_path,
    )
    assert done.returncode == 0
    assert done.stderr.startswith("lost at the end of the process: 1 runs not evaluated")
    assert "never" not in done.stdout
    assert has_ended(int(done.stdout.split()[-1]))


@pytest.mark.parametrize("at_work", [False, True])
def test_an_application_that_is_killed_leaves_no_process_behind(tmp_path, has_ended, at_work):
    # All answers take many times as long to judge as the test may take.
    done = run(
        f"""
        submit("first"); assert monitor.flush(30)
        if {at_work}:
            for _ in range(300):
                monitor.submit(RAGTestCase(
                    query="q", context=["One is two. " * 9] * 99, response="Beta is 7. " * 300
                ))
            while not child()._waiting:
                time.sleep(0.001)
        os.write(1, f"{{child().pid}}\\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        tmp_path,
    )
    assert done.returncode == -signal.SIGKILL
    assert has_ended(int(done.stdout.split()[-1]))


def test_a_forked_process_starts_its_own_and_holds_nothing_of_the_parents(tmp_path, has_ended):
    done = run(
        """
        submit("parent"); assert monitor.flush(30)
        mine = child().pid
        if os.fork() == 0:
            assert monitor.stats().started == 0
            submit("forked"); assert monitor.flush(30)
            assert child().pid != mine
            os.kill(os.getppid(), signal.SIGKILL)
            handle = os.pidfd_open(mine) if os.path.exists(f"/proc/{mine}") else None
            import select
            gone = handle is None or select.select([handle], [], [], 10)[0]
            os.write(1, b"parent's ended\\n" if gone else b"parent's lives on\\n")
            submit("still"); assert monitor.flush(30)
            assert monitor.stats().restarts == 0
            monitor.close(5)
            os._exit(0)
        signal.pause()
        """,
        tmp_path,
    )
    assert done.stdout.splitlines() == [
        "started",
        "parent scored",
        "forked scored",
        "parent's ended",
        "still scored",
    ]
    assert done.stderr == ""


def test_the_parent_goes_on_after_a_fork(tmp_path):
    done = run(
        """
        submit("before"); assert monitor.flush(30)
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        submit("after"); assert monitor.flush(30)
        assert monitor.stats().restarts == 0
        """,
        tmp_path,
    )
    assert done.stdout.splitlines() == ["started", "before scored", "after scored"]
    assert (done.returncode, done.stderr) == (0, "")


def test_closing_ends_the_process(judging, child_of, has_ended):
    monitor, _ = judging
    pid = child_of(monitor).pid
    assert monitor.close(5.0)
    assert has_ended(pid)
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)  # nor is there a zombie


def test_a_forgotten_monitor_leaves_it_to_the_next_one_and_it_ends_when_none_comes(
    claims, child_of, has_ended, monkeypatch
):
    def judged_in():
        monitor = Monitor(judge="local", executor="process", niceness=7)
        monitor.submit(claims)
        assert monitor.flush(60.0)
        return child_of(monitor).pid

    monkeypatch.setattr("ragaliq.live.monitor.LINGER", 0.5)
    pid = judged_in()
    gc.collect()
    assert judged_in() == pid
    gc.collect()
    assert has_ended(pid)


def test_monitors_of_one_judge_share_a_process_whatever_else_differs(
    monitor_of, claims, child_of, has_ended
):
    options = [{}, {"metrics": ["relevance"]}, {"mode": "inline"}, {"judge": LocalJudge()}]
    monitors = [monitor_of(**{"judge": "local", "executor": "process"} | each) for each in options]
    assert all(score(monitor, claims) for monitor in monitors)
    (pid,) = {child_of(monitor).pid for monitor in monitors}
    first, *others = monitors
    assert all(monitor.close(10.0) for monitor in others)
    assert score(first, claims)
    assert first.close(10.0)
    assert has_ended(pid)


def score(monitor, case):
    (result,) = monitor.evaluate(case, timeout=60.0).results.values()
    return result.score is not None


def test_nothing_is_started_before_the_first_run(monitor_of):
    monitor = monitor_of(judge="local", executor="process", niceness=5)
    assert monitor._scorer._processes[0]._child is None
    assert monitor.close(1.0)
    assert monitor._scorer._processes[0]._child is None
